public import Platform

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
