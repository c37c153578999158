extension Duration {
  /// Whole milliseconds; a part of one counts for one.
  public var millisecondsRoundedUp: Int64 {
    let (seconds, attoseconds) = components
    return seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
  }
}

extension ContinuousClock.Instant {
  /// How long it is until then, in milliseconds for poll(2): rounded up, or the last one would be spent turning. An
  /// hour is as good as for ever, and no time overflows.
  public var pollTimeout: Int32 {
    Int32(max(.zero, min(ContinuousClock.now.duration(to: self), .seconds(3600))).millisecondsRoundedUp)
  }
}
