#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// What the store takes from outside itself, so that a test can decide it: the time, chance, and the file system.
public struct StoreEnvironment: Sendable {
  /// Unix seconds.
  public var now: @Sendable () -> Int
  public var random: @Sendable () -> UInt64
  public var files: FileSystem
  /// Names the run of the system since it was started; nil where the system has no such name.
  public var boot: @Sendable () -> String?

  public init(
    now: @escaping @Sendable () -> Int, random: @escaping @Sendable () -> UInt64, files: FileSystem,
    boot: @escaping @Sendable () -> String? = { nil }
  ) {
    self.now = now
    self.random = random
    self.files = files
    self.boot = boot
  }

  public static let system = StoreEnvironment(
    now: { time(nil) }, random: { UInt64.random(in: .min ... .max) }, files: FileSystem(),
    boot: {
      let path = "/proc/sys/kernel/random/boot_id"
      let files = FileSystem()
      guard let file = try? files.openFile(path) else { return nil }
      defer { closeFile(file) }
      let text = (try? readBytes(64, at: 0, from: file, path, files)) ?? []
      return text.isEmpty ? nil : String(decoding: text.prefix { $0 > 0x20 }, as: UTF8.self)
    })
}

/// How long a delivered path stays, whatever is evicted, replaced or cleared meanwhile, in seconds.
public let deliveredFileLifetime = 60

/// The Unix second from which on a file delivered at `time` may go: both were cut to whole seconds, hence one more.
func endOfLife(deliveredAt time: Int) -> Int { time + deliveredFileLifetime + 1 }
