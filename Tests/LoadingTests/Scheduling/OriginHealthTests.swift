import Platform
import Testing

@testable import Loading

struct OriginHealthTests {
  // MARK: - State transitions

  @Test(arguments: [
    (signal: TransferSignal.refused(retryAfter: .seconds(7)), cause: OriginHealth.Cause.retryAfter, wait: 7000),
    (.refused(retryAfter: nil), .unavailable, 250),
    (.unreachable, .unreachable, 500),
    (.closed, .unreachable, 500),
    (.unresponsive, .unresponsive, 500),
  ])
  func `a failure suspends a healthy origin, and a probe follows in time`(
    signal: TransferSignal, cause: OriginHealth.Cause, wait: Int
  ) {
    var origin = WatchedOrigin()
    origin.record(signal)
    #expect(origin.consequence == (signal.isAnswer ? .congested : .restarted))
    #expect(origin.health.state == .suspended(until: origin.after(.milliseconds(wait))))
    #expect(origin.health.cause == cause)
    #expect(origin.health.allowance(window: 6) == 0)
    let state = origin.health.state
    origin.pass(.milliseconds(wait - 1))
    #expect(origin.health.state == state)
    origin.pass(.milliseconds(1))
    #expect(origin.health.state == .probing)
    #expect(origin.health.cause == cause)
    #expect(origin.health.allowance(window: 6) == 1)
  }

  @Test func `an answer to the probe makes the origin healthy, and a failed probe suspends it again`() {
    for failure in [TransferSignal.refused(retryAfter: nil), .unreachable, .closed, .unresponsive] {
      var origin = WatchedOrigin()
      origin.fail(failure)
      #expect(origin.health.state == .probing)
      origin.record(failure)
      #expect(origin.health.until != nil && !origin.health.isDown)
      origin.passUntilProbe()
      origin.record(.answered)
      #expect(origin.isAsNew)
      #expect(origin.health.allowance(window: 6) == 6)
    }
  }

  @Test(arguments: [TransferSignal.unreachable, .closed, .unresponsive])
  func `three failures without an answer show that the origin is down`(signal: TransferSignal) {
    var origin = WatchedOrigin()
    let first = origin.now
    for _ in 0..<2 { origin.fail(signal) }
    origin.record(signal)
    #expect(origin.health.state == .down(until: origin.after(.seconds(30))))
    #expect(origin.health.failingSince == first)
    #expect(origin.health.allowance(window: 6) == 0)
    origin.pass(.milliseconds(29_999))
    #expect(origin.health.isDown)
    origin.pass(.milliseconds(1))
    #expect(origin.health.state == .probing)
  }

  @Test(arguments: [nil, Duration.seconds(1)])
  func `six refusals in a row show that the origin is down`(retryAfter: Duration?) {
    var origin = WatchedOrigin()
    for _ in 0..<5 { origin.fail(.refused(retryAfter: retryAfter)) }
    origin.record(.refused(retryAfter: retryAfter))
    #expect(origin.health.state == .down(until: origin.after(.seconds(30))))
    #expect(origin.health.failingSince == nil)
  }

  @Test func `each failed probe doubles the time for which the origin is down, up to ten minutes`() {
    for signal in [TransferSignal.unresponsive, .refused(retryAfter: nil)] {
      var origin = WatchedOrigin()
      origin.failUntilDown(signal)
      for seconds in [30, 60, 120, 240, 480, 600, 600] {
        #expect(origin.health.state == .down(until: origin.after(.seconds(seconds))))
        origin.passUntilProbe()
        origin.record(signal)
      }
    }
  }

  @Test func `one answer resets the state of an origin that was down`() {
    var origin = WatchedOrigin()
    for signal in [TransferSignal.unresponsive, .refused(retryAfter: nil)] {
      for _ in 0..<3 {
        origin.failUntilDown(signal)
        #expect(origin.health.state == .down(until: origin.after(.seconds(30))))
        origin.passUntilProbe()
        origin.record(.answered)
        #expect(origin.consequence == .restarted)
        #expect(origin.isAsNew)
      }
    }
  }

  @Test func `a Retry-After longer than the time of being down extends it`() {
    var origin = WatchedOrigin()
    for _ in 0..<5 { origin.fail(.refused(retryAfter: nil)) }
    origin.record(.refused(retryAfter: .seconds(100)))
    #expect(origin.health.state == .down(until: origin.after(.seconds(100))))
  }

  // MARK: - Consequences for the window

  @Test func `an answer restarts the window after a failed connection, and not after a refusal`() {
    for (signal, consequence) in [
      (TransferSignal.unreachable, OriginHealth.Consequence.restarted), (.closed, .restarted),
      (.unresponsive, .restarted), (.refused(retryAfter: nil), .none), (.refused(retryAfter: .seconds(1)), .none),
    ] {
      var origin = WatchedOrigin()
      origin.fail(signal)
      origin.record(.answered)
      #expect(origin.consequence == consequence)
    }
  }

  @Test func `an answer, a broken answer and a cancelled transfer do not suspend the origin`() {
    var origin = WatchedOrigin()
    for (signal, consequence) in [
      (TransferSignal.answered, OriginHealth.Consequence.none), (.inconclusive, .none), (.broken, .congested),
    ] {
      origin.record(signal)
      #expect(origin.consequence == consequence)
      #expect(origin.isAsNew)
    }
  }

  @Test func `a broken answer and a cancelled transfer do not end the probing`() {
    for signal in [TransferSignal.broken, .inconclusive] {
      var origin = WatchedOrigin()
      origin.fail(.unreachable)
      origin.record(signal)
      #expect(origin.health.state == .probing)
    }
  }

  // MARK: - Epochs

  @Test(arguments: [TransferSignal.refused(retryAfter: nil), .unreachable, .closed, .unresponsive])
  func `a burst of failures counts once`(signal: TransferSignal) {
    var origin = WatchedOrigin()
    let epoch = origin.health.epoch
    origin.record(signal)
    let state = origin.health.state
    for _ in 0..<20 {
      origin.record(signal, epoch: epoch)
      #expect(origin.consequence == .none)
    }
    #expect(origin.health.state == state)
    // The next failure is the second.
    origin.passUntilProbe()
    origin.record(signal)
    #expect(origin.health.until == origin.after(.milliseconds(signal.isAnswer ? 500 : 1000)))
  }

  @Test func `a burst of refusals halves the window once`() {
    var origin = WatchedOrigin()
    var window = ConcurrencyWindow(.init(initial: 16, max: 256))
    let epoch = origin.health.epoch
    for active in (1...16).reversed() {
      origin.record(.refused(retryAfter: nil), epoch: epoch)
      if origin.consequence == .congested { window.refused(active: active, at: origin.now) }
    }
    #expect(window.size == 8)
  }

  @Test func `an answer to a transfer that started before the failure changes nothing`() {
    for fails in [1, 2, 3] {
      var origin = WatchedOrigin()
      let epoch = origin.health.epoch
      for _ in 1..<fails { origin.fail(.unreachable) }
      origin.record(.unreachable)
      let state = origin.health.state
      for signal in [TransferSignal.answered, .broken, .inconclusive, .unresponsive, .refused(retryAfter: nil)] {
        #expect(!origin.health.isChanged(byAnswerIn: epoch))
        origin.record(signal, epoch: epoch)
        #expect(origin.consequence == .none)
        #expect(origin.health.state == state)
      }
      origin.passUntilProbe()
      origin.record(.answered, epoch: epoch)
      #expect(origin.consequence == .none)
      #expect(origin.health.state == .probing)
      #expect(origin.health.isChanged(byAnswerIn: origin.health.epoch))
    }
  }

  @Test func `a longer Retry-After of the same burst extends the suspension`() {
    var origin = WatchedOrigin()
    let epoch = origin.health.epoch
    origin.record(.refused(retryAfter: nil))
    for (seconds, until) in [(5, 5), (3, 5), (60, 60), (1000, 120)] {
      origin.record(.refused(retryAfter: .seconds(seconds)), epoch: epoch)
      #expect(origin.consequence == .none)
      #expect(origin.health.state == .suspended(until: origin.after(.seconds(until))))
      #expect(origin.health.cause == .retryAfter)
    }
    origin.passUntilProbe()
    origin.record(.refused(retryAfter: .seconds(9)), epoch: epoch)
    #expect(origin.consequence == .none)
    #expect(origin.health.state == .probing)
  }

  @Test func `a Retry-After of an earlier epoch does not change how long the origin is down`() {
    var origin = WatchedOrigin()
    let epoch = origin.health.epoch
    origin.failUntilDown(.unresponsive)
    let state = origin.health.state
    origin.record(.refused(retryAfter: .seconds(100)), epoch: epoch)
    #expect(origin.health.state == state)
  }

  @Test func `an answer resets the count of failures`() {
    var origin = WatchedOrigin()
    for _ in 0..<10 {
      for _ in 0..<2 { origin.fail(.unresponsive) }
      origin.record(.answered)
    }
    for _ in 0..<10 {
      for _ in 0..<5 { origin.fail(.refused(retryAfter: nil)) }
      origin.record(.answered)
    }
    #expect(origin.isAsNew)
  }

  @Test func `a refusal is an answer and resets the count of failures`() {
    for retryAfter in [nil, Duration.zero] {
      var origin = WatchedOrigin()
      for _ in 0..<2 { origin.fail(.unreachable) }
      origin.fail(.refused(retryAfter: retryAfter))
      #expect(origin.health.failingSince == nil)
      for _ in 0..<2 { origin.fail(.unreachable) }
      origin.record(.unreachable)
      #expect(origin.health.isDown)
    }
  }

  // MARK: - Delays

  @Test func `a Retry-After of zero does not suspend the origin`() {
    for retryAfter in [Duration.zero, .seconds(-5)] {
      var origin = WatchedOrigin()
      for _ in 0..<20 {
        origin.record(.refused(retryAfter: retryAfter))
        #expect(origin.consequence == .congested)
        #expect(origin.isAsNew)
      }
    }
  }

  @Test func `a Retry-After counts for at most two minutes`() {
    for (seconds, wait) in [(119, 119), (120, 120), (121, 120), (1_000_000, 120)] {
      var origin = WatchedOrigin()
      origin.record(.refused(retryAfter: .seconds(seconds)))
      #expect(origin.health.until == origin.after(.seconds(wait)))
    }
  }

  @Test(arguments: [
    (signal: TransferSignal.refused(retryAfter: nil), longest: [500, 1000, 2000, 4000, 8000]),
    (.unreachable, [1000, 2000]),
    (.unresponsive, [1000, 2000]),
  ])
  func `the delay doubles, and half of it is random`(signal: TransferSignal, longest: [Int]) {
    var (least, most) = (WatchedOrigin(chance: 1), WatchedOrigin(chance: .max))
    for longest in longest {
      least.record(signal)
      most.record(signal)
      #expect(least.health.until == least.after(.milliseconds(longest / 2)))
      #expect(most.health.until == most.after(.milliseconds(longest)))
      least.passUntilProbe()
      most.passUntilProbe()
    }
  }

  @Test func `the duration of a failed transfer is part of the delay`() {
    var origin = WatchedOrigin()
    origin.record(.unresponsive, startedAt: origin.after(.milliseconds(-300)))
    #expect(origin.health.state == .suspended(until: origin.after(.milliseconds(200))))
    origin = WatchedOrigin()
    origin.record(.unresponsive, startedAt: origin.after(.seconds(-3)))
    #expect(origin.health.state == .probing)
    origin.record(.unresponsive, startedAt: origin.after(.seconds(-3)))
    origin.record(.unresponsive, startedAt: origin.after(.seconds(-3)))
    #expect(origin.health.state == .down(until: origin.after(.seconds(30))))
  }

  // MARK: - Any signals in any order

  @Test(arguments: 0..<10)
  func `the health agrees with a list of the failures since the last answer`(seed: UInt64) {
    var chance = SeededChance(state: seed)
    var origin = WatchedOrigin()
    var history = History()
    var running: [(epoch: UInt32, start: Instant)] = []
    for _ in 0..<1000 {
      origin.pass([.zero, .milliseconds(100), .seconds(1), .seconds(40)].randomElement(using: &chance)!)
      while running.count < origin.health.allowance(window: 4) {
        running.append((origin.health.epoch, origin.now))
      }
      guard let index = running.indices.randomElement(using: &chance) else { continue }
      let (epoch, start) = running.remove(at: index)
      let signal = WatchedOrigin.signals.randomElement(using: &chance)!
      let before = origin.health
      origin.record(signal, epoch: epoch, startedAt: start)
      if epoch == before.epoch {
        let (counts, expected) = history.add(signal)
        #expect(origin.consequence == expected)
        #expect(origin.health.epoch == before.epoch + (counts ? 1 : 0))
        #expect(origin.health.isDown == (counts && history.isOver))
        if signal == .answered { #expect(origin.isAsNew) }
        if !counts, signal != .answered { #expect(origin.health.state == before.state) }
      } else {
        #expect(origin.consequence == .none)
        #expect(origin.health.epoch == before.epoch)
        if case .refused(.some) = signal, case .suspended(let earlier) = before.state {
          #expect(origin.health.until! >= earlier)
          history.isLate = history.isLate || origin.health.until! > earlier
        } else {
          #expect(origin.health.state == before.state)
        }
      }
      #expect(origin.health.isClean == (history.events.isEmpty && origin.health.state == .healthy))
      origin.expectSense()
    }
  }
}

/// A model: the failures since the last answer, in order.
private struct History {
  private(set) var events: [TransferSignal] = []
  private var verdicts = 0
  /// Whether a late Retry-After has replaced the last failure.
  var isLate = false

  mutating func add(_ signal: TransferSignal) -> (counts: Bool, OriginHealth.Consequence) {
    switch signal {
    case .inconclusive: return (false, .none)
    case .broken: return (false, .congested)
    case .answered:
      let wasLost = verdicts > 0 || (wasUnreached && !isLate)
      self = History()
      return (false, wasLost ? .restarted : .none)
    case .refused(let retryAfter):
      events.removeAll { !$0.isAnswer }
      if let retryAfter, retryAfter <= .zero { return (false, .congested) }
      record(signal)
      return (true, .congested)
    case .closed, .unreachable, .unresponsive:
      record(signal)
      return (true, .restarted)
    }
  }

  private mutating func record(_ signal: TransferSignal) {
    events.append(signal)
    (wasUnreached, isLate) = (!signal.isAnswer, false)
    if isOver { verdicts += 1 }
  }

  private var wasUnreached = false

  /// Whether the last failure shows that the origin is down.
  var isOver: Bool {
    guard let last = events.last else { return false }
    return events.count { $0.isAnswer == last.isAnswer } >= (last.isAnswer ? 6 : 3)
  }
}

/// An origin's health with a fixed clock and constant randomness.
private struct WatchedOrigin {
  private(set) var health = OriginHealth()
  /// The effect of the last signal.
  private(set) var consequence = OriginHealth.Consequence.none
  private(set) var now = Instant.now
  private var chance: ConstantChance

  static let signals: [TransferSignal] = [
    .answered, .broken, .closed, .unreachable, .unresponsive, .inconclusive, .refused(retryAfter: nil),
    .refused(retryAfter: .zero), .refused(retryAfter: .seconds(2)), .refused(retryAfter: .seconds(200)),
  ]

  init(chance: UInt64 = 1) { self.chance = ConstantChance(value: chance) }

  var isAsNew: Bool { health.state == .healthy && health.cause == nil && health.failingSince == nil && health.isClean }

  func after(_ duration: Duration) -> Instant { now.advanced(by: duration) }

  /// Records the signal of a transfer that has just started, or in the given epoch at the given time.
  mutating func record(
    _ signal: TransferSignal, epoch: UInt32? = nil, startedAt start: Instant? = nil
  ) {
    consequence = health.record(
      signal, epoch: epoch ?? health.epoch, startedAt: start ?? now, now: now, random: &chance)
  }

  /// Records a failure that does not show that the origin is down, and the time until the next probe.
  mutating func fail(_ signal: TransferSignal) {
    record(signal)
    #expect(!health.isDown)
    passUntilProbe()
  }

  mutating func failUntilDown(_ signal: TransferSignal) {
    record(signal)
    while !health.isDown {
      passUntilProbe()
      record(signal)
    }
  }

  /// Permits a probe if one is due then.
  mutating func pass(_ duration: Duration) {
    now = now.advanced(by: duration)
    _ = health.release(at: now)
  }

  mutating func passUntilProbe() {
    guard let until = health.until else { return }
    now = until
    let isReleased = health.release(at: until)
    #expect(isReleased)
  }

  func expectSense() {
    switch health.state {
    case .healthy:
      #expect(health.cause == nil && health.until == nil && health.failingSince == nil)
      #expect(health.allowance(window: 6) == 6)
    case .probing:
      #expect(health.cause != nil && health.until == nil)
      #expect(health.allowance(window: 6) == 1)
    case .suspended(let until):
      #expect(health.cause != nil && health.until == until)
      #expect(until > now && until <= after(.seconds(120)))
      #expect(health.allowance(window: 6) == 0)
    case .down(let until):
      #expect(health.cause != nil && health.until == until)
      #expect(until >= now && until <= after(.seconds(600)))
      #expect(health.allowance(window: 6) == 0)
    }
  }
}
