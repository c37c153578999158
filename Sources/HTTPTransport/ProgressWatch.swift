/// When things happened to a transfer, and when it will have taken too long.
struct ProgressWatch {
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
  private(set) var hopStartedAt: ContinuousClock.Instant
  private(set) var resolvedAt: ContinuousClock.Instant
  private(set) var requestSentAt: ContinuousClock.Instant
  private(set) var firstByteAt: ContinuousClock.Instant
  private(set) var requestTime = 0
  private(set) var responseTime = 0
  private var lastProgress: ContinuousClock.Instant
  private var bytesOnWire: Int64 = 0

  init(now: ContinuousClock.Instant) {
    hopStartedAt = now
    resolvedAt = now
    requestSentAt = now
    firstByteAt = now
    lastProgress = now
  }

  mutating func beginHop(now: ContinuousClock.Instant) {
    self = ProgressWatch(now: now)
  }

  mutating func resolved(now: ContinuousClock.Instant) {
    stage = .connecting
    resolvedAt = now
  }

  mutating func requestSent(now: ContinuousClock.Instant, unixTime: Int) {
    stage = .waiting
    requestSentAt = now
    requestTime = unixTime
    lastProgress = now
  }

  mutating func received(now: ContinuousClock.Instant) {
    if stage != .receiving { firstByteAt = now }
    stage = .receiving
    lastProgress = now
  }

  mutating func headCompleted(unixTime: Int) { responseTime = unixTime }

  mutating func resumed(now: ContinuousClock.Instant) { lastProgress = now }

  /// Takes the number of bytes that curl has read of the body. More than before is progress even if there was nothing
  /// to deliver, as within a compressed body.
  mutating func read(bytesOnWire: Int64, now: ContinuousClock.Instant) {
    guard bytesOnWire != self.bytesOnWire else { return }
    self.bytesOnWire = bytesOnWire
    lastProgress = now
  }

  /// When the transfer is stuck unless something arrives.
  func stuckAt(connectTimeout: Duration, idleTimeout: Duration) -> ContinuousClock.Instant {
    lastProgress.advanced(by: stage == .resolving || stage == .connecting ? connectTimeout : idleTimeout)
  }
}
