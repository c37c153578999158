internal import HTTPTransport

/// How far a transfer has come, to tell whether it is worth its end though nobody waits for it any more.
struct CompletionEstimate: Sendable {
  let beganAt: ContinuousClock.Instant
  /// When the head of the answer came.
  private(set) var answeredAt: ContinuousClock.Instant?
  /// Of the whole response, where only its rest is transferred.
  private(set) var head: ResponseHead?
  /// Bytes of the body that were there before.
  private var kept: Int64 = 0
  /// Bytes of the body, those included.
  var received: Int64 = 0

  init(beganAt: ContinuousClock.Instant) { self.beganAt = beganAt }

  mutating func answered(_ head: ResponseHead, kept: Int64, at now: ContinuousClock.Instant) {
    self.head = head
    answeredAt = now
    self.kept = kept
    received = kept
  }

  /// How long it took to connect and to get the first byte.
  var costOfBeginning: Duration? { answeredAt.map { beganAt.duration(to: $0) } }

  /// Whether what is missing takes less time, at the pace since the beginning, than it would cost to begin again.
  func isNearlyComplete(at now: ContinuousClock.Instant) -> Bool {
    guard let costOfBeginning, let total = head?.contentLength, received > kept else { return false }
    // missing / (bytes / elapsed) < cost
    let (missing, bytes) = (Double(total - received), Double(received - kept))
    return missing * (beganAt.duration(to: now) / .seconds(1)) < bytes * (costOfBeginning / .seconds(1))
  }
}
