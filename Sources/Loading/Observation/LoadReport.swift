public import HTTPTypes

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
