internal import Platform

/// The limit of concurrent transfers, adapted to measured throughput.
///
/// A pure value: each start and each answer of a transfer is an event, and `size` follows. It seeks the plateau of
/// throughput: the smallest window beyond which more transfers do not complete faster.
///
/// - *Opening*: the window doubles while throughput grows with it.
/// - *Holding*: at the plateau. At intervals it probes a window that is a quarter larger, or half as large if transfers
///   seem to wait for each other. Probes without a gain become rarer.
/// - *Recovering* after a refusal: the window is halved, then grows a little each round up to the size that was
///   refused, which is not tried again for `refusalMemory`.
///
/// Windows are compared by *rounds*: as many answers as the window has transfers, counted after the answers to
/// transfers that started before the window changed. A round in which the window was not full, because nothing was
/// queued or another limit applied, is ignored.
///
/// `Tests/Benchmarks/README.md` compares this with two other ways to find the size, and with the best fixed windows.
struct ConcurrencyWindow: Sendable {

  /// The initial and the maximum size of a window.
  struct Bounds: Equatable, Sendable {
    var initial: Int
    var max: Int

    static func fixed(_ size: Int) -> Self { Bounds(initial: size, max: size) }
    var isFixed: Bool { initial == max }
  }

  /// The throughput of a window of `size`, in answers per second.
  private struct Measure {
    var size: Int
    var rate: Double
    /// The duration of a transfer in seconds, by Little's law.
    var delay: Double { Double(size) / rate }
  }

  private enum Phase {
    var isRecovering: Bool { if case .recovering = self { true } else { false } }

    /// With the measure of the smaller window before, if there was one.
    case opening(after: Measure?)
    case holding
    case probing(from: Measure)
    case recovering
  }

  private struct Round {
    /// The number of pending answers to transfers that started before the window changed.
    var skip = 0
    /// When the window changed.
    var changedAt: Instant?
    /// When counting began.
    var begin: Instant?
    var answers = 0
    /// The answers that arrived while the window was not full.
    var unfilled = 0
  }

  /// The minimum answers in a round: fewer reflect chance more than the origin.
  private static let minAnswers = 8
  /// The interval after a probe without a gain: at first, and at most.
  private static let upIntervals = (first: Duration.milliseconds(250), max: Duration.seconds(2))
  private static let downIntervals = (first: Duration.seconds(2), max: Duration.seconds(8))
  private static let refusalMemory = (first: Duration.seconds(30), max: Duration.seconds(600))
  /// The transfer duration in seconds from which an opening window may triple: each round to a distant origin takes
  /// long.
  private static let longDelay = 0.15

  private(set) var size: Int
  private var bounds: Bounds
  private var phase = Phase.opening(after: nil)
  private var round = Round()
  private var lastRoundDuration: Duration?
  /// The throughput at the held size.
  private var heldRate = 0.0
  /// The throughput before a round with a large drop.
  private var rateBeforeDrop: Double?
  /// The shortest transfer duration of all rounds, taken as that of transfers that do not wait for each other.
  private var minDelay = Double.infinity
  private var nextProbeUp: Instant?
  private var nextProbeDown: Instant?
  /// Whether to probe a smaller window even if transfers do not seem to wait.
  private var mustProbeDown = false
  private var upInterval = upIntervals.first
  private var downInterval = downIntervals.first
  private var refusal: (size: Int, until: Instant, memory: Duration)?

  init(_ bounds: Bounds) {
    self.bounds = bounds
    size = bounds.initial
  }

  /// Whether it has learned anything worth keeping.
  var hasLearned: Bool { size != bounds.initial || refusal != nil }

  /// Whether it is below the limit because the origin refused transfers.
  var isRefused: Bool { (refusal.map { $0.size < .max } ?? false || phase.isRecovering) && size < bounds.max }

  mutating func setBounds(_ new: Bounds) {
    guard new != bounds else { return }
    bounds = new
    size = min(max(size, new.initial), ceiling)
    phase = .opening(after: nil)
    round = Round()
  }

  private var ceiling: Int { max(1, min(bounds.max, refusal.map { $0.size - 1 } ?? .max)) }

  // MARK: - Events

  mutating func started(at now: Instant) {
    if round.skip == 0, round.begin == nil { round.begin = now }
  }

  /// Records the answer to a transfer.
  ///
  /// - Parameter active: the number of running transfers, including this one.
  mutating func answered(active: Int, at now: Instant) {
    if let refusal, refusal.until <= now {
      // The refused size may be tried again. If it is refused again, that is remembered for longer.
      self.refusal?.size = .max
      if bounds.isFixed { size = bounds.max }
    }
    guard !bounds.isFixed || phase.isRecovering else { return }
    guard round.skip == 0, let begin = round.begin else {
      round.skip = max(0, round.skip - 1)
      if round.skip == 0 { round.begin = now }
      return
    }
    round.answers += 1
    if active < size { round.unfilled += 1 }
    let isOver = round.answers >= max(size, Self.minAnswers)
    guard isOver || hasTakenLong(at: now) else { return }
    let duration = begin.duration(to: now)
    let measure = Measure(size: size, rate: Double(round.answers) / max(duration / .seconds(1), 1e-6))
    let isFull = round.unfilled * 10 <= round.answers
    round = Round(begin: now)
    if isFull {
      if isOver { lastRoundDuration = duration }
      end(with: measure, active: active, at: now)
    } else if case .probing(let held) = phase {
      hold(held.size, held.rate, active: active, at: now)
    }
  }

  /// Records a refusal or a broken connection: 429, 503, a reset. Must be called once for all transfers of a burst.
  ///
  /// - Parameter active: the number of running transfers.
  mutating func refused(active: Int, at now: Instant) {
    let refused = max(1, min(size, active))
    var memory = Self.refusalMemory.first
    if let old = refusal { memory = refused <= old.size ? min(old.memory * 2, Self.refusalMemory.max) : old.memory }
    // A refused transfer that ran alone does not show that the window was too large: it came too soon.
    if refused > 1 { refusal = (refused, now.advanced(by: memory), memory) }
    phase = .recovering
    resize(refused / 2, active: active, at: now)
  }

  // MARK: - Rounds

  /// Whether a changed window takes so much longer for its round than the previous one did that it has no higher
  /// throughput.
  private func hasTakenLong(at now: Instant) -> Bool {
    guard round.answers >= Self.minAnswers, let changedAt = round.changedAt, let lastRoundDuration else { return false }
    return changedAt.duration(to: now) > lastRoundDuration * 2.5
  }

  private mutating func end(with measure: Measure, active: Int, at now: Instant) {
    let minDelayBefore = minDelay
    minDelay = min(minDelay, measure.delay)
    switch phase {
    case .opening(let before): open(after: before, measure, active: active, at: now)
    case .recovering:
      guard size < ceiling else { return hold(size, measure.rate, active: active, at: now) }
      resize(min(ceiling, size + max(1, size / 8)), active: active, at: now)
    case .holding: look(at: measure, active: active, at: now)
    case .probing(let held) where size > held.size:
      guard measure.rate / held.rate - 1 >= 0.5 * (Double(size) / Double(held.size) - 1) else {
        upInterval = min(upInterval * 2, Self.upIntervals.max)
        return hold(held.size, held.rate, active: active, at: now)
      }
      upInterval = Self.upIntervals.first
      open(after: nil, measure, active: active, at: now)
    case .probing(let held): endProbeDown(from: held, measure, minDelayBefore: minDelayBefore, active: active, at: now)
    }
  }

  private mutating func open(after before: Measure?, _ measure: Measure, active: Int, at now: Instant) {
    var factor = 2
    if let before {
      let gain = measure.rate / before.rate - 1
      let added = Double(size) / Double(before.size) - 1
      if gain < 0.25 * added {
        // No gain: even the smaller window may have been more than enough.
        if gain < 0.1 * added { (nextProbeDown, mustProbeDown) = (now, true) }
        return hold(enough(before, for: measure.rate), measure.rate, active: active, at: now)
      }
      if gain > 0.75 * added, measure.delay > Self.longDelay { factor = 3 }
    }
    guard size < ceiling else { return hold(size, measure.rate, active: active, at: now) }
    phase = .opening(after: measure)
    resize(min(ceiling, factor * size), active: active, at: now)
  }

  private mutating func look(at measure: Measure, active: Int, at now: Instant) {
    if let before = rateBeforeDrop {
      rateBeforeDrop = nil
      heldRate = measure.rate
      // Either a smaller window suffices now, or each transfer takes longer and all are needed. A probe of the smaller
      // window tells.
      let smaller = Int((Double(size) * measure.rate / before).rounded(.up))
      if smaller < size { return probe(max(1, smaller), active: active, at: now) }
    } else if measure.rate < 0.7 * heldRate, size > 1 {
      // The drop may have occurred during the round: measure the next one fully.
      rateBeforeDrop = heldRate
      return
    }
    if measure.rate > 1.3 * heldRate { nextProbeUp = now }
    heldRate = 0.75 * heldRate + 0.25 * measure.rate
    let seemsToWait = measure.delay > 1.5 * minDelay
    if size > 1, let due = nextProbeDown, now >= due, mustProbeDown || seemsToWait {
      probe(max(1, size / 2), active: active, at: now)
    } else if size < ceiling, let due = nextProbeUp, now >= due {
      probe(min(ceiling, size + max(1, size / 4)), active: active, at: now)
    }
  }

  private mutating func endProbeDown(
    from held: Measure, _ measure: Measure, minDelayBefore: Double, active: Int, at now: Instant
  ) {
    guard measure.rate / held.rate - 1 >= 0.25 * (Double(size) / Double(held.size) - 1) else {
      // All transfers were needed. The base duration may have grown.
      minDelay = 0.75 * minDelayBefore + 0.25 * measure.delay
      hold(min(held.size, enough(measure, for: held.rate)), held.rate, active: active, at: now)
      nextProbeDown = now.advanced(by: downInterval)
      downInterval = min(downInterval * 2, Self.downIntervals.max)
      return
    }
    // The smaller window has the same throughput. Try a still smaller one, unless transfers are already near their
    // shortest duration.
    downInterval = Self.downIntervals.first
    hold(size, measure.rate, active: active, at: now)
    if measure.delay < 0.8 * minDelayBefore || measure.delay > 1.5 * minDelayBefore {
      (nextProbeDown, mustProbeDown) = (now, true)
    } else {
      (nextProbeUp, nextProbeDown) = (now, now.advanced(by: downInterval))
    }
  }

  /// The window needed for `rate`, if all of `smaller` was needed for its rate, plus a tenth.
  private func enough(_ smaller: Measure, for rate: Double) -> Int {
    let size = Double(smaller.size) * max(1, rate / smaller.rate)
    return min(ceiling, max(Int(1.1 * size), Int(size.rounded(.up))))
  }

  // MARK: - Changes

  private mutating func probe(_ size: Int, active: Int, at now: Instant) {
    phase = .probing(from: Measure(size: self.size, rate: heldRate))
    mustProbeDown = false
    resize(size, active: active, at: now)
  }

  private mutating func hold(_ size: Int, _ rate: Double, active: Int, at now: Instant) {
    phase = .holding
    heldRate = rate
    nextProbeUp = now.advanced(by: upInterval)
    nextProbeDown = nextProbeDown ?? now.advanced(by: downInterval)
    if size != self.size { resize(size, active: active, at: now) }
  }

  private mutating func resize(_ size: Int, active: Int, at now: Instant) {
    self.size = max(1, size)
    rateBeforeDrop = nil
    round = Round(skip: max(0, active - 1), changedAt: now)
    if round.skip == 0 { round.begin = now }
  }
}
