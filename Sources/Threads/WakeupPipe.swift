internal import Platform

/// Wakes a thread that sleeps in poll(2): `descriptor` becomes readable.
///
/// The descriptors are closed when the last owner lets go, so that no late `wake` reaches a descriptor that means
/// something else by then.
public final class WakeupPipe: Sendable {
  /// What the thread has to watch, for reading.
  public let descriptor: Int32
  private let writing: Int32

  /// Fails with the errno in `errno` when the system gives no more descriptors.
  public init?() {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    (descriptor, writing) = (ends[0], ends[1])
  }

  /// For a thread that has no use without: a process that has no descriptors left by then ends here.
  public static func required() -> WakeupPipe {
    guard let wakeUp = WakeupPipe() else { preconditionFailure("the system has no descriptor left (error \(errno))") }
    return wakeUp
  }

  deinit {
    close(descriptor)
    close(writing)
  }

  /// Ends the current sleep, or else the next one. From any thread.
  public func wake() {
    var byte: UInt8 = 0
    _ = write(writing, &byte, 1)
  }

  /// Forgets the calls of `wake` so far.
  public func reset() {
    var bytes: UInt64 = 0
    while read(descriptor, &bytes, 8) > 0 {}
  }
}
