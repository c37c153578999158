public import Platform

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
