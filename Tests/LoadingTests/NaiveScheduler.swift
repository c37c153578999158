import HTTPTypes

@testable import Loading

/// The scheduler as one would write it without a thought of speed: arrays, searched from the front. What the real one
/// does is compared with it.
struct NaiveScheduler {
  typealias Instant = ContinuousClock.Instant

  struct Job {
    let id: JobID
    var key: JobKey
    var sharedKey: JobKey?
    let origin: Origin
    /// Smaller ones go first.
    var place: Int
    var phase = Scheduler.Phase.preparing
    /// When the next attempt is due, while it backs off.
    var due: Instant?
    var attempt = 1
    var priority = Priority.lowest
    /// Whether all want it decoded who wait for it, or the last of them did.
    var isForDecodersAlone = true
    var isJoinable = true
    /// When its transfer started, by `steps`; a transfer in the place of another starts when that has ended.
    var startedAt = 0
    /// The slot that it has: when it got it, and how many got one before.
    var since = Instant.now
    var number = 0
    var isAnswered = false
    var isGivingWay = false
    var hasGivenWay = false
    var hasTimedOut = false
  }

  struct Subscriber {
    let id: LoadID
    var job: JobID
    var priority: Priority
    var needsDecoder: Bool
    var deadline: Instant?
  }

  var limits: SchedulerLimits { didSet { origins.forEach { refresh($0.origin) } } }
  var undecoded = PriorityCounts()
  var isPaused = false {
    didSet { if oldValue, !isPaused { awaited = jobs.filter { $0.phase == .preparing }.map(\.id) } }
  }
  /// The jobs that were being looked for when a pause ended.
  private var awaited: [JobID] = []
  var awaitsLooks: Bool { awaited.contains { job($0)?.phase == .preparing } }
  var reserved = 0
  private(set) var jobs: [Job] = []
  private(set) var subscribers: [Subscriber] = []
  /// The waiting jobs; of those of one origin and priority the first goes first.
  private var queue: [JobID] = []
  /// Those of them that are not for decoders alone: of one origin and priority the first goes first while the decoders
  /// are behind.
  private var freeQueue: [JobID] = []
  /// The known origins in the order of their coming.
  private(set) var origins: [Known] = []
  /// For each priority those that come last, then the others.
  private var turns: [[Origin]] = Array(repeating: [], count: 2 * Priority.allCases.count)
  /// Those of them that have a job that is not for a decoder alone: while the decoders are behind, these are the turns.
  private var freeTurns: [[Origin]] = Array(repeating: [], count: 2 * Priority.allCases.count)
  private var places = 0
  /// Counts starts and holds, to tell which came first.
  private var steps = 0
  private var starts = 0
  private var latest = Instant.now
  private var lastHeard: Instant?
  /// How many holds ended because another origin was heard of.
  private(set) var releases = 0
  /// How many jobs were not tried again because their origin had been given up.
  private(set) var givenUp = 0

  /// What is known of an origin beside its jobs.
  struct Known: Equatable {
    let origin: Origin
    var heldUntil: Instant?
    var cause: WaitReason?
    /// When the last hold began, by `steps`.
    var heldSince = 0
    /// Nil when only the limit counts.
    var allowance: Int?
    var refusals = 0
    var failures = 0
    /// When the first of these failed.
    var unreachableSince: Instant?
    /// Whether it could not be reached while no other was heard of.
    var isCutOff = false
    var hasAnswered = false
    /// How many transfers, one after the other, waited in vain, and how many of all had started when that was last told
    /// or it was heard of.
    var silences = 0
    var lastWord = 0
    /// The waiting job that goes first out of its turn.
    var next: JobID?
    var forgetAt: Instant?

    var isAsNew: Bool {
      heldUntil == nil && allowance == nil && refusals == 0 && failures == 0 && silences == 0
    }
  }

  init(limits: SchedulerLimits) { self.limits = limits }

  // MARK: - Looking

  func job(_ id: JobID) -> Job? { jobs.first { $0.id == id } }
  func loads(of id: JobID) -> [LoadID] { subscribers.filter { $0.job == id }.map(\.id) }
  func joinable(_ key: JobKey) -> JobID? {
    jobs.first { ($0.key == key || $0.sharedKey == key) && $0.isJoinable }?.id
  }
  func count(_ phase: Scheduler.Phase) -> Int { jobs.count { $0.phase == phase } }
  var backingOff: Int { count(.backingOff) }
  func known(_ origin: Origin) -> Known { origins.first { $0.origin == origin }! }
  func active(at origin: Origin) -> Int { jobs.count { $0.origin == origin && $0.phase == .active } }
  func mostActive(at origin: Origin) -> Int { min(known(origin).allowance ?? limits.maxPerOrigin, limits.maxPerOrigin) }

  func isShut(_ origin: Origin) -> Bool {
    known(origin).heldUntil != nil || active(at: origin) >= mostActive(at: origin)
  }

  /// Nobody knows whether it answers, and others may be about to come.
  func isSpared(_ origin: Origin) -> Bool {
    active(at: origin) > 0 && !known(origin).hasAnswered && count(.preparing) > 0
  }

  /// What `stats` tells; nil for an origin that is only remembered.
  func state(of origin: Origin) -> OriginState? {
    let (known, own) = (known(origin), jobs.filter { $0.origin == origin })
    guard !own.isEmpty || known.heldUntil != nil else { return nil }
    let waiting = own.count { [.waiting, .backingOff, .elsewhere].contains($0.phase) }
    return OriginState(
      origin: origin, active: active(at: origin), waiting: waiting, heldUntil: known.heldUntil,
      reason: waiting > 0 ? reason(known) : nil)
  }

  private func reason(_ known: Known) -> WaitReason? {
    if known.heldUntil != nil { return known.cause }
    if isPaused { return .paused }
    let own = jobs.filter { $0.origin == known.origin }
    if !own.contains(where: { $0.phase == .waiting }) {
      return own.contains { $0.phase == .elsewhere } ? .otherWorker : .retry
    }
    if active(at: known.origin) >= mostActive(at: known.origin) {
      if known.failures >= 5 { return .unreachable }
      return mostActive(at: known.origin) < limits.maxPerOrigin ? .readmission : .perHostLimit
    }
    let areHeldBack = own.allSatisfy { $0.phase != .waiting || waitsForDecoders($0.id) }
    return count(.active) >= limits.maxConcurrent || count(.finishing) >= limits.maxFinishing || areHeldBack
      ? .concurrencyLimit : nil
  }

  var nextTimer: Instant? {
    (jobs.compactMap(\.due) + subscribers.compactMap(\.deadline) + origins.compactMap(\.heldUntil)
      + origins.compactMap(\.forgetAt)).min()
  }

  // MARK: - Subscribing

  /// - Parameter new: what the job is called if there has to be one.
  mutating func subscribe(
    _ id: LoadID, to key: JobKey, of origin: Origin, priority: Priority, needsDecoder: Bool, deadline: Instant?,
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
      jobs.append(Job(id: new, key: key, origin: origin, place: nextPlace(.asItComes)))
      if !origins.contains(where: { $0.origin == origin }) { origins.append(Known(origin: origin)) }
      change(origin) { $0.forgetAt = nil }
    }
    subscribers.append(
      Subscriber(id: id, job: job, priority: priority, needsDecoder: needsDecoder, deadline: deadline))
    updatePriority(of: job)
    return subscription
  }

  mutating func leave(_ id: LoadID) -> Scheduler.Departure {
    guard let index = subscribers.firstIndex(where: { $0.id == id }) else { return .unknown }
    let id = subscribers.remove(at: index).job
    guard loads(of: id).isEmpty else {
      updatePriority(of: id)
      return .jobStays
    }
    switch job(id)!.phase {
    case .finishing: return .jobStays
    case .active: return .transferAbandoned(id)
    default:
      _ = end(id)
      return .jobAbandoned(id)
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

  mutating func share(_ id: JobID, under key: JobKey) -> JobID? {
    guard let job = job(id), job.isJoinable else { return nil }
    if let other = joinable(key) { return other == id ? nil : other }
    if job.sharedKey == nil { change(id) { $0.sharedKey = key } }
    return nil
  }

  mutating func rename(_ id: JobID, to key: JobKey) -> JobID? {
    guard let job = job(id), job.key != key else { return nil }
    if let other = joinable(key) { return other == id ? nil : other }
    change(id) { $0.key = key }
    return nil
  }

  mutating func merge(_ id: JobID, into other: JobID) -> [LoadID] {
    guard id != other, job(id) != nil, job(other) != nil else { return [] }
    var moved = subscribers.filter { $0.job == id }
    subscribers.removeAll { $0.job == id }
    for index in moved.indices { moved[index].job = other }
    subscribers += moved
    updatePriority(of: other)
    _ = end(id)
    return moved.map(\.id)
  }

  // MARK: - A job's way

  mutating func enqueue(_ id: JobID) -> Bool {
    guard let job = job(id), job.phase == .preparing || job.phase == .elsewhere else { return true }
    if job.phase == .elsewhere {
      putBack(id)
      return true
    }
    let startsAtOnce =
      count(.waiting) == 0 && !isPaused && !awaitsLooks && count(.active) < limits.maxConcurrent
      && count(.finishing) < limits.maxFinishing && known(job.origin).heldUntil == nil
      && active(at: job.origin) < mostActive(at: job.origin) && !waitsForDecoders(id)
    guard count(.waiting) + backingOff + count(.elsewhere) + reserved < limits.maxQueued || startsAtOnce else {
      return false
    }
    change(id) { $0.phase = .waiting }
    addToQueue(id)
    refresh(job.origin)
    return true
  }

  mutating func takeStarts(at now: Instant) -> [JobID] {
    latest = now
    var starts: [JobID] = []
    while !isPaused, !awaitsLooks, count(.active) < limits.maxConcurrent, count(.finishing) < limits.maxFinishing,
      let row = turns.indices.last(where: { !turnsNow($0).isEmpty && ($0 % 2 == 1 || count(.preparing) == 0) })
    {
      let level = Priority.allCases[row / 2]
      let origin = turnsNow(row).first!
      turns[row].removeAll { $0 == origin }
      freeTurns[row].removeAll { $0 == origin }
      let waiting = (areDecodersBehind(at: level) ? freeQueue : queue).filter {
        job($0)!.origin == origin && job($0)!.priority == level
      }
      let next = known(origin).next.flatMap { waitsForDecoders($0) ? nil : $0 }
      let id = next ?? (limits.order == .fifo ? waiting.first! : waiting.last!)
      takeFromQueue(id)
      steps += 1
      self.starts += 1
      let (step, number) = (steps, self.starts)
      change(id) {
        $0.phase = .active
        $0.startedAt = step
        ($0.since, $0.number, $0.isAnswered, $0.isGivingWay) = (now, number, false, false)
        $0.hasTimedOut = false
      }
      refresh(origin)
      starts.append(id)
    }
    return starts
  }

  /// Whether a slot more would be used at once, by an origin that answers or has none.
  var isShortOfSlots: Bool {
    !isPaused && count(.active) >= limits.maxConcurrent && count(.finishing) < limits.maxFinishing
      && !proven(at: .lowest).isEmpty
  }

  /// Of the origins that answer or have no transfer, and may start a job, those with one of the highest priority, if
  /// that is `level` or above.
  private func proven(at level: Priority, but own: Origin? = nil) -> [Origin] {
    for priority in Priority.allCases.reversed() where priority >= level {
      let found = origins.map(\.origin).filter { origin in
        origin != own && !isShut(origin) && (active(at: origin) == 0 || known(origin).hasAnswered)
          && jobs.contains {
            $0.origin == origin && $0.phase == .waiting && $0.priority == priority && !waitsForDecoders($0.id)
          }
      }
      if !found.isEmpty { return found }
    }
    return []
  }

  private func silentFrom(_ job: Job) -> Instant {
    job.since.advanced(by: known(job.origin).hasAnswered ? .seconds(5) : .seconds(1))
  }

  func isSilent(_ job: Job, at now: Instant) -> Bool {
    job.phase == .active && !job.isAnswered && !job.isGivingWay && silentFrom(job) <= now
  }

  /// When the next transfer becomes silent.
  var nextSilence: Instant? {
    jobs.filter { $0.phase == .active && !$0.isAnswered && !$0.isGivingWay }.map(silentFrom).filter { $0 > latest }
      .min()
  }

  mutating func makeWay(at now: Instant, answered: Set<JobID>) -> [JobID] {
    latest = now
    guard isShortOfSlots else { return [] }
    for job in jobs where answered.contains(job.id) && isSilent(job, at: now) {
      change(job.id) { $0.isAnswered = true }
    }
    let silent = jobs.filter { isSilent($0, at: now) }
    var chosen: [JobID] = []
    for level in Priority.allCases {
      for job in silent.sorted(by: { $0.number > $1.number }) where job.priority == level && !job.hasGivenWay {
        guard silent.contains(where: { $0.origin == job.origin && $0.number < job.number }) else { continue }
        let free = limits.maxConcurrent - count(.active) + jobs.count { $0.phase == .active && $0.isGivingWay }
        let wanted = proven(at: level, but: job.origin).count
        guard wanted > 0, free < wanted else { continue }
        change(job.id) { ($0.isGivingWay, $0.hasGivenWay) = (true, true) }
        if job.startedAt > known(job.origin).heldSince {
          change(job.origin) { ($0.allowance, $0.hasAnswered) = (1, false) }
        }
        refresh(job.origin)
        chosen.append(job.id)
      }
    }
    return chosen
  }

  mutating func giveWay(_ id: JobID) -> Bool {
    guard let job = job(id), job.phase == .active, job.isGivingWay, !loads(of: id).isEmpty else { return false }
    putBack(id)
    return true
  }

  mutating func putAside(_ id: JobID) {
    guard let job = job(id), job.phase == .active else { return }
    change(id) { $0.phase = .elsewhere }
    refresh(job.origin)
  }

  private mutating func putBack(_ id: JobID) {
    let place = nextPlace(job(id)!.hasTimedOut ? .last : .first)
    change(id) { ($0.phase, $0.due, $0.place) = (.waiting, nil, place) }
    addToQueue(id)
    refresh(job(id)!.origin)
  }

  mutating func finish(_ id: JobID) {
    guard let job = job(id), job.phase == .active else { return }
    change(id) { $0.phase = .finishing }
    refresh(job.origin)
  }

  mutating func note(
    _ contact: Contact, by id: JobID, now: Instant, random: inout SeededChance, answered: Set<JobID> = []
  ) -> Scheduler.FailedProbe? {
    guard let job = job(id), job.phase == .active else { return nil }
    latest = now
    steps += 1
    let before = known(job.origin)
    let isNews = job.startedAt > before.heldSince
    var probeFailed = false
    switch contact {
    case .refused(let wait?):
      if isNews {
        let count = before.refusals + (wait > .zero ? 1 : 0)
        change(job.origin) {
          ($0.failures, $0.silences, $0.refusals, $0.allowance, $0.hasAnswered) = (0, 0, count, 1, true)
        }
        probeFailed = wait > .zero && before.refusals >= 5
      }
      hold(job.origin, wait, .retryAfter, now)
    case .refused(nil) where isNews:
      change(job.origin) {
        ($0.failures, $0.silences, $0.refusals, $0.allowance, $0.hasAnswered) = (0, 0, $0.refusals + 1, 1, true)
      }
      let ceilings = [500, 1000, 2000, 4000, 8000, 16_000]
      let ceiling = before.refusals < ceilings.count ? ceilings[before.refusals] : 30_000
      hold(job.origin, .milliseconds(Int.random(in: ceiling / 2...ceiling, using: &random)), .unavailable, now)
      probeFailed = before.refusals >= 5
    case .unresponsive:
      change(id) { $0.hasTimedOut = true }
      let answering = jobs.contains {
        $0.origin == job.origin && $0.phase == .active && $0.id != id && ($0.isAnswered || answered.contains($0.id))
      }
      guard isNews && job.number > before.lastWord && !answering else { break }
      let (isGivenUp, started) = (before.silences >= 11, starts)
      change(job.origin) {
        ($0.allowance, $0.hasAnswered, $0.silences, $0.lastWord) = (
          isGivenUp ? nil : 1, false, $0.silences + 1, started
        )
      }
      chooseUntried(of: job.origin)
    case .answered where isNews:
      let limit = limits.maxPerOrigin
      change(job.origin) { known in
        (known.failures, known.refusals, known.silences, known.hasAnswered) = (0, 0, 0, true)
        if let allowance = known.allowance {
          known.allowance = allowance + 1 < limit ? allowance + 1 : nil
        }
      }
    case .unreachable where isNews:
      change(job.origin) {
        ($0.failures, $0.unreachableSince, $0.hasAnswered) = ($0.failures + 1, $0.unreachableSince ?? now, false)
      }
      if before.failures >= 4 {
        let ceilings = [1000, 2000, 4000, 8000, 16_000]
        let ceiling = before.failures - 4 < ceilings.count ? ceilings[before.failures - 4] : 30_000
        hold(job.origin, .milliseconds(Int.random(in: ceiling / 2...ceiling, using: &random)), .unreachable, now)
        probeFailed = before.failures >= 5
      }
    default: break
    }
    steps += 1
    let step = steps
    change(id) { $0.startedAt = step }
    if contact == .answered { change(id) { $0.isAnswered = true } }
    let after = known(job.origin)
    if after.failures == 0 { change(job.origin) { $0.unreachableSince = nil } }
    if after.heldUntil != before.heldUntil, after.cause == .unreachable, let since = after.unreachableSince,
      lastHeard == nil || lastHeard! < since
    {
      change(job.origin) { $0.isCutOff = true }
    }
    refresh(job.origin)
    switch contact {
    case .answered, .refused:
      let started = starts
      change(job.origin) { $0.lastWord = started }
      hear(now)
    default: break
    }
    return probeFailed ? failWaiting(at: job.origin, now) : nil
  }

  /// The first of those that have been tried least goes first.
  private mutating func chooseUntried(of origin: Origin) {
    let waiting = Priority.allCases.reversed().flatMap { level in
      queue.map { job($0)! }.filter { $0.origin == origin && $0.priority == level }
    }
    let untried = waiting.filter { job in !waiting.contains { $0.attempt < job.attempt } }
    let urgent = untried.filter { job in !untried.contains { $0.priority > job.priority } }
    if let next = limits.order == .fifo ? urgent.first : urgent.last { change(origin) { $0.next = next.id } }
  }

  /// Whoever was cut off may be there again.
  private mutating func hear(_ now: Instant) {
    lastHeard = now
    for known in origins where known.isCutOff {
      change(known.origin) { $0.isCutOff = false }
      guard known.heldUntil != nil, known.cause == .unreachable else { continue }
      change(known.origin) { $0.heldUntil = nil }
      releases += 1
      refresh(known.origin)
      forgetIfIdle(known.origin)
    }
  }

  private mutating func hold(_ origin: Origin, _ wait: Duration, _ cause: WaitReason, _ now: Instant) {
    let until = now.advanced(by: min(wait, .seconds(120)))
    let held = known(origin).heldUntil
    guard wait > .zero, held.map({ $0 < until }) ?? true else { return }
    change(origin) { ($0.heldUntil, $0.cause, $0.allowance) = (until, cause, 1) }
    let step = steps
    if held == nil { change(origin) { $0.heldSince = step } }
  }

  private mutating func failWaiting(at origin: Origin, _ now: Instant) -> Scheduler.FailedProbe {
    let until = known(origin).heldUntil!
    var failed = Scheduler.FailedProbe(delay: now.duration(to: until))
    for level in Priority.allCases.reversed() {
      for id in queue where job(id)!.origin == origin && job(id)!.priority == level {
        let isAwaited = subscribers.contains { $0.job == id && ($0.deadline.map { $0 > until } ?? true) }
        if isAwaited && job(id)!.attempt <= job(id)!.key.retries {
          change(id) { $0.attempt += 1 }
          failed.retrying.append(id)
        } else {
          failed.exhausted.append(id)
        }
      }
    }
    return failed
  }

  mutating func retry(
    _ id: JobID, retryAfter: Duration?, now: Instant, random: inout SeededChance
  ) -> Scheduler.Failure {
    guard let job = job(id), job.phase == .active else { return .final }
    latest = now
    guard job.attempt <= job.key.retries, !loads(of: id).isEmpty else { return .final }
    if job.hasTimedOut && known(job.origin).silences >= 12 {
      givenUp += 1
      return .final
    }
    let ceilings = [500, 1000, 2000, 4000, 8000, 16_000]
    let ceiling = job.attempt <= ceilings.count ? ceilings[job.attempt - 1] : 30_000
    var delay = Duration.milliseconds(Int.random(in: 0...ceiling, using: &random))
    if let retryAfter {
      if retryAfter > .seconds(120) { return .final }
      delay = max(delay, retryAfter)
    }
    let due = now.advanced(by: delay)
    guard subscribers.contains(where: { $0.job == id && ($0.deadline.map { $0 > due } ?? true) }) else { return .final }
    change(id) {
      $0.phase = .backingOff
      $0.due = due
      $0.attempt += 1
    }
    refresh(job.origin)
    let held = known(job.origin).heldUntil.map { now.duration(to: $0) }
    return .retry(attempt: job.attempt + 1, delay: max(delay, held ?? .zero))
  }

  mutating func end(_ id: JobID) -> [LoadID] {
    guard let job = job(id) else { return [] }
    let waited = loads(of: id)
    subscribers.removeAll { $0.job == id }
    takeFromQueue(id)
    jobs.removeAll { $0.id == id }
    refresh(job.origin)
    forgetIfIdle(job.origin)
    return waited
  }

  mutating func detach(_ id: JobID) { change(id) { $0.isJoinable = false } }

  mutating func expired(at now: Instant) -> [LoadID] {
    latest = now
    var late: [LoadID] = []
    while let due = nextTimer, due <= now {
      if let index = subscribers.firstIndex(where: { $0.deadline == due }) {
        subscribers[index].deadline = nil
        late.append(subscribers[index].id)
      } else if let job = jobs.first(where: { $0.due == due }) {
        putBack(job.id)
      } else if let origin = origins.first(where: { $0.heldUntil == due })?.origin {
        change(origin) { $0.heldUntil = nil }
        refresh(origin)
        forgetIfIdle(origin)
      } else {
        origins.removeAll { $0.forgetAt == due }
      }
    }
    return late
  }

  // MARK: - Inside

  private mutating func change(_ id: JobID, _ body: (inout Job) -> Void) {
    if let index = jobs.firstIndex(where: { $0.id == id }) { body(&jobs[index]) }
  }

  private mutating func change(_ origin: Origin, _ body: (inout Known) -> Void) {
    if let index = origins.firstIndex(where: { $0.origin == origin }) { body(&origins[index]) }
  }

  private mutating func updatePriority(of id: JobID) {
    let old = job(id)!
    let own = subscribers.filter { $0.job == id }
    guard let new = own.map(\.priority).max() else { return }
    change(id) { $0.isForDecodersAlone = own.allSatisfy(\.needsDecoder) }
    if new != old.priority {
      let place = nextPlace(new < old.priority ? .first : .asItComes)
      change(id) { ($0.priority, $0.place) = (new, place) }
    }
    queue = queue.sorted { job($0)!.place < job($1)!.place }
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
    for known in origins where known.next == id { change(known.origin) { $0.next = nil } }
  }

  private mutating func addToQueue(_ id: JobID) {
    queue = (queue + [id]).sorted { job($0)!.place < job($1)!.place }
    addIfFree(id)
  }

  /// Behind the others that are free, unless it is before all of them.
  private mutating func addIfFree(_ id: JobID) {
    let own = job(id)!
    guard own.phase == .waiting, !own.isForDecodersAlone else { return }
    let first = freeQueue.firstIndex { job($0)!.origin == own.origin && job($0)!.priority == own.priority }
    if let first, own.place < job(freeQueue[first])!.place {
      freeQueue.insert(id, at: first)
    } else {
      freeQueue.append(id)
    }
  }

  private mutating func nextPlace(_ turn: Scheduler.Turn) -> Int {
    places += 1
    switch turn {
    case .first: return limits.order == .fifo ? -places : places
    case .asItComes: return places
    case .last: return limits.order == .fifo ? places : -places
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
    areDecodersBehind(at: Priority.allCases[row / 2]) ? freeTurns[row] : turns[row]
  }

  private mutating func refresh(_ origin: Origin) {
    let comesLast = active(at: origin) > 0 && !known(origin).hasAnswered
    for row in turns.indices {
      let level = Priority.allCases[row / 2]
      let waiting = jobs.filter { $0.origin == origin && $0.phase == .waiting && $0.priority == level }
      let takesTurns = !isShut(origin) && comesLast == row.isMultiple(of: 2)
      Self.keep(origin, in: &turns[row], takesTurns && !waiting.isEmpty)
      Self.keep(origin, in: &freeTurns[row], takesTurns && waiting.contains { !$0.isForDecodersAlone })
    }
  }

  private static func keep(_ origin: Origin, in turns: inout [Origin], _ isWanted: Bool) {
    if !isWanted { turns.removeAll { $0 == origin } }
    if isWanted && !turns.contains(origin) { turns.append(origin) }
  }

  /// What is worth it is remembered for a minute.
  private mutating func forgetIfIdle(_ origin: Origin) {
    let known = known(origin)
    guard !jobs.contains(where: { $0.origin == origin }), known.heldUntil == nil else { return }
    if known.isAsNew {
      origins.removeAll { $0.origin == origin }
    } else {
      let due = latest.advanced(by: .seconds(60))
      change(origin) { $0.forgetAt = due }
    }
  }
}
