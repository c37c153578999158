/// The durations of the loads that have ended, for metrics. Without background revalidations.
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
      case .image(.miss, _): self = .miss
      case .failure(let error): self = error.kind == .cancelled ? .cancelled : .failed
      }
    }
  }

  private var totals = [DurationHistogram](repeating: DurationHistogram(), count: Ending.allCases.count)
  private var phases = [DurationHistogram](repeating: DurationHistogram(), count: LoadTimeline.Phase.allCases.count)

  init() {}

  /// The durations of whole loads.
  public subscript(ending: Ending) -> DurationHistogram { totals[ending.rawValue] }

  /// The durations of a phase, of the loads in which it happened.
  public subscript(phase: LoadTimeline.Phase) -> DurationHistogram { phases[phase.rawValue] }

  mutating func record(_ report: LoadReport) {
    guard report.requester != .revalidation else { return }
    totals[Ending(report.outcome).rawValue].add(microseconds: report.timeline.total)
    // A prefetch item that never became a load has no phases.
    guard report.load != nil else { return }
    report.timeline.forEachInterval { phase, start, end in
      phases[phase.rawValue].add(microseconds: end - start)
    }
  }

  /// Adds hits of the memory fast path, which measures no time.
  mutating func add(fastHits number: Int) { totals[Ending.memory.rawValue].add(zeros: number) }
}
