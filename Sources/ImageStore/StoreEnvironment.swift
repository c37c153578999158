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

  public init(now: @escaping @Sendable () -> Int, random: @escaping @Sendable () -> UInt64, files: FileSystem) {
    self.now = now
    self.random = random
    self.files = files
  }

  public static let system = StoreEnvironment(
    now: { time(nil) }, random: { UInt64.random(in: .min ... .max) }, files: FileSystem())
}

/// How long a delivered path stays, whatever is evicted, replaced or cleared meanwhile, in seconds.
public let deliveredFileLifetime = 60

/// The Unix second from which on a file delivered at `time` may go: both were cut to whole seconds, hence one more.
func endOfLife(deliveredAt time: Int) -> Int { time + deliveredFileLifetime + 1 }
