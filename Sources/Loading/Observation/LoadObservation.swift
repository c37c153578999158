/// Everything that is kept of loads that have ended.
///
/// `record` is called once for each of them. A hit that the memory fast path answered is no load and only counted.
public struct LoadObservation: Sendable {
  public private(set) var counts = LoaderCounts()
  public private(set) var failures = FailureTable()
  var alarm = FailureAlarm(now: LoadingActor.now)
  private var measured = LoadMetrics()

  /// The metrics of all loads and of the hits of the memory fast path.
  public var metrics: LoadMetrics {
    var metrics = measured
    metrics.add(fastHits: counts.memoryHits - measured[.memory].count)
    return metrics
  }

  /// - Parameter time: Unix seconds.
  mutating func record(_ report: LoadReport, at time: @autoclosure () -> Int) {
    measured.record(report)
    switch report.outcome {
    case .image(let status, let byteCount):
      alarm.addSuccess()
      if report.requester != .revalidation { count(status, byteCount) }
    case .failure(let error):
      failures.add(error, url: report.url, at: time())
      alarm.add(error.kind, at: report.origin)
    }
  }

  mutating func recordMemoryHit(byteCount: Int64) {
    alarm.addSuccess()
    count(.memory, byteCount)
  }

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
