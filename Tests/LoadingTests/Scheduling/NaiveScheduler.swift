import HTTPTypes
import Platform

@testable import Loading

/// The scheduler written without regard to speed, as a model for the real one: arrays, searched from the front. Both
/// use the same `OriginHealth` and `ConcurrencyWindow`, which have tests of their own: this model checks that they get
/// the right events.
struct NaiveScheduler {

  struct Job {
    let id: JobID
    var key: TransferKey
    let origin: Origin
    /// The sequence number. Lower ones go first.
    var sequence: Int
    var phase = Scheduler.Phase.lookingUp
    /// When the next attempt is due, in the backing-off phase.
    var due: Instant?
    var attempt = 1
    var priority = Priority.lowest
    /// Whether all its subscribers, or the last of them, need a decoder.
    var isForDecodersAlone = true
    var isJoinable = true
    /// The running transfer: its start time, its start number, and the epoch of its origin's health at the start.
    var since = Instant.now
    var number = 0
    var epoch: UInt32 = 0
    var isAnswered = false
    /// When its transfer becomes quiet.
    var patientUntil = Instant.now
    var isQuiet = false
    var hasTimedOut = false
    /// Whether a running transfer waits for it.
    var isBeyondLimits = false
  }

  struct Subscriber {
    let id: LoadID
    var job: JobID
    var priority: Priority
    var needsDecoder: Bool
    var deadline: Instant?
  }

  var limits: SchedulerLimits {
    didSet {
      window.setBounds(limits.windowForAll)
      let limits = limits
      for known in origins {
        change(known.origin) { $0.window.setBounds(limits.window(isHTTP2: $0.isHTTP2)) }
        refresh(known.origin)
      }
    }
  }
  private(set) var window: ConcurrencyWindow
  var undecoded = PriorityCounts()
  var isPaused = false {
    didSet { if oldValue, !isPaused { awaited = jobs.filter { $0.phase == .lookingUp }.map(\.id) } }
  }
  /// The jobs that were in their cache lookup when a pause ended.
  private var awaited: [JobID] = []
  var awaitsLooks: Bool { awaited.contains { job($0)?.phase == .lookingUp } }
  var reserved = 0
  private(set) var jobs: [Job] = []
  private(set) var subscribers: [Subscriber] = []
  /// The queued jobs; among those of one origin and priority the first is next.
  private var queue: [JobID] = []
  /// The queued jobs that need no decoder; under decode backpressure the first of an origin and priority is next.
  private var freeQueue: [JobID] = []
  /// The known origins in the order of their creation.
  private(set) var origins: [Known] = []
  /// The origins that may start a job of each priority, in round-robin order.
  private var turns: [[Origin]] = Array(repeating: [], count: Priority.allCases.count)
  /// The same for origins with a job that needs no decoder, used under decode backpressure.
  private var freeTurns: [[Origin]] = Array(repeating: [], count: Priority.allCases.count)
  private var lastSequence = 0
  private var starts = 0
  private var originChanges = 0
  private var countedAtStarts = 0
  private var latest = Instant.now
  private var lastAnswer: Instant?
  /// The origins whose names must be looked up.
  private var namesToAsk: [Origin] = []
  /// The jobs that running transfers wait for, in the order in which that became known.
  private var beyondLimits: [JobID] = []
  /// How many suspensions ended because another origin answered.
  private(set) var releases = 0

  /// The state of an origin beside its jobs.
  struct Known {
    let origin: Origin
    var health = OriginHealth()
    var window: ConcurrencyWindow
    var activeAtStart = 0
    var name = Scheduler.Name.unknown
    var isHTTP2 = false
    /// How many transfers all origins had started when it last answered, and when its window last shrank.
    var startsAtLastAnswer = 0
    var lastShrink = 0
    var nextStart: Instant?
    var crawlDelay: Duration?
    /// The numbers of the changes that set `health.until` and `nextStart`: what was set first is due first.
    var untilChange = 0
    var nextStartChange = 0
    /// Whether it failed while no other origin answered.
    var isSuspected = false
    var forgetAt: Instant?

    var isAsNew: Bool { health.isClean && !window.hasLearned && !isHTTP2 && nextStart == nil }
  }

  init(limits: SchedulerLimits) {
    self.limits = limits
    window = ConcurrencyWindow(limits.windowForAll)
  }

  // MARK: - Queries

  func job(_ id: JobID) -> Job? { jobs.first { $0.id == id } }
  func loads(of id: JobID) -> [LoadID] { subscribers.filter { $0.job == id }.map(\.id) }
  func joinable(_ key: TransferKey) -> JobID? {
    jobs.first { $0.key == key && $0.isJoinable }?.id
  }
  func count(_ phase: Scheduler.Phase) -> Int { jobs.count { $0.phase == phase } }
  var backingOff: Int { count(.backingOff) }
  func known(_ origin: Origin) -> Known { origins.first { $0.origin == origin }! }
  func active(at origin: Origin) -> Int { jobs.count { $0.origin == origin && $0.phase == .active } }
  func mostActive(at origin: Origin) -> Int {
    known(origin).health.allowance(window: known(origin).window.size)
  }

  func isShut(_ origin: Origin) -> Bool {
    known(origin).name == .asked || known(origin).nextStart != nil || active(at: origin) >= mostActive(at: origin)
  }

  func isDown(_ origin: Origin) -> Bool { known(origin).health.isDown }

  var deferred: Int { count(.awaitingPeer) + count(.awaitingCache) + count(.awaitingPermission) }

  var counted: Int { jobs.count { $0.phase == .active && !$0.isQuiet } }

  var hasFreePermit: Bool {
    counted < window.size && count(.active) < min(limits.maxTransfers, 2 * window.size)
      && count(.storing) < limits.maxFinishing
  }

  /// The state for `stats`; nil for an origin that is only kept.
  func state(of origin: Origin) -> OriginState? {
    let (known, own) = (known(origin), jobs.filter { $0.origin == origin })
    guard !own.isEmpty || known.health.until != nil else { return nil }
    let waiting = own.count {
      [.waiting, .backingOff, .awaitingPeer, .awaitingCache, .awaitingPermission].contains($0.phase)
    }
    return OriginState(
      origin: origin, active: active(at: origin), waiting: waiting, window: known.window.size, health: health(known),
      heldUntil: known.health.until, reason: waiting > 0 ? reason(known) : nil)
  }

  private func health(_ known: Known) -> OriginState.Health {
    switch known.health.state {
    case .suspended: .suspended
    case .probing: .probing
    case .down: .down
    case .healthy: known.window.isRefused ? .limited : .healthy
    }
  }

  private func reason(_ known: Known) -> WaitReason? {
    if known.health.state != .healthy {
      switch known.health.cause {
      case .retryAfter: return .retryAfter
      case .unavailable: return .unavailable
      case .unreachable: return .unreachable
      case .unresponsive: return .unresponsive
      case nil: break
      }
    }
    if isPaused { return .paused }
    let own = jobs.filter { $0.origin == known.origin }
    if own.contains(where: { $0.phase == .awaitingPermission }) { return .robots }
    if !own.contains(where: { $0.phase == .waiting }) {
      if own.contains(where: { $0.phase == .awaitingPeer }) { return .otherWorker }
      return own.contains { $0.phase == .awaitingCache } ? .concurrencyLimit : .retry
    }
    if known.name == .asked { return .resolving }
    if active(at: known.origin) >= known.window.size { return .perHostLimit }
    if known.nextStart != nil { return .rate }
    let areHeldBack = own.allSatisfy { $0.phase != .waiting || waitsForDecoders($0.id) }
    return hasFreePermit && !areHeldBack ? nil : .concurrencyLimit
  }

  var nextTimer: Instant? {
    (jobs.compactMap(\.due) + subscribers.compactMap(\.deadline) + origins.compactMap(\.health.until)
      + origins.compactMap(\.nextStart) + origins.compactMap(\.forgetAt)).min()
  }

  // MARK: - Subscribing

  /// - Parameter new: the ID of the job if it must be created.
  mutating func subscribe(
    _ id: LoadID, to key: TransferKey, of origin: Origin, priority: Priority, needsDecoder: Bool, deadline: Instant?,
    new: JobID
  ) -> Scheduler.Subscription {
    let subscription: Scheduler.Subscription
    let job: JobID
    if let existing = joinable(key) {
      job = existing
      let known = self.job(existing)!
      subscription = .joined(existing, attempt: known.phase == .active ? known.attempt : nil)
    } else {
      job = new
      subscription = .created(new)
      jobs.append(Job(id: new, key: key, origin: origin, sequence: nextSequence(.asItComes)))
      if !origins.contains(where: { $0.origin == origin }) {
        origins.append(Known(origin: origin, window: ConcurrencyWindow(limits.window(isHTTP2: false))))
      }
      change(origin) { $0.forgetAt = nil }
    }
    subscribers.append(
      Subscriber(id: id, job: job, priority: priority, needsDecoder: needsDecoder, deadline: deadline))
    updatePriority(of: job)
    return subscription
  }

  mutating func unsubscribe(_ id: LoadID) -> Scheduler.UnsubscribeResult {
    guard let index = subscribers.firstIndex(where: { $0.id == id }) else { return .unknown }
    let id = subscribers.remove(at: index).job
    guard loads(of: id).isEmpty else {
      updatePriority(of: id)
      return .stillNeeded
    }
    switch job(id)!.phase {
    case .storing: return .stillNeeded
    case .active: return .orphanedTransfer(id)
    default:
      _ = end(id)
      return .orphanedJob(id)
    }
  }

  mutating func setPriority(_ priority: Priority, of id: LoadID) -> Bool {
    guard let index = subscribers.firstIndex(where: { $0.id == id }), subscribers[index].priority != priority else {
      return false
    }
    subscribers[index].priority = priority
    updatePriority(of: subscribers[index].job)
    return true
  }

  // MARK: - Phases

  mutating func enqueue(_ id: JobID, isPermitted: Bool = true) -> Scheduler.Admission {
    guard let job = job(id),
      [.lookingUp, .awaitingPeer, .awaitingCache, .awaitingPermission].contains(job.phase)
    else { return .accepted }
    if isDown(job.origin) { return .originDown }
    if job.phase != .lookingUp {
      if !isPermitted {
        change(id) { $0.phase = .awaitingPermission }
      } else if job.phase == .awaitingPermission {
        setWaiting(id)
      } else {
        putBack(id)
      }
      return .accepted
    }
    let startsAtOnce =
      count(.waiting) == 0 && !isPaused && !awaitsLooks && hasFreePermit && !isShut(job.origin) && !waitsForDecoders(id)
    guard count(.waiting) + backingOff + deferred + reserved < limits.maxQueued || startsAtOnce else {
      return .queueFull
    }
    if isPermitted { setWaiting(id) } else { change(id) { $0.phase = .awaitingPermission } }
    return .accepted
  }

  private mutating func setWaiting(_ id: JobID) {
    change(id) { $0.phase = .waiting }
    addToQueue(id)
    refresh(job(id)!.origin)
    askForName(of: job(id)!.origin)
  }

  mutating func takeStarts(at now: Instant) -> [JobID] {
    latest = now
    var starts = startsBeyondLimits
    for id in starts {
      takeFromQueue(id)
      start(id, at: job(id)!.origin)
    }
    while !isPaused, !awaitsLooks, hasFreePermit, let row = turns.indices.last(where: { !turnsNow($0).isEmpty }) {
      let level = Priority.allCases[row]
      let origin = turnsNow(row).first!
      turns[row].removeAll { $0 == origin }
      freeTurns[row].removeAll { $0 == origin }
      let waiting = (areDecodersBehind(at: level) ? freeQueue : queue).filter {
        job($0)!.origin == origin && job($0)!.priority == level
      }
      let id = limits.order == .fifo ? waiting.first! : waiting.last!
      takeFromQueue(id)
      start(id, at: origin)
      starts.append(id)
    }
    countedAtStarts = counted
    return starts
  }

  mutating func setCrawlDelay(_ delay: Duration?, forOriginOf id: JobID) {
    if let origin = job(id)?.origin { change(origin) { $0.crawlDelay = delay } }
  }

  mutating func startBeyondLimits(_ id: JobID) {
    guard let job = job(id), !job.isBeyondLimits else { return }
    change(id) { $0.isBeyondLimits = true }
    beyondLimits.append(id)
  }

  /// The jobs that start whatever the limits, the decoders and the lookups after a pause are.
  private var startsBeyondLimits: [JobID] {
    guard !isPaused else { return [] }
    return beyondLimits.filter { id in
      guard let job = job(id), job.phase == .waiting else { return false }
      return known(job.origin).name != .asked && known(job.origin).health.until == nil
    }
  }

  private mutating func start(_ id: JobID, at origin: Origin) {
    starts += 1
    let (number, now, epoch) = (starts, latest, known(origin).health.epoch)
    let interval = [limits.startInterval, known(origin).crawlDelay].compactMap(\.self).filter { $0 > .zero }.max()
    change(id) {
      ($0.phase, $0.since, $0.number, $0.epoch) = (.active, now, number, epoch)
      ($0.isAnswered, $0.isQuiet, $0.hasTimedOut) = (false, false, false)
      $0.patientUntil = now.advanced(by: Scheduler.patience)
    }
    window.started(at: now)
    let active = active(at: origin)
    change(origin) {
      $0.activeAtStart = active
      $0.window.started(at: now)
      if let interval { $0.nextStart = now.advanced(by: interval) }
    }
    refresh(origin)
  }

  /// - Parameter answered: false for a transfer whose request has not been sent yet.
  mutating func findQuiet(at now: Instant, answered: [JobID: Bool]) {
    latest = now
    for job in jobs where job.phase == .active && !job.isAnswered && !job.isQuiet && job.patientUntil <= latest {
      switch answered[job.id] {
      case true?: change(job.id) { $0.isAnswered = true }
      case false?: change(job.id) { $0.patientUntil = now.advanced(by: Scheduler.patience) }
      case nil: change(job.id) { $0.isQuiet = true }
      }
    }
  }

  /// When a slot becomes free because a transfer becomes quiet, if one is needed.
  var nextQuiet: Instant? {
    guard !isPaused, counted >= window.size, turns.indices.contains(where: { !turnsNow($0).isEmpty }) else {
      return nil
    }
    return jobs.filter { $0.phase == .active && !$0.isAnswered && !$0.isQuiet }.map(\.patientUntil).min()
  }

  /// Releases the slot. Must be called while the job is still active.
  private mutating func release(_ job: Job) {
    guard job.phase == .active, job.isAnswered else { return }
    let (counted, active, now) = (counted, active(at: job.origin), latest)
    let before = waiting(for: job.origin).isEmpty ? active : max(active, known(job.origin).activeAtStart)
    window.answered(active: max(counted, countedAtStarts), at: now)
    change(job.origin) { $0.window.answered(active: before, at: now) }
  }

  mutating func deferTransfer(of id: JobID, as phase: Scheduler.Phase) {
    guard let job = job(id), job.phase == .active || (job.phase, phase) == (.awaitingPeer, .awaitingCache) else {
      return
    }
    release(job)
    change(id) { $0.phase = phase }
    refresh(job.origin)
  }

  private mutating func putBack(_ id: JobID) {
    let sequence = nextSequence(job(id)!.hasTimedOut ? .last : .first)
    change(id) { ($0.phase, $0.due, $0.sequence) = (.waiting, nil, sequence) }
    addToQueue(id)
    refresh(job(id)!.origin)
    askForName(of: job(id)!.origin)
  }

  mutating func finish(_ id: JobID) {
    guard let job = job(id), job.phase == .active else { return }
    release(job)
    change(id) { $0.phase = .storing }
    refresh(job.origin)
  }

  mutating func record(
    _ signal: TransferSignal, by id: JobID, isHTTP2: Bool = false, now: Instant, random: inout SeededChance,
    answered: Set<JobID> = []
  ) -> [JobID] {
    guard let job = job(id), job.phase == .active else { return [] }
    latest = now
    let before = known(job.origin)
    var signal = signal
    if signal == .unresponsive { change(id) { $0.hasTimedOut = true } }
    let isAnswering = jobs.contains {
      $0.origin == job.origin && $0.phase == .active && $0.id != id && ($0.isAnswered || answered.contains($0.id))
    }
    if job.number <= before.startsAtLastAnswer || isAnswering {
      switch signal {
      case .closed: signal = .broken
      case .unreachable, .unresponsive: signal = .inconclusive
      default: break
      }
    }
    if signal.isAnswer { change(id) { $0.isAnswered = true } }
    let (starts, active, limits) = (starts, active(at: job.origin), limits)
    change(job.origin) { known in
      if isHTTP2, !known.isHTTP2 {
        known.isHTTP2 = true
        known.window.setBounds(limits.window(isHTTP2: true))
      }
      let consequence = known.health.record(
        signal, epoch: job.epoch, startedAt: job.since, now: now, random: &random)
      switch consequence {
      case .congested where job.number > known.lastShrink:
        known.lastShrink = starts
        known.window.refused(active: active, at: now)
      case .restarted: known.window = ConcurrencyWindow(limits.window(isHTTP2: known.isHTTP2))
      case .none, .congested: break
      }
    }
    let after = known(job.origin)
    suspect(job.origin, before)
    refresh(job.origin)
    if signal.isAnswer {
      change(job.origin) { $0.startsAtLastAnswer = starts }
      hear()
    }
    let epoch = known(job.origin).health.epoch
    change(id) { $0.epoch = epoch }
    return after.health.isDown && !before.health.isDown ? waiting(for: job.origin) : []
  }

  private mutating func askForName(of origin: Origin) {
    let known = known(origin)
    guard jobs.contains(where: { $0.origin == origin && $0.phase == .waiting }), known.name == .unknown,
      active(at: origin) == 0, known.health.until == nil,
      origins.count(where: { $0.name == .asked }) < limits.maxLookUps
    else { return }
    change(origin) { $0.name = .asked }
    namesToAsk.append(origin)
    refresh(origin)
  }

  mutating func takeNamesToAsk() -> [Origin] {
    defer { namesToAsk = [] }
    return namesToAsk
  }

  mutating func nameFound(_ origin: Origin) {
    guard origins.contains(where: { $0.origin == origin && $0.name == .asked }) else { return }
    change(origin) { $0.name = .found }
    refresh(origin)
  }

  mutating func nameUnanswered(_ origin: Origin, now: Instant, random: inout SeededChance) -> [JobID] {
    guard let before = origins.first(where: { $0.origin == origin && $0.name == .asked }) else { return [] }
    latest = now
    let limits = limits
    change(origin) { known in
      known.name = .unknown
      let consequence = known.health.record(
        .unreachable, epoch: known.health.epoch, startedAt: now, now: now, random: &random)
      if consequence == .restarted { known.window = ConcurrencyWindow(limits.window(isHTTP2: known.isHTTP2)) }
    }
    suspect(origin, before)
    refresh(origin)
    forgetIfIdle(origin)
    return known(origin).health.isDown && !before.health.isDown ? waiting(for: origin) : []
  }

  /// Records a possible local outage: no other origin has answered since this one first failed.
  private mutating func suspect(_ origin: Origin, _ before: Known) {
    let after = known(origin)
    if let since = after.health.failingSince, after.health.until != nil, after.health.until != before.health.until,
      lastAnswer == nil || lastAnswer! < since
    {
      change(origin) { $0.isSuspected = true }
    }
  }

  private func waiting(for origin: Origin) -> [JobID] {
    Priority.allCases.reversed().flatMap { level in
      queue.filter { job($0)!.origin == origin && job($0)!.priority == level }
    }
  }

  /// Gives each suspected origin a probe.
  private mutating func hear() {
    lastAnswer = latest
    for known in origins where known.isSuspected {
      change(known.origin) { $0.isSuspected = false }
      guard known.health.failingSince != nil, let until = known.health.until else { continue }
      releases += 1
      change(known.origin) { _ = $0.health.release(at: until) }
      refresh(known.origin)
      askForName(of: known.origin)
    }
  }

  mutating func retry(
    _ id: JobID, retryAfter: Duration?, now: Instant, random: inout SeededChance
  ) -> Scheduler.Failure {
    guard let job = job(id), job.phase == .active else { return .final }
    latest = now
    guard job.attempt <= job.key.retries, !loads(of: id).isEmpty, !isDown(job.origin) else { return .final }
    let ceilings = [500, 1000, 2000, 4000, 8000, 16_000]
    let ceiling = job.attempt <= ceilings.count ? ceilings[job.attempt - 1] : 30_000
    var delay = Duration.milliseconds(Int.random(in: 0...ceiling, using: &random))
    if let retryAfter {
      if retryAfter > .seconds(120) { return .final }
      delay = max(delay, retryAfter)
    }
    let due = now.advanced(by: delay)
    let start = max(due, known(job.origin).health.until ?? due)
    guard subscribers.contains(where: { $0.job == id && ($0.deadline.map { $0 > start } ?? true) }) else {
      return .final
    }
    release(job)
    change(id) {
      $0.phase = .backingOff
      $0.due = due
      $0.attempt += 1
    }
    refresh(job.origin)
    return .retry(attempt: job.attempt + 1, delay: now.duration(to: start))
  }

  mutating func end(_ id: JobID) -> [LoadID] {
    guard let job = job(id) else { return [] }
    let waited = loads(of: id)
    release(job)
    subscribers.removeAll { $0.job == id }
    takeFromQueue(id)
    jobs.removeAll { $0.id == id }
    beyondLimits.removeAll { $0 == id }
    refresh(job.origin)
    forgetIfIdle(job.origin)
    return waited
  }

  mutating func detach(_ id: JobID) { change(id) { $0.isJoinable = false } }

  mutating func expired(at now: Instant) -> Scheduler.Expired {
    latest = now
    var expired = Scheduler.Expired()
    while let due = nextTimer, due <= now {
      if let index = subscribers.firstIndex(where: { $0.deadline == due }) {
        subscribers[index].deadline = nil
        expired.loads.append(subscribers[index].id)
      } else if let job = jobs.first(where: { $0.due == due }) {
        change(job.id) { $0.due = nil }
        if isDown(job.origin) { expired.jobs.append(job.id) } else { putBack(job.id) }
      } else if let origin = firstReleased(at: due) {
        change(origin) {
          if $0.health.until == due { _ = $0.health.release(at: due) }
          if $0.nextStart == due { $0.nextStart = nil }
        }
        refresh(origin)
        askForName(of: origin)
      } else {
        for known in origins where known.forgetAt == due { forget(known.origin) }
      }
    }
    let isEnding = expired.jobs.map { id in jobs.contains { $0.id == id && isDown($0.origin) } }
    for (job, isEnding) in zip(expired.jobs, isEnding) where !isEnding { putBack(job) }
    expired.jobs = zip(expired.jobs, isEnding).filter(\.1).map(\.0)
    return expired
  }

  private func firstReleased(at due: Instant) -> Origin? {
    let held = origins.filter { $0.health.until == due }.map { ($0.untilChange, $0.origin) }
    let paced = origins.filter { $0.nextStart == due }.map { ($0.nextStartChange, $0.origin) }
    return (held + paced).min { $0.0 < $1.0 }?.1
  }

  /// The loads that cannot wait until their jobs may start.
  func tooLate(at now: Instant) -> Set<LoadID> {
    let loads = subscribers.filter { load in
      guard let job = job(load.job), [.waiting, .backingOff, .awaitingPermission].contains(job.phase) else {
        return false
      }
      let known = known(job.origin)
      let isPaced = max(limits.startInterval ?? .zero, known.crawlDelay ?? .zero) >= .seconds(1)
      let next = isPaced ? known.nextStart : nil
      let starts = [job.due, known.health.until, next].compactMap(\.self)
      let isRateTooLow = next.map { now.duration(to: $0) > .seconds(120) } ?? false
      let isSiteTooSlow = isRateTooLow && next == starts.max() && known.crawlDelay ?? .zero > .seconds(120)
      return isSiteTooSlow || starts.contains { start in load.deadline.map { $0 <= start } ?? false }
    }
    return Set(loads.map(\.id))
  }

  // MARK: - Internals

  private mutating func change(_ id: JobID, _ body: (inout Job) -> Void) {
    if let index = jobs.firstIndex(where: { $0.id == id }) { body(&jobs[index]) }
  }

  private mutating func change(_ origin: Origin, _ body: (inout Known) -> Void) {
    guard let index = origins.firstIndex(where: { $0.origin == origin }) else { return }
    let (until, nextStart) = (origins[index].health.until, origins[index].nextStart)
    body(&origins[index])
    originChanges += 1
    if origins[index].health.until != until { origins[index].untilChange = originChanges }
    if origins[index].nextStart != nextStart { origins[index].nextStartChange = originChanges }
  }

  private mutating func updatePriority(of id: JobID) {
    let old = job(id)!
    let own = subscribers.filter { $0.job == id }
    guard let new = own.map(\.priority).max() else { return }
    change(id) { $0.isForDecodersAlone = own.allSatisfy(\.needsDecoder) }
    if new != old.priority {
      let sequence = nextSequence(new < old.priority ? .first : .asItComes)
      change(id) { ($0.priority, $0.sequence) = (new, sequence) }
    }
    sortQueue()
    let isFree = !job(id)!.isForDecodersAlone
    if new != old.priority || isFree == old.isForDecodersAlone {
      freeQueue.removeAll { $0 == id }
      addIfFree(id)
    }
    refresh(old.origin)
  }

  private mutating func takeFromQueue(_ id: JobID) {
    queue.removeAll { $0 == id }
    freeQueue.removeAll { $0 == id }
  }

  private mutating func addToQueue(_ id: JobID) {
    queue.append(id)
    sortQueue()
    addIfFree(id)
  }

  /// The sequence numbers are looked up once, since this takes much of the time of a model test.
  private mutating func sortQueue() {
    let sequences = Dictionary(uniqueKeysWithValues: jobs.map { ($0.id, $0.sequence) })
    queue.sort { sequences[$0]! < sequences[$1]! }
  }

  /// Adds a job behind the others that need no decoder, unless it is ahead of all of them.
  private mutating func addIfFree(_ id: JobID) {
    let own = job(id)!
    guard own.phase == .waiting, !own.isForDecodersAlone else { return }
    let first = freeQueue.firstIndex { job($0)!.origin == own.origin && job($0)!.priority == own.priority }
    if let first, own.sequence < job(freeQueue[first])!.sequence {
      freeQueue.insert(id, at: first)
    } else {
      freeQueue.append(id)
    }
  }

  private mutating func nextSequence(_ turn: Scheduler.QueuePosition) -> Int {
    lastSequence += 1
    switch turn {
    case .first: return limits.order == .fifo ? -lastSequence : lastSequence
    case .asItComes: return lastSequence
    case .last: return limits.order == .fifo ? lastSequence : -lastSequence
    }
  }

  // MARK: - Decoders

  private func areDecodersBehind(at level: Priority) -> Bool {
    Priority.allCases.filter { $0 >= level }.map { undecoded[$0] }.reduce(0, +) >= limits.maxUndecoded
  }

  func waitsForDecoders(_ id: JobID) -> Bool {
    areDecodersBehind(at: job(id)!.priority) && job(id)!.isForDecodersAlone
  }

  private func turnsNow(_ row: Int) -> [Origin] {
    areDecodersBehind(at: Priority.allCases[row]) ? freeTurns[row] : turns[row]
  }

  private mutating func refresh(_ origin: Origin) {
    let isOpen = !isShut(origin)
    for row in turns.indices {
      let waiting = jobs.filter {
        $0.origin == origin && $0.phase == .waiting && $0.priority == Priority.allCases[row]
      }
      Self.keep(origin, in: &turns[row], isOpen && !waiting.isEmpty)
      Self.keep(origin, in: &freeTurns[row], isOpen && waiting.contains { !$0.isForDecodersAlone })
    }
  }

  private static func keep(_ origin: Origin, in turns: inout [Origin], _ isWanted: Bool) {
    if !isWanted { turns.removeAll { $0 == origin } }
    if isWanted && !turns.contains(origin) { turns.append(origin) }
  }

  /// Keeps an origin for ten minutes if its state is worth keeping.
  private mutating func forgetIfIdle(_ origin: Origin) {
    let known = known(origin)
    guard !jobs.contains(where: { $0.origin == origin }), known.forgetAt == nil else { return }
    if known.isAsNew {
      forget(origin)
    } else {
      let due = max(latest.advanced(by: .seconds(600)), known.health.until ?? latest)
      change(origin) { $0.forgetAt = due }
    }
  }

  private mutating func forget(_ origin: Origin) {
    origins.removeAll { $0.origin == origin }
    namesToAsk.removeAll { $0 == origin }
  }
}
