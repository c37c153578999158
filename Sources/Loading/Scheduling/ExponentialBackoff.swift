/// Waits that double from one time to the next, up to half a minute, with jitter, so that a crowd of workers does not
/// come back as a crowd.
enum ExponentialBackoff {
  /// What a wait is at most, in milliseconds.
  ///
  /// - Parameters:
  ///   - first: the ceiling of the first, at least 500.
  ///   - number: which of the waits, from 1.
  private static func ceiling(_ first: Int, _ number: Int) -> Int { min(30_000, first << min(number - 1, 6)) }

  /// Anything from nothing to the ceiling ("full jitter").
  static func fromNothing(first: Int, _ number: Int, _ random: inout some RandomNumberGenerator) -> Duration {
    .milliseconds(Int.random(in: 0...ceiling(first, number), using: &random))
  }

  /// At least half the ceiling: where a wait of nothing would be none.
  static func fromHalf(first: Int, _ number: Int, _ random: inout some RandomNumberGenerator) -> Duration {
    let ceiling = ceiling(first, number)
    return .milliseconds(Int.random(in: ceiling / 2...ceiling, using: &random))
  }
}
