/// What the loader is told of the worker's options; all of it may change while it runs.
public struct LoaderSettings: Sendable {
  public var limits = SchedulerLimits()
  /// Bytes of image data in the memory tier.
  public var memoryLimit: Int64 = 128 << 20
  /// Bytes that the disk tier may hold.
  public var diskLimit: Int64 = 1 << 30
  /// Seconds after which nothing is served unvalidated.
  public var maxAge = 7 * 86_400
  public var maxRedirects = 10
  /// Largest width x height x frames that is decoded or written.
  public var maxPixels = 100_000_000
  public var failedTimeToLive = Duration.seconds(60)

  public init() {}
}

/// What happened so far, for `stats`.
public struct LoaderCounts: Sendable {
  public var transfersStarted = 0
  public var transfersSucceeded = 0
  public var transfersFailed = 0
  /// Bytes of bodies that arrived.
  public var transferBytes: Int64 = 0
  public var memoryHits = 0
  public var diskHits = 0
  public var revalidated = 0
  public var stale = 0
  public var misses = 0
  /// Bytes of images that came from the cache, confirmed by a 304 or not, and were not transferred.
  public var bytesSaved: Int64 = 0
}
