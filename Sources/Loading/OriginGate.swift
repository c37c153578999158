/// How a transfer went with its origin, whatever it means for the job.
enum Contact: Equatable {
  /// It gave an answer that is not `refused`.
  case answered
  /// It wants to be left alone: 429 or 503, or an error with Retry-After.
  case refused(retryAfter: Duration?)
  /// There was no connection: no address, nobody listening, no answer to the handshake in time.
  case unreachable
  /// It was connected and kept silent for too long.
  case unresponsive
  /// Nothing that tells of the origin: cancelled, trouble on this side, a body cut short.
  case inconclusive

  /// Whether there is a way to the origin.
  var isAnswer: Bool {
    switch self {
    case .answered, .refused: true
    case .unreachable, .unresponsive, .inconclusive: false
    }
  }
}

/// What one origin may do, as it follows from how the transfers to it have gone.
///
/// There is an *allowance*, how many transfers it may have at once, and sometimes a *hold*, a time before which it gets
/// none. What makes them change:
///
/// - Refused: a hold, as long as Retry-After says or else from half a second on, doubling; then an allowance of one.
///   From the sixth time on without an answer between, what is let in is a probe, too.
/// - Unresponsive, or silent while others wait for its slots: an allowance of one.
/// - Unresponsive for the twelfth time without an answer between, though it had one transfer at a time: it is given up.
///   Its allowance is whole again, and what it does not answer is not tried again.
/// - Unreachable for the fifth time without an answer between: the circuit opens. A hold from a second on, doubling,
///   then an allowance of one: a probe. If that cannot reach it either, the circuit opens again, for longer.
///   The hold ends early when it turns out that no other origin could be reached either: `Scheduler.cutOff`.
/// - Answered: the circuit closes, the doubling starts over, and the allowance grows by one until it is whole again.
///
/// Besides, it is known whether it has answered at all: one of which nobody knows that must not take all the slots that
/// others could use.
///
/// A transfer that had started before a hold began knows nothing new when it ends: a burst of six 503s is one refusal,
/// and a late answer does not open the door. Only a longer Retry-After counts, which extends the hold.
struct OriginGate {
  /// What a hold is for.
  enum Cause {
    case retryAfter, unavailable, unreachable
  }

  struct Hold {
    var until: Moment
    var cause: Cause
  }

  static let longestHold = Duration.seconds(120)
  private static let failuresToOpen = 5
  private static let silencesToGiveUp = 12

  private(set) var hold: Hold?
  /// How many holds have begun. A transfer belongs to the round in which it started.
  private(set) var round: UInt32 = 0
  /// `whole` when nothing counts but the limit that every origin has.
  private var allowance = whole
  /// Whether it has answered since it was last found silent.
  private(set) var isResponsive = false

  /// Whether an answer would change what the origin may do.
  func isChanged(byAnswerIn round: UInt32) -> Bool {
    round == self.round && (!isResponsive || allowance != Self.whole || refusals > 0 || failures > 0)
  }

  /// When the first of the connections failed that have since, without an answer between.
  private(set) var unreachableSince: Moment?

  private var refusals = 0
  private var failures = 0 {
    didSet { if failures == 0 { unreachableSince = nil } }
  }

  /// How many transfers have waited for an answer in vain, one after the other, without an answer between.
  private var silences = 0

  private static let whole = Int.max

  var isCircuitOpen: Bool { failures >= Self.failuresToOpen }
  var isGivenUp: Bool { silences >= Self.silencesToGiveUp }

  /// Whether it is as if nothing had happened.
  var isAtRest: Bool {
    hold == nil && allowance == Self.whole && refusals == 0 && failures == 0 && silences == 0
  }

  /// How many transfers at once there may be when there is no hold.
  ///
  /// - Parameter limit: what any origin may have.
  func allowance(limit: Int) -> Int { min(allowance, limit) }

  /// Takes note of how a transfer went that started in `round`.
  ///
  /// - Returns: whether it was a probe and failed.
  mutating func note(
    _ contact: Contact, round: UInt32, limit: Int, now: ContinuousClock.Instant,
    random: inout some RandomNumberGenerator
  ) -> Bool {
    guard round == self.round else {
      if case .refused(let retryAfter?) = contact { hold(for: retryAfter, because: .retryAfter, now: now) }
      return false
    }
    switch contact {
    case .inconclusive:
      break
    case .answered:
      isResponsive = true
      (refusals, failures, silences) = (0, 0, 0)
      if allowance < limit { allowance += 1 }
      if allowance >= limit { allowance = Self.whole }
    case .refused(let retryAfter):
      isResponsive = true
      (failures, silences) = (0, 0)
      allowance = 1
      // One that is to be over at once begins no round, so that a burst of them would count as many.
      if let retryAfter, retryAfter <= .zero { break }
      let wereMany = refusals >= Self.failuresToOpen
      refusals += 1
      if let retryAfter {
        hold(for: retryAfter, because: .retryAfter, now: now)
      } else {
        hold(for: BackOff.fromHalf(first: 500, refusals, &random), because: .unavailable, now: now)
      }
      return wereMany
    case .unresponsive:
      keptSilent(in: round)
      silences += 1
      if isGivenUp { allowance = Self.whole }
    case .unreachable:
      isResponsive = false
      unreachableSince = unreachableSince ?? Moment(now)
      let wasOpen = isCircuitOpen
      failures += 1
      if isCircuitOpen {
        let openings = failures - Self.failuresToOpen + 1
        hold(for: BackOff.fromHalf(first: 1000, openings, &random), because: .unreachable, now: now)
      }
      return wasOpen
    }
    return false
  }

  /// Takes note that a transfer that started in `round` is not answered: after its time-out, or when others wait for
  /// its slot.
  mutating func keptSilent(in round: UInt32) {
    guard round == self.round else { return }
    isResponsive = false
    allowance = 1
  }

  private mutating func hold(for duration: Duration, because cause: Cause, now: ContinuousClock.Instant) {
    let until = Moment(now.advanced(by: min(duration, Self.longestHold)))
    guard duration > .zero, until > hold?.until ?? Moment(now) else { return }
    if hold == nil { round &+= 1 }
    hold = Hold(until: until, cause: cause)
    allowance = 1
  }

  /// Ends the hold if it is over by then. False when there is none, or a longer one.
  mutating func release(at moment: Moment) -> Bool {
    guard let hold, hold.until <= moment else { return false }
    self.hold = nil
    return true
  }
}
