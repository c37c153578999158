public import HTTPTypes

/// Status and header fields of a response.
public struct ResponseHead: Sendable, Hashable {
  public var status: Int
  public var headers = HeaderFields()
  /// The URL of the response, after redirects; without fragment and user information.
  public var finalURL: String
  /// `1.0`, `1.1` or `2`, as in the status line.
  public var httpVersion = "1.1"
  /// Number of bytes that will be delivered; nil if unknown, for instance with a content encoding.
  public var contentLength: Int64?

  public init(
    status: Int, headers: HeaderFields = HeaderFields(), finalURL: String, httpVersion: String = "1.1",
    contentLength: Int64? = nil
  ) {
    (self.status, self.headers, self.finalURL) = (status, headers, finalURL)
    (self.httpVersion, self.contentLength) = (httpVersion, contentLength)
  }
}

/// Sizes and timing of a transfer that succeeded.
public struct TransferSummary: Sendable {
  public var head: ResponseHead
  /// Bytes of the body as delivered.
  public var bytesReceived: Int64
  /// Number of redirects that were followed.
  public var redirects: Int
  /// Time at which the final request had a connection and was about to be sent.
  public var requestSentAt: ContinuousClock.Instant
  /// Time at which the first line of the final response had arrived.
  public var firstByteAt: ContinuousClock.Instant
  /// Time that the look-up of the host's addresses took for the final request; nil if they were known.
  public var nameDuration: Duration?
  /// Durations of the final request's TCP connect and TLS handshake; nil for a step that was not needed.
  public var tcpDuration: Duration?
  public var tlsDuration: Duration?
  /// Unix seconds at which the final request was sent and its response's head had arrived (RFC 9111 section 4.2.3).
  public var requestTime: Int
  public var responseTime: Int

  public init(
    head: ResponseHead, bytesReceived: Int64, redirects: Int, requestSentAt: ContinuousClock.Instant,
    firstByteAt: ContinuousClock.Instant, nameDuration: Duration? = nil, tcpDuration: Duration? = nil,
    tlsDuration: Duration? = nil, requestTime: Int, responseTime: Int
  ) {
    (self.head, self.bytesReceived, self.redirects) = (head, bytesReceived, redirects)
    (self.requestSentAt, self.firstByteAt) = (requestSentAt, firstByteAt)
    (self.nameDuration, self.tcpDuration, self.tlsDuration) = (nameDuration, tcpDuration, tlsDuration)
    (self.requestTime, self.responseTime) = (requestTime, responseTime)
  }
}
