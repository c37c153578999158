/// Exponential backoff with jitter: delays that double up to 30 s. The jitter keeps many workers from retrying at the
/// same time.
enum ExponentialBackoff {
  /// The maximum of a delay in milliseconds.
  ///
  /// - Parameters:
  ///   - first: the maximum of the first delay, at least 500.
  ///   - number: the number of the delay, from 1.
  private static func ceiling(_ first: Int, _ number: Int) -> Int { min(30_000, first << min(number - 1, 6)) }

  /// A random delay from 0 to the maximum ("full jitter").
  static func fromNothing(first: Int, _ number: Int, _ random: inout some RandomNumberGenerator) -> Duration {
    .milliseconds(Int.random(in: 0...ceiling(first, number), using: &random))
  }

  /// A random delay from half the maximum, for cases in which no delay would be useless.
  static func fromHalf(first: Int, _ number: Int, _ random: inout some RandomNumberGenerator) -> Duration {
    let ceiling = ceiling(first, number)
    return .milliseconds(Int.random(in: ceiling / 2...ceiling, using: &random))
  }
}

/// The random numbers of the system, for delays.
///
/// It takes the place of `SystemRandomNumberGenerator`, which has no content: ThreadSanitizer reads the address of what
/// is passed inout, and that of a stored property without content is undefined (Swift 6.3).
struct DelayRandom: RandomNumberGenerator {
  private let content: UInt8 = 0

  mutating func next() -> UInt64 { .random(in: .min ... .max) }
}
