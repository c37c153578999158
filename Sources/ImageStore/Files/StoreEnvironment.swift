internal import Platform

/// The external dependencies of the store, which tests can replace: clock, randomness and file system.
public struct StoreEnvironment: Sendable {
  /// Unix seconds.
  public var now: @Sendable () -> Int
  public var random: @Sendable () -> UInt64
  public var files: FileSystem
  /// An identifier of the current run of the system; nil if the system has none.
  public var boot: @Sendable () -> String? = { nil }

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
