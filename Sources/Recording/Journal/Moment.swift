/// A time in a session, as the session sees it.
public struct Moment: Sendable, Equatable {
  /// Nanoseconds of the monotonic clock since the start of the recording.
  public var nanoseconds: Int64
  /// Unix seconds. They need not agree with the monotonic clock: a system sets its time.
  public var unixTime: Int

  public init(nanoseconds: Int64, unixTime: Int) { (self.nanoseconds, self.unixTime) = (nanoseconds, unixTime) }
}

extension Duration {
  /// Nanoseconds, rounded down.
  var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }
}
