public import HTTPTypes

/// Status and header fields of a response.
public struct ResponseHead: Sendable, Hashable {
  public var status: Int
  public var headers: HeaderFields
  /// Where the response came from, after redirects: no fragment, no user information.
  public var finalURL: String
  /// `1.0`, `1.1` or `2`, as in the status line.
  public var httpVersion: String
  /// How many bytes will be delivered; nil when it is not known, as with a content encoding.
  public var contentLength: Int64?

  public init(
    status: Int, headers: HeaderFields = HeaderFields(), finalURL: String, httpVersion: String = "1.1",
    contentLength: Int64? = nil
  ) {
    self.status = status
    self.headers = headers
    self.finalURL = finalURL
    self.httpVersion = httpVersion
    self.contentLength = contentLength
  }
}

/// How a transfer went that delivered all it had.
public struct TransferSummary: Sendable {
  public var head: ResponseHead
  /// Bytes of the body as delivered.
  public var bytesReceived: Int64
  /// Bytes of the final response's body as they came over the wire, before content encodings were undone.
  public var wireBytes: Int64
  /// How many redirects were followed.
  public var redirects: Int
  /// When the final request had a connection and was about to be sent.
  public var requestSentAt: ContinuousClock.Instant
  /// When the first line of the final response had arrived.
  public var firstByteAt: ContinuousClock.Instant
  /// How long the final request waited for its connection: next to nothing if there was one.
  public var connectDuration: Duration
  /// How long the host's addresses were looked up for the final request; nil if they were known.
  public var nameDuration: Duration?
  /// How long the final request took to connect to one of them, and to shake hands for TLS; nil where that was not
  /// done.
  public var tcpDuration: Duration?
  public var tlsDuration: Duration?
  /// Whether the final request opened a connection.
  public var newConnection: Bool
  /// When the final request was sent and its response's head had come, in Unix seconds (RFC 9111 section 4.2.3).
  public var requestTime: Int
  public var responseTime: Int

  public init(
    head: ResponseHead, bytesReceived: Int64, wireBytes: Int64, redirects: Int,
    requestSentAt: ContinuousClock.Instant, firstByteAt: ContinuousClock.Instant, connectDuration: Duration,
    newConnection: Bool, requestTime: Int, responseTime: Int
  ) {
    self.head = head
    self.bytesReceived = bytesReceived
    self.wireBytes = wireBytes
    self.redirects = redirects
    self.requestSentAt = requestSentAt
    self.firstByteAt = firstByteAt
    self.connectDuration = connectDuration
    self.newConnection = newConnection
    self.requestTime = requestTime
    self.responseTime = responseTime
  }
}
