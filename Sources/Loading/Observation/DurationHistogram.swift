/// A histogram of durations with fixed buckets, for metrics. Adding a duration does not allocate.
public struct DurationHistogram: Sendable {
  /// The upper bounds of the buckets, in microseconds: 1, 2.5 and 5 in each decade from 100 µs to 100 s. A duration
  /// that equals a bound belongs to its bucket (`le`, OpenMetrics 1.0, "Histogram").
  public static let bounds: [Int64] = [
    100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 25_000_000, 50_000_000, 100_000_000,
  ]

  /// The number of durations in each bucket; the last one has no upper bound.
  public private(set) var counts = [Int](repeating: 0, count: bounds.count + 1)
  /// The sum of the durations, in microseconds.
  public private(set) var sum: Int64 = 0

  public init() {}

  public var count: Int { counts.reduce(0, +) }

  /// A negative duration counts as zero.
  public mutating func add(microseconds: Int64) {
    var (low, high) = (0, Self.bounds.count)
    while low < high {
      let middle = (low + high) / 2
      if microseconds <= Self.bounds[middle] { high = middle } else { low = middle + 1 }
    }
    counts[low] += 1
    sum &+= max(0, microseconds)
  }

  /// Adds durations that were too short to be measured.
  public mutating func add(zeros number: Int) { counts[0] += number }
}
