/// The reason why a transfer did not deliver a complete response.
public struct TransferError: Error, Sendable, Hashable {
  /// The reason, named as in the protocol. The set is open: a switch over it needs a default.
  public struct Kind: Sendable, Hashable, CustomStringConvertible {
    public let name: String
    public var description: String { name }

    /// The host's name has no address.
    public static let resolve = Kind(name: "resolve")
    /// No name server answered, so whether the host's name has an address is unknown.
    public static let unanswered = Kind(name: "unanswered")
    /// No connection to the host or the proxy.
    public static let connect = Kind(name: "connect")
    /// The TLS handshake failed or the certificate is not trusted.
    public static let tls = Kind(name: "tls")
    /// No progress for too long; `phase` says at which step.
    public static let timeout = Kind(name: "timeout")
    /// Too many redirects, or a redirect to a URL that cannot be requested.
    public static let redirects = Kind(name: "redirects")
    /// The body ended too early.
    public static let truncated = Kind(name: "truncated")
    /// The body has an unknown content coding, or the coded data is damaged. A retry would bring the same.
    public static let undecodable = Kind(name: "undecodable")
    /// The framing of the body violates HTTP, so that its content cannot be trusted.
    public static let malformed = Kind(name: "malformed")
    /// The body, or its announced length, is larger than `maxBytes`.
    public static let tooLarge = Kind(name: "tooLarge")
    /// The `NetworkPolicy` forbids all addresses of the host.
    public static let blockedAddress = Kind(name: "blockedAddress")
    /// The peer sends input that belongs to no response without a pause, such as HTTP/2 frames without content.
    public static let flood = Kind(name: "flood")
    /// The peer closed or reset the connection before it answered.
    public static let closed = Kind(name: "closed")
    /// Any other network failure: no answer, a malformed answer, no descriptors or memory left.
    public static let network = Kind(name: "network")
    /// The URL or a header field cannot be sent.
    public static let invalidRequest = Kind(name: "invalidRequest")
    /// The consumer's verdict was `abort`.
    public static let aborted = Kind(name: "aborted")
    /// `Transport.cancel` or `shutdown`.
    public static let cancelled = Kind(name: "cancelled")
  }

  /// The step that timed out.
  public enum Phase: String, Sendable, Hashable {
    /// Name, connection and TLS handshake.
    case connect
    /// The first line of an answer.
    case firstByte
    /// More bytes.
    case idle
    /// Enough bytes for `TransportConfiguration.minRate`.
    case slow
  }

  public var kind: Kind
  /// For `timeout`.
  public var phase: Phase?
  /// One sentence for people, without query strings, user information and header values.
  public var message: String
  /// Bytes of the body that were delivered.
  public var bytesReceived: Int64
  /// Number of redirects that were followed. If it is not zero, the origin that failed is not the first one.
  public var redirects = 0

  public init(_ kind: Kind, _ message: String, phase: Phase? = nil, bytesReceived: Int64 = 0) {
    self.kind = kind
    self.phase = phase
    self.message = message
    self.bytesReceived = bytesReceived
  }
}
