/// Whether an origin may be sent requests, as it follows from how the transfers to it have gone. A pure value.
///
///                 refused, unreachable, unresponsive
///     healthy ────────────────────────────────────────▶ suspended ──(time)──▶ probing
///        ▲                                                  ▲                  │   │
///        ├──────────────────── an answer ───────────────────┼──────────────────┘   │ the probe fails
///        │                                                  └──────────────────────┤
///     probing ◀──(time)── down ◀──── three rounds without an answer, or six refusals ┘
///
/// How many transfers a healthy origin may have is the business of its `ConcurrencyWindow`; a probing one has one.
///
/// Failures count by *rounds*: what had started before the last failure was counted tells nothing new when it ends. So
/// a burst of six 503s is one refusal, and a late answer does not end a suspension. Only a longer Retry-After counts,
/// which extends it. A time-out or a failed connection counts only if the origin was not heard of since that transfer
/// started: one path may hang, or one address may be lost, while the host is fine.
struct OriginHealth {
  enum State: Equatable {
    case healthy
    case suspended(until: CompactInstant)
    /// One attempt shows how it goes on.
    case probing
    /// Loads for it end at once.
    case down(until: CompactInstant)
  }

  /// Why it is not healthy.
  enum Cause {
    case retryAfter, unavailable, unreachable, unresponsive
  }

  static let maxSuspension = Duration.seconds(120)
  private static let maxFailures = 3
  private static let maxRefusals = 6
  private static let downTime = (first: Duration.seconds(30), max: Duration.seconds(600))

  private(set) var state = State.healthy
  /// Nil when healthy.
  private(set) var cause: Cause?
  /// A transfer belongs to the epoch in which it started.
  private(set) var epoch: UInt32 = 0
  /// When the first of the failures came that have since, without an answer between.
  private(set) var failingSince: CompactInstant?
  private var failures = 0
  private var refusals = 0
  /// How many times in a row it was found to be down.
  private var verdicts = 0

  var isDown: Bool { if case .down = state { true } else { false } }

  /// Whether it is as if nothing had happened.
  var isClean: Bool { state == .healthy && failures == 0 && refusals == 0 }

  /// Before when it gets nothing.
  var until: CompactInstant? {
    switch state {
    case .suspended(let until), .down(let until): until
    case .healthy, .probing: nil
    }
  }

  /// How many transfers it may have.
  func allowance(window: Int) -> Int {
    switch state {
    case .healthy: window
    case .probing: 1
    case .suspended, .down: 0
    }
  }

  /// Whether an answer in `epoch` would change what the origin may do.
  func isChanged(byAnswerIn epoch: UInt32) -> Bool { epoch == self.epoch && !isClean }

  /// The effect on the origin's window.
  enum Consequence: Equatable {
    case none
    /// The window is to shrink.
    case congested
    /// The window begins again at its first step.
    case restarted
  }

  /// Takes note of how a transfer went that started in `epoch`, at `start`.
  mutating func note(
    _ signal: TransferSignal, epoch: UInt32, startedAt start: CompactInstant, now: ContinuousClock.Instant,
    random: inout some RandomNumberGenerator
  ) -> Consequence {
    guard epoch == self.epoch else {
      if case .refused(let retryAfter?) = signal { extend(by: retryAfter, now: now) }
      return .none
    }
    switch signal {
    case .inconclusive: return .none
    case .broken: return .congested
    case .answered:
      let wasLost = cause == .unreachable || cause == .unresponsive || verdicts > 0
      (state, cause, failingSince) = (.healthy, nil, nil)
      (failures, refusals, verdicts) = (0, 0, 0)
      return wasLost ? .restarted : .none
    case .refused(let retryAfter):
      (failures, failingSince) = (0, nil)
      // One that is over at once is no refusal.
      if let retryAfter, retryAfter <= .zero { return .congested }
      refusals += 1
      cause = retryAfter == nil ? .unavailable : .retryAfter
      let delay = retryAfter ?? ExponentialBackoff.fromHalf(first: 500, refusals, &random)
      suspend(
        until: CompactInstant(now.advanced(by: min(delay, Self.maxSuspension))), isOver: refusals >= Self.maxRefusals, now)
      return .congested
    case .closed, .unreachable, .unresponsive:
      cause = signal == .unresponsive ? .unresponsive : .unreachable
      failingSince = failingSince ?? CompactInstant(now)
      failures += 1
      // A time-out has been waiting enough.
      let due = start.instant.advanced(by: ExponentialBackoff.fromHalf(first: 1000, failures, &random))
      suspend(until: CompactInstant(max(due, now)), isOver: failures >= Self.maxFailures, now)
      return .restarted
    }
  }

  private mutating func suspend(until: CompactInstant, isOver: Bool, _ now: ContinuousClock.Instant) {
    epoch &+= 1
    guard isOver else {
      state = until > CompactInstant(now) ? .suspended(until: until) : .probing
      return
    }
    let time = min(Self.downTime.first * (1 << min(verdicts, 10)), Self.downTime.max)
    verdicts += 1
    state = .down(until: max(until, CompactInstant(now.advanced(by: time))))
  }

  private mutating func extend(by delay: Duration, now: ContinuousClock.Instant) {
    let later = CompactInstant(now.advanced(by: min(delay, Self.maxSuspension)))
    guard case .suspended(let until) = state, later > until else { return }
    (state, cause) = (.suspended(until: later), .retryAfter)
  }

  /// Lets a probe in if the suspension, or the time of being down, is over by `moment`.
  mutating func release(at moment: CompactInstant) -> Bool {
    guard let until, until <= moment else { return false }
    state = .probing
    return true
  }
}
