/// When things happened to a transfer, and when it will have taken too long.
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
  private(set) var hopStartedAt: ContinuousClock.Instant
  private(set) var resolvedAt: ContinuousClock.Instant
  private(set) var requestSentAt: ContinuousClock.Instant
  private(set) var firstByteAt: ContinuousClock.Instant
  private(set) var requestTime = 0
  private(set) var responseTime = 0
  private var lastProgress: ContinuousClock.Instant
  private var bytesOnWire: Int64 = 0
  /// When enough bytes had arrived last, and how many had by then.
  private var lastEnough: (at: ContinuousClock.Instant, bytes: Int64)

  init(now: ContinuousClock.Instant) {
    hopStartedAt = now
    resolvedAt = now
    requestSentAt = now
    firstByteAt = now
    lastProgress = now
    lastEnough = (now, 0)
  }

  mutating func beginHop(now: ContinuousClock.Instant) {
    self = StallDetector(now: now)
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
    if stage != .receiving { (firstByteAt, lastEnough) = (now, (now, bytesOnWire)) }
    stage = .receiving
    lastProgress = now
  }

  mutating func headCompleted(unixTime: Int) { responseTime = unixTime }

  mutating func resumed(now: ContinuousClock.Instant) {
    lastProgress = now
    lastEnough = (now, bytesOnWire)
  }

  /// Takes the number of bytes that curl has read of the body. More than before is progress even if there was nothing
  /// to deliver, as within a compressed body.
  ///
  /// - Parameter minBytes: how many are enough for `slowTime`.
  mutating func read(bytesOnWire: Int64, minBytes: Int64, now: ContinuousClock.Instant) {
    guard bytesOnWire != self.bytesOnWire else { return }
    self.bytesOnWire = bytesOnWire
    lastProgress = now
    if bytesOnWire - lastEnough.bytes >= minBytes { lastEnough = (now, bytesOnWire) }
  }

  /// When the transfer is stuck unless something arrives.
  func stuckAt(connectTimeout: Duration, idleTimeout: Duration) -> ContinuousClock.Instant {
    lastProgress.advanced(by: stage == .resolving || stage == .connecting ? connectTimeout : idleTimeout)
  }

  /// How long a body may take for as many bytes as are enough.
  static let slowTime = Duration.seconds(30)

  /// When the body is too slow unless enough arrives; nil while there is none.
  var slowAt: ContinuousClock.Instant? {
    stage == .receiving ? lastEnough.at.advanced(by: Self.slowTime) : nil
  }
}
