internal import HTTPTypes
public import ImageCodec

/// The reason why a load failed.
public struct LoadError: Error, Sendable {
  /// The kind of error, which hosts act on. `Worker` assigns the codes.
  public enum Kind: String, Sendable, CaseIterable {
    case resolve, connect, tls, timeout, http, redirects, truncated, tooLarge, blockedAddress, recentlyFailed, network
    case notCached, diskFull, io
    case notAnImage, unsupportedFormat, corrupt, tooManyPixels, decoderCrashed, decodeTimeout, digestMismatch, unwanted
    /// The site does not allow it, with `--robots obey`.
    case robots
    case shuttingDown, overloaded
    case cancelled, `internal`
    /// A fault in the request that becomes apparent only with the image.
    case invalidParams
  }

  /// The phase in which a timeout occurred.
  public enum Phase: String, Sendable {
    case connect, firstByte, idle, slow, deadline
  }

  public var kind: Kind
  /// A text for people. Contains no query strings, user info or header values.
  public var message: String
  public var phase: Phase?
  public var status: Int?
  /// The delay that the server requested, or after which a retry makes sense.
  public var retryAfter: Duration?
  public var attempts = 1
  /// For `resolve`: whether no name server answered, so that the name may have an address.
  public var isUnanswered = false
  /// Whether no attempt was made, or no further one, because the origin is down.
  public var isOriginDown = false
  public var response: LoadedImage.Response?
  /// For `recentlyFailed`: the kind of the remembered failure.
  public var failure: Kind?
  /// For `robots`, and `recentlyFailed` after it: the rule or header field that refuses the image.
  public var rule: String?
  /// The properties of the image and the limit that it exceeds, for errors of its content.
  public var figures = ErrorFigures()
  /// For `invalidParams`: the parameter at fault.
  public var member: String?
  /// For a file of a set: its name.
  public var output: String?
  /// For `io`: whether the same request may succeed a little later.
  public var isTransient = false
  /// For `decodeTimeout`: the limit that the decode reached, and its times.
  public var decodeTimeout: DecodeTimeout?
  /// The times of the load that ended with it; the last phase is the one in which it failed.
  public var timeline: LoadTimeline?

  public init(_ kind: Kind, _ message: String) {
    (self.kind, self.message) = (kind, message)
  }

  /// - Parameter prefix: the first bytes of the content, as far as they are known.
  static func notAnImage(_ prefix: some Sequence<UInt8>) -> LoadError {
    let detected = ForeignContent(prefix: prefix)
    let known = detected.map { "the content is \($0.name), not an image" }
    var error = LoadError(.notAnImage, known ?? "the content is not an image of a known format")
    error.figures.detected = detected
    return error
  }

  /// - Parameters:
  ///   - bytes: the size of the content, if it is known.
  ///   - content: the subject of the message.
  static func tooLarge(_ content: String, bytes: Int64, maxBytes: Int64) -> LoadError {
    var error = LoadError(.tooLarge, "the \(content) is larger than \(maxBytes) bytes")
    error.figures = ErrorFigures(bytes: bytes, limit: maxBytes)
    return error
  }

  static func timeout(_ phase: Phase, _ message: String) -> LoadError {
    var error = LoadError(.timeout, message)
    error.phase = phase
    return error
  }

  /// - Parameters:
  ///   - crawlDelay: the value that the site has set.
  ///   - request: the request that must wait.
  static func rate(
    of origin: Origin, _ crawlDelay: Duration?, allows request: String, in wait: Duration
  ) -> LoadError {
    let cause = crawlDelay.map { " (Crawl-delay: \($0.components.seconds))" } ?? ""
    var error = LoadError(.overloaded, "the rate of \(origin)\(cause) allows \(request) in \(wait.text) only")
    error.retryAfter = wait
    return error
  }

  /// Whether the same load may succeed a little later.
  public var isRetryable: Bool {
    switch kind {
    case .connect, .truncated, .network: true
    case .resolve: isUnanswered
    case .io, .decoderCrashed: isTransient
    case .timeout: phase != .deadline
    case .http: status.map(Self.mayPass) ?? false
    case .decodeTimeout: decodeTimeout?.limit == .elapsedTime
    default: false
    }
  }

  /// Whether the server gave no response, or one with an error (RFC 5861 section 4).
  var isOfServer: Bool {
    switch kind {
    case .resolve, .connect, .tls, .timeout, .truncated, .network, .http: true
    default: false
    }
  }

  /// Whether it is likely to recur for as long as `--failed-ttl`, so that a new transfer is not worthwhile.
  var isPermanent: Bool {
    switch kind {
    case .http: status.map { (400..<500).contains($0) && !Self.mayPass($0) } ?? false
    case .redirects, .tooLarge, .blockedAddress, .notAnImage: true
    case .robots: rule != nil
    default: false
    }
  }

  /// Whether the same request may get another status a little later: 202, 408, 425, 429, and the class of server errors,
  /// also those of proxies above 511, but for 501 and 505, which tell that the server has not implemented something.
  static func mayPass(_ status: Int) -> Bool {
    switch status {
    case 202, 408, 425, 429: true
    case 501, 505: false
    default: (500..<600).contains(status)
    }
  }

  /// The statuses that count as a refusal even without Retry-After.
  static let refusingStatuses: Set = [429, 503]
}
