internal import Platform

/// Timestamps of a transfer, and the times at which it will have stalled.
struct StallDetector {
  enum Stage {
    /// Until the host's addresses are known.
    case resolving
    /// Until there is a connection to send the request on.
    case connecting
    /// Until the first line of an answer.
    case waiting
    case receiving
  }

  private(set) var stage = Stage.resolving
  private(set) var hopStartedAt: Instant
  private(set) var resolvedAt: Instant
  private(set) var requestSentAt: Instant
  private(set) var firstByteAt: Instant
  private(set) var requestTime = 0
  private(set) var responseTime = 0
  private var lastProgress: Instant
  private var bytesOnWire: Int64 = 0
  /// The last time at which enough bytes had arrived, and the number that had arrived by then.
  private var lastEnough: (at: Instant, bytes: Int64)

  init(now: Instant) {
    hopStartedAt = now
    resolvedAt = now
    requestSentAt = now
    firstByteAt = now
    lastProgress = now
    lastEnough = (now, 0)
  }

  mutating func resolved(now: Instant) {
    stage = .connecting
    resolvedAt = now
  }

  mutating func requestSent(now: Instant, unixTime: Int) {
    stage = .waiting
    requestSentAt = now
    requestTime = unixTime
    lastProgress = now
  }

  mutating func received(now: Instant) {
    if stage != .receiving { (firstByteAt, lastEnough) = (now, (now, bytesOnWire)) }
    stage = .receiving
    lastProgress = now
  }

  /// Records a header line.
  ///
  /// - Parameters:
  ///   - turn: the time of the loop's turn, in which the request may have been sent.
  ///   - now: read for the first line only.
  mutating func receivedLine(turn: Instant, now: @autoclosure () -> Instant) {
    received(now: stage == .receiving ? turn : now())
  }

  mutating func headCompleted(unixTime: Int) { responseTime = unixTime }

  mutating func resumed(now: Instant) {
    lastProgress = now
    lastEnough = (now, bytesOnWire)
  }

  /// Records the number of body bytes that curl has read. An increase is progress even if nothing could be delivered,
  /// as within a compressed body.
  ///
  /// - Parameter minBytes: the number of bytes that must arrive within `slowTime`.
  mutating func read(bytesOnWire: Int64, minBytes: Int64, now: Instant) {
    guard bytesOnWire != self.bytesOnWire else { return }
    self.bytesOnWire = bytesOnWire
    lastProgress = now
    if bytesOnWire - lastEnough.bytes >= minBytes { lastEnough = (now, bytesOnWire) }
  }

  /// The time at which the transfer is stuck unless something arrives.
  func stuckAt(connectTimeout: Duration, idleTimeout: Duration) -> Instant {
    lastProgress.advanced(by: stage == .resolving || stage == .connecting ? connectTimeout : idleTimeout)
  }

  /// Longest time for `minBytes` of a body.
  static let slowTime = Duration.seconds(30)

  /// The time at which the body is too slow unless enough arrives; nil before the answer begins.
  var slowAt: Instant? {
    stage == .receiving ? lastEnough.at.advanced(by: Self.slowTime) : nil
  }
}
