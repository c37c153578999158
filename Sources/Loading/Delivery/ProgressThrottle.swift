internal import Platform

/// Limits the progress events of a load or a prefetch to ten a second, with the final one, which its owner sends in any
/// case.
struct ProgressThrottle {
  private static let interval = Duration.milliseconds(125)

  private var next: Instant

  init(at now: Instant) { next = now }

  /// Whether an event may be sent now. If so, the next one is due after the interval.
  mutating func isDue(at now: Instant) -> Bool {
    guard now >= next else { return false }
    next = now.advanced(by: Self.interval)
    return true
  }
}
