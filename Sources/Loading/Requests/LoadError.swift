/// Why a load came to nothing.
public struct LoadError: Error, Sendable {
  /// What a host switches on. `Worker` gives each its code.
  public enum Kind: String, Sendable, CaseIterable {
    case resolve, connect, tls, timeout, http, redirects, truncated, tooLarge, blockedAddress, recentlyFailed, network
    case notCached, diskFull, io
    case notAnImage, unsupportedFormat, corrupt, tooManyPixels, decoderCrashed, decodeTimeout, digestMismatch
    case shuttingDown, overloaded
    case cancelled, `internal`
    /// What only the image itself could tell to be wrong with the request.
    case invalidParams
  }

  /// Where a time-out struck.
  public enum Phase: String, Sendable {
    case connect, firstByte, idle, slow, deadline
  }

  public var kind: Kind
  /// For people: no query strings, no user info, no header values.
  public var message: String
  public var phase: Phase?
  public var status: Int?
  /// What the server asked for, or when it makes sense to come again.
  public var retryAfter: Duration?
  public var attempts = 1
  /// Whether no attempt was made or tried again because the origin is down.
  public var isOriginDown = false
  public var response: LoadedImage.Response?
  /// Of `invalidParams`: which parameter.
  public var member: String?

  public init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  static func timeout(_ phase: Phase, _ message: String) -> LoadError {
    var error = LoadError(.timeout, message)
    error.phase = phase
    return error
  }

  /// Whether the same load may well succeed a little later.
  public var isRetryable: Bool {
    switch kind {
    case .resolve, .connect, .truncated, .network: true
    case .timeout: phase != .deadline
    case .http: status.map(Self.retryableStatuses.contains) ?? false
    default: false
    }
  }

  /// Whether the server could not give an answer, or gave none but an error (RFC 5861 section 4).
  var isOfServer: Bool {
    switch kind {
    case .resolve, .connect, .tls, .timeout, .truncated, .network, .http: true
    default: false
    }
  }

  /// Whether it is an answer to what was sent, so that other header fields might have brought another one.
  var dependsOnHeaders: Bool {
    switch kind {
    case .http, .redirects, .tooLarge, .notAnImage: !isRetryable
    default: false
    }
  }

  /// Whether it would fail again for as long as `--failed-ttl`, so that a transfer is not worth trying.
  var isPermanent: Bool {
    switch kind {
    case .http: status.map { (400..<500).contains($0) && !Self.retryableStatuses.contains($0) } ?? false
    case .redirects, .tooLarge, .blockedAddress, .notAnImage: true
    default: false
    }
  }

  static let retryableStatuses: Set = [408, 425, 429, 500, 502, 503, 504]
  /// Those by which a server wants to be left alone, even without Retry-After.
  static let refusingStatuses: Set = [429, 503]
}
