internal import Platform

/// The circuit breaker of an origin: whether requests may be sent to it, according to the outcomes of its transfers. A
/// pure value.
///
///                 refused, unreachable, unresponsive
///     healthy ────────────────────────────────────────▶ suspended ──(time)──▶ probing
///        ▲                                                  ▲                  │   │
///        ├──────────────────── an answer ───────────────────┼──────────────────┘   │ the probe fails
///        │                                                  └──────────────────────┤
///     probing ◀──(time)── down ◀── three failures without an answer, or six refusals ┘
///
/// A healthy origin may have as many transfers as its `ConcurrencyWindow` permits; a probing one may have one.
///
/// Failures are counted by *epochs*: each counted failure starts a new epoch, and the end of a transfer from an earlier
/// epoch is not new evidence. So a burst of six 503s is one refusal, and a late answer does not end a suspension. The
/// exception is a longer Retry-After, which extends the suspension. A timeout or a failed connection counts only if the
/// origin has not answered since that transfer started: one path may hang, or one address may be lost, while the host
/// is fine.
struct OriginHealth {
  enum State: Equatable {
    case healthy
    case suspended(until: Instant)
    /// One probe determines the next state.
    case probing
    /// Loads for the origin fail at once.
    case down(until: Instant)
  }

  /// The reason why it is not healthy.
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
  /// The current epoch. A transfer belongs to the epoch in which it started.
  private(set) var epoch: UInt32 = 0
  /// The time of the first failure since the last answer.
  private(set) var failingSince: Instant?
  private var failures = 0
  private var refusals = 0
  /// The number of consecutive times that it was found to be down.
  private var verdicts = 0

  var isDown: Bool { if case .down = state { true } else { false } }

  /// Whether it is in the initial state.
  var isClean: Bool { state == .healthy && failures == 0 && refusals == 0 }

  /// The time before which no transfer may start.
  var until: Instant? {
    switch state {
    case .suspended(let until), .down(let until): until
    case .healthy, .probing: nil
    }
  }

  /// How many transfers may run at once.
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
    /// The window must shrink.
    case congested
    /// The window restarts at its initial size.
    case restarted
  }

  /// Records the signal of a transfer that started in `epoch`, at `start`.
  mutating func record(
    _ signal: TransferSignal, epoch: UInt32, startedAt start: Instant, now: Instant,
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
      // A Retry-After of zero suspends nothing.
      if let retryAfter, retryAfter <= .zero { return .congested }
      refusals += 1
      cause = retryAfter == nil ? .unavailable : .retryAfter
      let delay = retryAfter ?? ExponentialBackoff.fromHalf(first: 500, refusals, &random)
      suspend(until: now.advanced(by: min(delay, Self.maxSuspension)), isOver: refusals >= Self.maxRefusals, now)
      return .congested
    case .closed, .unreachable, .unresponsive:
      cause = signal == .unresponsive ? .unresponsive : .unreachable
      failingSince = failingSince ?? now
      failures += 1
      // The delay counts from the start of the transfer: a timeout has already waited.
      let due = start.advanced(by: ExponentialBackoff.fromHalf(first: 1000, failures, &random))
      suspend(until: max(due, now), isOver: failures >= Self.maxFailures, now)
      return .restarted
    }
  }

  private mutating func suspend(until: Instant, isOver: Bool, _ now: Instant) {
    epoch &+= 1
    guard isOver else {
      state = until > now ? .suspended(until: until) : .probing
      return
    }
    let time = min(Self.downTime.first * (1 << min(verdicts, 10)), Self.downTime.max)
    verdicts += 1
    state = .down(until: max(until, now.advanced(by: time)))
  }

  private mutating func extend(by delay: Duration, now: Instant) {
    let later = now.advanced(by: min(delay, Self.maxSuspension))
    guard case .suspended(let until) = state, later > until else { return }
    (state, cause) = (.suspended(until: later), .retryAfter)
  }

  /// Permits a probe if the suspension or the time of being down ends by `moment`.
  mutating func release(at moment: Instant) -> Bool {
    guard let until, until <= moment else { return false }
    state = .probing
    return true
  }
}

/// The outcome of a transfer as evidence about its origin's health.
enum TransferSignal: Equatable {
  /// The origin sent a response that is not `refused`.
  case answered
  /// The origin refused: 429 or 503, or an error with Retry-After.
  case refused(retryAfter: Duration?)
  /// The connection broke during the response.
  case broken
  /// The origin closed the connection before a response.
  case closed
  /// No connection was established: no address, no listener, or a handshake timeout.
  case unreachable
  /// The connection was established, but no data arrived in time.
  case unresponsive
  /// No evidence about the origin: the transfer was cancelled, or the fault is on this machine.
  case inconclusive

  /// Whether the origin has answered at all.
  var isAnswer: Bool {
    switch self {
    case .answered, .refused, .broken: true
    case .closed, .unreachable, .unresponsive, .inconclusive: false
    }
  }
}
