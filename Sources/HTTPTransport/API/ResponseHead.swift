public import HTTPTypes
public import Platform

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
  /// Whether the body ends with its connection, so that it may have been cut without an error (RFC 9112 section 6.3).
  public var isEndedByClose = false

  public init(
    status: Int, headers: HeaderFields = HeaderFields(), finalURL: String, httpVersion: String = "1.1",
    contentLength: Int64? = nil
  ) {
    (self.status, self.headers, self.finalURL) = (status, headers, finalURL)
    (self.httpVersion, self.contentLength) = (httpVersion, contentLength)
  }
}

/// Sizes and timing of a transfer that succeeded. A class, since it is passed on often and has many members.
public final class TransferSummary: Sendable {
  public let head: ResponseHead
  /// Bytes of the body as delivered.
  public let bytesReceived: Int64
  /// Number of redirects that were followed.
  public let redirects: Int
  public let times: TransferTimes
  /// Unix seconds at which the final request was sent and its response's head had arrived (RFC 9111 section 4.2.3).
  public let requestTime: Int
  public let responseTime: Int

  public init(
    head: ResponseHead, bytesReceived: Int64, redirects: Int, times: TransferTimes, requestTime: Int, responseTime: Int
  ) {
    (self.head, self.bytesReceived, self.redirects, self.times) = (head, bytesReceived, redirects, times)
    (self.requestTime, self.responseTime) = (requestTime, responseTime)
  }

  /// The summary with another head.
  public func with(_ head: ResponseHead) -> TransferSummary {
    TransferSummary(
      head: head, bytesReceived: bytesReceived, redirects: redirects, times: times, requestTime: requestTime,
      responseTime: responseTime)
  }
}

/// The times of a transfer's last hop. Its steps follow each other: the name look-up from `startedAt`, connecting and
/// the TLS handshake until `requestSentAt`, the wait until `firstByteAt`, the rest of the answer until `endedAt`.
public struct TransferTimes: Sendable, Hashable {
  /// The time at which the last hop began; after a redirect, that of the request to the new URL.
  public var startedAt: Instant
  /// The durations of the look-up of the host's addresses, of the TCP connect and of the TLS handshake; nil for a step
  /// that was not needed or not reached.
  public var name: Duration?
  public var connect: Duration?
  public var tls: Duration?
  /// The time at which the request had a connection and was about to be sent; nil if it never had one.
  public var requestSentAt: Instant?
  /// The time at which the first line of the answer had arrived; nil if none did.
  public var firstByteAt: Instant?
  public var endedAt: Instant
  /// The number of redirects that were followed before.
  public var redirects = 0

  public init(startedAt: Instant, endedAt: Instant) {
    (self.startedAt, self.endedAt) = (startedAt, endedAt)
  }
}
