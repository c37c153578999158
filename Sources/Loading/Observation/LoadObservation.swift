public import HTTPTypes
internal import Platform

/// Everything that is kept of loads that have ended.
///
/// `record` is called once for each of them. A hit that the memory fast path answered is no load and only counted.
public struct LoadObservation: Sendable {
  public private(set) var metrics = LoadMetrics()
  public private(set) var failures = FailureTable()
  var alarm = FailureAlarm(now: .now)

  /// - Parameter time: Unix seconds.
  mutating func record(_ report: LoadReport, at time: @autoclosure () -> Int) {
    // The loads that wait for a robots.txt tell of its failure.
    if report.requester == .permission { return }
    metrics.record(report)
    switch report.outcome {
    case .image:
      alarm.addSuccess()
    case .failure(let error):
      failures.add(error, url: report.url, at: time())
      alarm.add(error.kind, at: report.origin)
    }
  }

  mutating func recordMemoryHit(byteCount: Int64) {
    alarm.addSuccess()
    metrics.addFastHit(byteCount: byteCount)
  }
}

/// A load that has ended, as counters, metrics and traces see it.
public struct LoadReport: Sendable {
  /// The source of a load.
  public enum Requester: Sendable {
    /// A `load` request.
    case host
    /// An item of a prefetch.
    case prefetch
    /// A background revalidation.
    case revalidation
    /// Loads that wait for the robots.txt of their origin.
    case permission

    /// Whether the load counts as one of the host's.
    var isCounted: Bool { self == .host || self == .prefetch }
  }

  public enum Outcome: Sendable {
    /// - Parameter byteCount: the size of the delivered image in bytes.
    case image(CacheStatus, byteCount: Int64)
    case failure(LoadError)
  }

  /// A number that no other load or prefetch of this worker has; nil for an item that never became a load.
  public var load: UInt64?
  /// The number of the transfer that the load last waited for. Loads that share a transfer have the same.
  public var transfer: UInt64?
  public var requester: Requester
  /// The URL as the host gave it: it may contain secrets.
  public var url: String
  public var origin: Origin
  public var outcome: Outcome
  public var attempts: Int
  /// Ended.
  public var timeline: LoadTimeline
}
