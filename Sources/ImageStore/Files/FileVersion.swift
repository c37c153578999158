internal import Platform

/// The version of a file of the host: of two readings with the same tag, no write came between.
public struct FileVersion: Sendable, Hashable {
  /// The file and its state as an entity tag: the device, the inode, the size, and the times of the last write and of
  /// the last change of anything, in nanoseconds.
  public let tag: String
  /// Whether a further write would give it another time. The file system may count in steps of up to two seconds (FAT),
  /// and a file that is written twice within one has the same time. A time in the future does not count as settled.
  public let isSettled: Bool

  /// - Parameter now: the Unix time in nanoseconds.
  init(_ status: stat, now: Int64) {
    let written = Self.nanoseconds(status.modificationTime)
    let times = "\(written)-\(Self.nanoseconds(status.changeTime))"
    tag = "\"\(status.st_dev)-\(status.st_ino)-\(status.st_size)-\(times)\""
    let (age, isFarOff) = now.subtractingReportingOverflow(written)
    isSettled = isFarOff ? written < now : age >= Self.longestStep
  }

  private static let longestStep: Int64 = 2_000_000_000

  /// Wraps around for times that are 292 years away from 1970.
  private static func nanoseconds(_ time: timespec) -> Int64 {
    Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }
}

extension stat {
  fileprivate var changeTime: timespec {
    #if canImport(Darwin)
      st_ctimespec
    #else
      st_ctim
    #endif
  }
}
