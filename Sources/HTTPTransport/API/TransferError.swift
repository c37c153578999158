/// Why a transfer brought no complete response.
public struct TransferError: Error, Sendable, Hashable {
  /// The reason, by the wire's names. Open: a switch over it needs a default.
  public struct Kind: Sendable, Hashable, CustomStringConvertible {
    public let name: String
    public var description: String { name }

    /// The host's name has no address.
    public static let resolve = Kind(name: "resolve")
    /// The name servers gave no answer, so that nothing is known of the host's name.
    public static let unanswered = Kind(name: "unanswered")
    /// No connection to the host or the proxy.
    public static let connect = Kind(name: "connect")
    /// The TLS handshake failed or the certificate is not trusted.
    public static let tls = Kind(name: "tls")
    /// Too long without progress; `phase` says where.
    public static let timeout = Kind(name: "timeout")
    /// Too many redirects, or one to where none is followed.
    public static let redirects = Kind(name: "redirects")
    /// The body ended before its end.
    public static let truncated = Kind(name: "truncated")
    /// The body has a content coding that is not known, or is damaged within it. To ask again would bring the same.
    public static let undecodable = Kind(name: "undecodable")
    /// The body is framed against the rules: what came of it is not to be trusted.
    public static let malformed = Kind(name: "malformed")
    /// The body is, or says it is, larger than `maxBytes`.
    public static let tooLarge = Kind(name: "tooLarge")
    /// All addresses of the host are against the `NetworkPolicy`.
    public static let blockedAddress = Kind(name: "blockedAddress")
    /// The other side sends input outside of any response without a pause, such as HTTP/2 frames without content.
    public static let flood = Kind(name: "flood")
    /// The other side closed the connection, or reset it, before an answer.
    public static let closed = Kind(name: "closed")
    /// Anything else on the wire: no answer, a malformed one, no descriptors or memory left.
    public static let network = Kind(name: "network")
    /// The URL or a header field cannot be sent.
    public static let invalidRequest = Kind(name: "invalidRequest")
    /// The consumer's verdict was `abort`.
    public static let aborted = Kind(name: "aborted")
    /// `Transport.cancel` or `shutdown`.
    public static let cancelled = Kind(name: "cancelled")
  }

  /// What a transfer was waiting for.
  public enum Phase: String, Sendable, Hashable {
    /// Name, connection and TLS handshake.
    case connect
    /// The first line of an answer.
    case firstByte
    /// More bytes.
    case idle
    /// As many bytes as `TransportConfiguration.minRate` wants.
    case slow
    /// The end, at `TransferRequest.deadline`.
    case deadline
  }

  public var kind: Kind
  /// For `timeout`.
  public var phase: Phase?
  /// One sentence for people, without query strings, user information and header values.
  public var message: String
  /// Bytes of the body that were delivered.
  public var bytesReceived: Int64
  /// How many redirects were followed: with one, it is not the first origin that failed.
  public var redirects = 0

  public init(_ kind: Kind, _ message: String, phase: Phase? = nil, bytesReceived: Int64 = 0) {
    self.kind = kind
    self.phase = phase
    self.message = message
    self.bytesReceived = bytesReceived
  }
}
