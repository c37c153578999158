/// A `ContinuousClock.Instant` in 8 bytes instead of 16: nanoseconds since the first use. Instants beyond its range of
/// 292 years become `never`.
struct CompactInstant: Hashable, Comparable, Sendable {
  private static let zero = ContinuousClock.now
  static let never = CompactInstant(nanoseconds: .max)

  private let nanoseconds: Int64

  private init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  init(_ instant: ContinuousClock.Instant) {
    let (seconds, attoseconds) = Self.zero.duration(to: instant).components
    let (whole, isOver) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, isOverAtLast) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
    nanoseconds = isOver || isOverAtLast ? (seconds < 0 ? .min : .max) : sum
  }

  var instant: ContinuousClock.Instant { Self.zero.advanced(by: .nanoseconds(nanoseconds)) }

  static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }
}
