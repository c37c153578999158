/// The loads that have ended, counted and measured. Without background revalidations and robots.txt.
public struct LoadMetrics: Sendable {
  /// The way in which a load ended.
  public enum Ending: Int, Sendable, CaseIterable {
    case memory, disk, revalidated, stale, miss, failed, cancelled

    fileprivate init(_ outcome: LoadReport.Outcome) {
      switch outcome {
      case .image(.memory, _): self = .memory
      case .image(.disk, _): self = .disk
      case .image(.revalidated, _): self = .revalidated
      case .image(.stale, _): self = .stale
      case .image(.miss, _), .image(.file, _): self = .miss
      case .failure(let error): self = error.kind == .cancelled ? .cancelled : .failed
      }
    }
  }

  private var totals = [DurationHistogram](repeating: DurationHistogram(), count: Ending.allCases.count)
  private var phases = [DurationHistogram](repeating: DurationHistogram(), count: LoadTimeline.Phase.allCases.count)
  /// The bytes of images served from the cache, with or without a 304, and therefore not transferred.
  public private(set) var bytesSaved: Int64 = 0

  init() {}

  /// The durations of whole loads.
  public subscript(ending: Ending) -> DurationHistogram { totals[ending.rawValue] }

  /// The durations of a phase, of the loads in which it happened.
  public subscript(phase: LoadTimeline.Phase) -> DurationHistogram { phases[phase.rawValue] }

  mutating func record(_ report: LoadReport) {
    guard report.requester.isCounted else { return }
    let ending = Ending(report.outcome)
    totals[ending.rawValue].add(microseconds: report.timeline.total)
    if case .image(_, let byteCount) = report.outcome, ending != .miss { bytesSaved += byteCount }
    // A prefetch item that never became a load has no phases.
    guard report.load != nil else { return }
    report.timeline.forEachInterval { phase, start, end in
      phases[phase.rawValue].add(microseconds: end - start)
    }
  }

  /// Adds a hit of the memory fast path, which measures no time.
  mutating func addFastHit(byteCount: Int64) {
    totals[Ending.memory.rawValue].add(microseconds: 0)
    bytesSaved += byteCount
  }
}

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
}
