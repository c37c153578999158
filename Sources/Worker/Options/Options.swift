internal import HTTPTransport
internal import HTTPTypes
internal import ImageStore
public import Loading

/// The values of all options, with their defaults. `OptionDefinition` defines their names and syntax.
public struct Options: Sendable {
  public var cacheDirectory: String?
  public var cacheNamespace = "default"
  public var readOnlyCaches: [String] = []
  /// Bytes of image data.
  public var memoryLimit: Int64 = 128 << 20
  /// Allocated bytes of image and temporary files.
  public var diskLimit: Int64 = 1 << 30
  public var maxAge = Duration.seconds(7 * 86_400)
  public var maxConcurrent = TransferLimit.auto
  public var maxPerHost = TransferLimit.auto
  /// Zero for no limit.
  public var maxConnectionsPerHost = 0
  /// Requests to one origin, as `N/s`; nil for no limit.
  public var rate: String?
  /// Bytes.
  public var maxLine: Int64 = 32 << 20
  public var maxRedirects = 10
  public var maxQueued = 1_000_000
  var order = QueueOrder.fifo
  public var timeout = Duration.seconds(15)
  /// Bytes in 30 seconds.
  public var minRate: Int64 = 1024
  public var connectTimeout = Duration.seconds(10)
  /// Zero for no deadline.
  public var deadline = Duration.zero
  public var retries = 2
  public var failedTimeToLive = Duration.seconds(60)
  /// Bytes.
  public var maxBytes: Int64 = 100 << 20
  public var maxPixels: Int64 = 100_000_000
  public var decoders = 0
  /// Images that a decoder process decodes.
  public var decoderLifetime = 1
  public var decodeTimeout = Duration.seconds(10)
  /// Bytes of one decoder process.
  public var decodeMemory: Int64 = 2 << 30
  /// Percent of the file system.
  public var minFree = 5
  var verify = DiskTier.Verification.random
  var resolver = NameResolver.cAres
  var network = NetworkPolicy.any
  var robots = RobotsMode.ignore
  public var proxy: String?
  public var userAgent = "ImageWorker/\(Version.current)"
  /// In curl's syntax; see `HeaderOption`.
  public var headers: [String] = []
  public var cookies: String?
  /// The folder below which the files of the host must be that requests name; nil for any place.
  public var files: String?
  var permittedFolder: PermittedFolder?
  /// The content of the cookie file at the start.
  var cookieFile: String?
  public var insecure = false
  public var keyIgnoredQuery: [String] = []
  var events: [String] = []
  var endOfInput = EndMode.drain
  public var exitStatus = false
  var logLevel = LogLevel.warning
  var logFormat = LogFormat.text
  public var metricsFile: String?
  public var trace: String?
  /// Bytes.
  public var traceLimit: Int64 = 256 << 20
  /// Set only for a command of `imageworker cache`.
  var command = CommandOptions()

  public init() {}

  enum RobotsMode: String, CaseIterable { case obey, ignore }
  /// Whether the worker finishes or cancels unanswered requests before it ends.
  enum EndMode: String, CaseIterable { case drain, cancel }
}

/// The version that `--version` prints.
public enum Version {
  public static let current = "0.1.0"
}
