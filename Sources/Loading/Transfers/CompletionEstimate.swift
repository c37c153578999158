internal import HTTPTransport

/// Estimates whether a transfer without subscribers is so nearly complete that it should finish.
struct CompletionEstimate: Sendable {
  let beganAt: ContinuousClock.Instant
  /// When the head of the response arrived.
  private(set) var answeredAt: ContinuousClock.Instant?
  /// The head of the whole response, even if only the rest of the body is transferred.
  private(set) var head: ResponseHead?
  /// The bytes of the body that were there before the transfer.
  private var kept: Int64 = 0
  /// The bytes of the body received so far, including `kept`.
  var received: Int64 = 0

  init(beganAt: ContinuousClock.Instant) { self.beganAt = beganAt }

  mutating func answered(_ head: ResponseHead, kept: Int64, at now: ContinuousClock.Instant) {
    self.head = head
    answeredAt = now
    self.kept = kept
    received = kept
  }

  /// The time from the start of the transfer to the first byte.
  var costOfBeginning: Duration? { answeredAt.map { beganAt.duration(to: $0) } }

  /// Whether the rest, at the average rate so far, takes less time than a new transfer would need to its first byte.
  func isNearlyComplete(at now: ContinuousClock.Instant) -> Bool {
    guard let costOfBeginning, let total = head?.contentLength, received > kept else { return false }
    // missing / (bytes / elapsed) < cost
    let (missing, bytes) = (Double(total - received), Double(received - kept))
    return missing * (beganAt.duration(to: now) / .seconds(1)) < bytes * (costOfBeginning / .seconds(1))
  }
}
