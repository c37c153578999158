/// The worker options that concern the loader. All of them but `robotsUserAgent` may change at run time.
public struct LoaderSettings: Sendable {
  public var limits = SchedulerLimits()
  /// The maximum size of image data in the memory tier, in bytes.
  public var memoryLimit: Int64 = 128 << 20
  /// The maximum size of the disk tier, in bytes.
  public var diskLimit: Int64 = 1 << 30
  /// The age in seconds after which a stored image is revalidated before it is served.
  public var maxAge = 7 * 86_400
  public var maxRedirects = 10
  /// The maximum width x height x frames that is decoded or written.
  public var maxPixels = 100_000_000
  public var failedTimeToLive = Duration.seconds(60)
  /// The user agent for which robots.txt is obeyed; nil if it is ignored. Read at the start.
  public var robotsUserAgent: String?

  public init() {}
}

/// Counters of transfers since the start.
public struct TransferCounts: Sendable {
  public var started = 0
  public var succeeded = 0
  public var failed = 0
  /// Further attempts that were scheduled after a failed one.
  public var retries = 0
  /// The bytes of bodies received.
  public var bytes: Int64 = 0
  public var busiestOrigins = BusiestOrigins()
}
