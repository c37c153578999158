public import Platform

/// Wakes a thread that sleeps in poll(2), by making `descriptor` readable.
///
/// The descriptors are closed with the last reference, so that no late `wake` writes to a descriptor that was reused.
public final class WakeupPipe: Sendable {
  /// The descriptor that the thread must watch for reading.
  public let descriptor: Int32
  private let writing: Int32

  /// Fails, with the reason in `errno`, if the system has no descriptor left.
  public init?() {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    (descriptor, writing) = (ends[0], ends[1])
  }

  /// For a thread that cannot work without one: if no descriptor is left, the process ends here.
  public static func required() -> WakeupPipe {
    guard let wakeUp = WakeupPipe() else { exitWithoutResource("pipe") }
    return wakeUp
  }

  deinit {
    close(descriptor)
    close(writing)
  }

  /// Ends the current sleep, or else the next one. May be called on any thread.
  public func wake() {
    var byte: UInt8 = 0
    _ = write(writing, &byte, 1)
  }

  /// Discards the calls of `wake` so far.
  public func reset() {
    var bytes: UInt64 = 0
    while read(descriptor, &bytes, 8) > 0 {}
  }
}

extension Duration {
  /// Milliseconds, rounded up.
  public var millisecondsRoundedUp: Int64 {
    let (seconds, attoseconds) = components
    return seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
  }
}

extension Instant {
  /// Time until this instant, in milliseconds for poll(2). It is rounded up, since the caller would otherwise poll
  /// without pause during the last millisecond. Limited to an hour, so that no time overflows.
  public var pollTimeout: Int32 {
    Int32(max(.zero, min(Instant.now.duration(to: self), .seconds(3600))).millisecondsRoundedUp)
  }
}
