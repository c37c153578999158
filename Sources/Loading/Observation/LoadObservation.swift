/// Everything that is kept of loads that have ended.
///
/// `record` is called once for each of them. A hit that the memory fast path answered is no load and only counted.
public struct LoadObservation: Sendable {
  public private(set) var counts = LoaderCounts()

  mutating func record(_ report: LoadReport) {
    switch report.outcome {
    case .image(let status, let byteCount):
      if report.requester != .revalidation { count(status, byteCount) }
    case .failure: break
    }
  }

  mutating func recordMemoryHit(byteCount: Int64) { count(.memory, byteCount) }

  private mutating func count(_ status: CacheStatus, _ byteCount: Int64) {
    if status != .miss { counts.bytesSaved += byteCount }
    switch status {
    case .miss: counts.misses += 1
    case .memory: counts.memoryHits += 1
    case .disk: counts.diskHits += 1
    case .revalidated: counts.revalidated += 1
    case .stale: counts.stale += 1
    }
  }
}
