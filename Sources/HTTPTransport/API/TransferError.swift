/// The reason why a transfer did not deliver a complete response.
public struct TransferError: Error, Sendable, Hashable {
  public enum Kind: Sendable, Hashable {
    /// It is certain that the host's name has no address.
    case resolve
    /// No name server answered, so whether the host's name has an address is unknown.
    case unanswered
    /// No connection to the host or the proxy.
    case connect
    /// The TLS handshake failed or the certificate is not trusted.
    case tls
    /// No progress for too long; `phase` says at which step.
    case timeout
    /// Too many redirects, or a redirect to a URL that cannot be requested.
    case redirects
    /// The body ended too early.
    case truncated
    /// The body has an unknown content coding, or the coded data is damaged. A retry would bring the same.
    case undecodable
    /// The framing of the body violates HTTP, so that its content cannot be trusted.
    case malformed
    /// The body, or its announced length, is larger than `maxBytes`.
    case tooLarge
    /// The `NetworkPolicy` forbids all addresses of the host.
    case blockedAddress
    /// The peer sends input that belongs to no response without a pause, such as HTTP/2 frames without content.
    case flood
    /// The peer closed or reset the connection before it answered.
    case closed
    /// Any other network failure: no answer, a malformed answer, no descriptors or memory left.
    case network
    /// The URL or a header field cannot be sent.
    case invalidRequest
    /// The consumer's verdict was `abort`.
    case aborted
    /// `Transport.cancel`.
    case cancelled
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
  /// For `tooLarge`, if it is the body: the maximum number of its bytes.
  public var limit: Int64?
  /// Number of redirects that were followed. If it is not zero, the origin that failed is not the first one.
  public var redirects = 0
  /// The times of the last hop; nil if no transfer began.
  public var times: TransferTimes?

  public init(_ kind: Kind, _ message: String, phase: Phase? = nil, bytesReceived: Int64 = 0) {
    self.kind = kind
    self.phase = phase
    self.message = message
    self.bytesReceived = bytesReceived
  }
}
