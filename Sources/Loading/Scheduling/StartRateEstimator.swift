#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// How fast the queue moves: transfers started in the last seconds, the older the less they count.
///
/// Tells whom there is no place for when to come again.
struct StartRateEstimator {
  /// How old a start is that counts for 1/e.
  private static let memory = Duration.seconds(10)
  private static let soonest = Duration.milliseconds(100)
  private static let latest = Duration.seconds(30)

  private var starts = 0.0
  private var begin: ContinuousClock.Instant?
  private var last: ContinuousClock.Instant?

  mutating func note(_ count: Int, at now: ContinuousClock.Instant) {
    guard count > 0 else { return }
    starts = remaining(at: now) + Double(count)
    begin = begin ?? now
    last = now
  }

  /// How long so many starts take at this pace, from 100 ms to 30 s.
  func time(for count: Int, at now: ContinuousClock.Instant) -> Duration {
    guard let begin else { return Self.latest }
    // What the sum would be if one started each second since the beginning.
    let observed = max(1, Self.memory.inSeconds * (1 - exp(-(begin.duration(to: now) / Self.memory))))
    let rate = remaining(at: now) / observed
    guard rate * Self.latest.inSeconds > Double(count) else { return Self.latest }
    return max(Self.soonest, .seconds(Double(count) / rate))
  }

  private func remaining(at now: ContinuousClock.Instant) -> Double {
    last.map { starts * exp(-($0.duration(to: now) / Self.memory)) } ?? 0
  }
}

extension Duration {
  fileprivate var inSeconds: Double { self / .seconds(1) }
}
