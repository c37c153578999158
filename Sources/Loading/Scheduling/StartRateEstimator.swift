internal import Platform

/// The exponentially weighted rate of transfer starts (time constant 10 s). Used to suggest `retryAfter` to loads
/// rejected with `overloaded`.
struct StartRateEstimator {
  /// The time constant: a start of this age counts 1/e.
  private static let timeConstant = Duration.seconds(10)
  private static let minTime = Duration.milliseconds(100)
  private static let maxTime = Duration.seconds(30)

  private var starts = 0.0
  private var begin: Instant?
  private var last: Instant?

  mutating func record(_ count: Int, at now: Instant) {
    guard count > 0 else { return }
    starts = remaining(at: now) + Double(count)
    begin = begin ?? now
    last = now
  }

  /// The time that so many starts take at the current rate, from 100 ms to 30 s.
  func time(for count: Int, at now: Instant) -> Duration {
    guard let begin else { return Self.maxTime }
    // The value of the sum if one transfer had started each second since `begin`.
    let observed = max(1, Self.timeConstant.inSeconds * (1 - exp(-(begin.duration(to: now) / Self.timeConstant))))
    let rate = remaining(at: now) / observed
    guard rate * Self.maxTime.inSeconds > Double(count) else { return Self.maxTime }
    return max(Self.minTime, .seconds(Double(count) / rate))
  }

  private func remaining(at now: Instant) -> Double {
    last.map { starts * exp(-($0.duration(to: now) / Self.timeConstant)) } ?? 0
  }
}

extension Duration {
  fileprivate var inSeconds: Double { self / .seconds(1) }
}
