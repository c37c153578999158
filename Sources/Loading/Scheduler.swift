internal import HTTPTypes

/// The queue: which loads share a job, which job's transfer starts next, when a failed one is tried again.
///
/// A pure value: it does no I/O and has no clock; time and randomness are handed in. What is to be done comes back as
/// return values, and the `Loader` does it. A job's life:
///
///     preparing ─▶ waiting ─▶ active ─▶ finishing ─▶ (end)
///                     ▲          │
///                     └─ backing off
///
/// *Preparing* jobs look into the disk cache and need no transfer slot. *Finishing* jobs have their bytes and are being
/// stored. Joining is possible in every phase, until `detach` or the end.
///
/// Guarantees: a job's priority is the highest of its live subscribers'; limits hold after every call; each subscriber
/// is handed back exactly once, by `end`, `leave` or `expired`. Every operation is O(1) or O(log n).
///
/// Not copyable: as a property of an object it would be copied, one reference after the other, for each call that looks.
struct Scheduler: ~Copyable {
  enum Phase: Equatable {
    case preparing, waiting, active, finishing
    case backingOff(until: ContinuousClock.Instant)
  }

  struct Job {
    let id: JobID
    let key: JobKey
    let origin: Int
    var phase = Phase.preparing
    /// The number of the transfer that runs or comes next, from 1.
    var attempt = 1
    var priority = Priority.lowest
    var subscribers = Chain()
    var byPriority = PriorityCounts()
    /// False once `detach` took it out of reach of later loads.
    var isJoinable = true

    static let none = Job(
      id: JobID(slot: -1, serial: 0),
      key: JobKey(
        key: "", partition: "", headers: [:], revalidation: .unused, acceptsAnything: false, maxBytes: 0, timeoutMs: 0,
        retries: 0),
      origin: -1)
  }

  struct Subscriber {
    let id: LoadID
    let job: JobID
    var priority: Priority
    let deadline: ContinuousClock.Instant?

    static let none = Subscriber(id: LoadID(0), job: Job.none.id, priority: .lowest, deadline: nil)
  }

  struct OriginRecord {
    let origin: Origin
    /// All jobs of the origin, in every phase.
    var jobs = 0
    var active = 0
    /// The waiting jobs of each priority.
    var queues = [Chain](repeating: Chain(), count: Priority.allCases.count)
    /// In which rings the origin is, by priority.
    var inRing = [Bool](repeating: false, count: Priority.allCases.count)
    var heldUntil: ContinuousClock.Instant?

    var waiting: Int { queues.reduce(0) { $0 + $1.count } }

    static let none = OriginRecord(origin: Origin(scheme: "", host: "", port: 0))
  }

  enum Timer {
    case retry(JobID)
    case deadline(LoadID)
    case release(Origin)
  }

  var limits: SchedulerLimits {
    didSet { origins.occupied.forEach { refreshRings(of: $0) } }
  }
  /// Set by `pause`, and while nobody reads the output: running transfers go on, none starts.
  var isPaused = false

  private(set) var activeCount = 0
  private(set) var finishingCount = 0
  private(set) var waiting = PriorityCounts()
  private(set) var backingOffCount = 0

  private var jobs = Slots(vacant: Job.none)
  /// The serial number of the job in each slot; 0 for none.
  private var serials: [UInt64] = []
  private var jobLinks: [Chain.Link] = []
  private var byKey: [JobKey: JobID] = [:]
  private var subscribers = Slots(vacant: Subscriber.none)
  private var subscriberLinks: [Chain.Link] = []
  private var bySubscriber: [LoadID: Int] = [:]
  private var origins = Slots(vacant: OriginRecord.none)
  private var byOrigin: [Origin: Int] = [:]
  /// For each priority the origins that have a waiting job of it and may start one, in the order of their turns.
  private var rings = [Chain](repeating: Chain(), count: Priority.allCases.count)
  private var ringLinks = [[Chain.Link]](repeating: [], count: Priority.allCases.count)
  private var timers = TimerHeap<Timer>()
  private var serial: UInt64 = 0

  init(limits: SchedulerLimits = SchedulerLimits()) { self.limits = limits }

  // MARK: - Subscribing

  enum Subscription: Equatable {
    /// A new job, which is `preparing`: look into the cache, then call `enqueue` or `end`.
    case created(JobID)
    /// `attempt` is there when a transfer is running.
    case joined(JobID, attempt: Int?)
  }

  mutating func subscribe(
    _ id: LoadID, to key: JobKey, of origin: Origin, priority: Priority, deadline: ContinuousClock.Instant?
  ) -> Subscription {
    let result: Subscription
    let job: JobID
    if let existing = byKey[key] {
      job = existing
      result = .joined(existing, attempt: jobs[existing.slot].phase == .active ? jobs[existing.slot].attempt : nil)
    } else {
      job = createJob(key, of: origin)
      result = .created(job)
    }
    let slot = subscribers.insert(Subscriber(id: id, job: job, priority: priority, deadline: deadline))
    if slot == subscriberLinks.count { subscriberLinks.append(Chain.Link()) }
    bySubscriber[id] = slot
    jobs[job.slot].subscribers.append(slot, in: &subscriberLinks)
    jobs[job.slot].byPriority[priority] += 1
    updatePriority(of: job)
    if let deadline { addTimer(.deadline(id), at: deadline) }
    return result
  }

  private mutating func createJob(_ key: JobKey, of origin: Origin) -> JobID {
    let originSlot: Int
    if let known = byOrigin[origin] {
      originSlot = known
    } else {
      originSlot = origins.insert(OriginRecord(origin: origin))
      byOrigin[origin] = originSlot
      for priority in Priority.allCases where originSlot == ringLinks[priority.rawValue].count {
        ringLinks[priority.rawValue].append(Chain.Link())
      }
    }
    origins[originSlot].jobs += 1
    serial += 1
    let id = JobID(slot: jobs.nextSlot, serial: serial)
    _ = jobs.insert(Job(id: id, key: key, origin: originSlot))
    if id.slot == jobLinks.count {
      jobLinks.append(Chain.Link())
      serials.append(0)
    }
    serials[id.slot] = serial
    byKey[key] = id
    return id
  }

  enum Departure: Equatable {
    case unknown
    /// Others wait for the job, or it is being stored and goes on without them.
    case jobStays
    /// Nobody waits any more. Without a transfer the job is gone.
    case jobAbandoned(JobID)
    /// Nobody waits any more: abort the transfer; the job holds its slot until `end`, so that limits hold.
    case transferAbandoned(JobID)
  }

  mutating func leave(_ id: LoadID) -> Departure {
    guard let job = removeSubscriber(id) else { return .unknown }
    guard jobs[job.slot].subscribers.isEmpty else {
      updatePriority(of: job)
      return .jobStays
    }
    switch jobs[job.slot].phase {
    case .finishing:
      return .jobStays
    case .active:
      detach(job)
      return .transferAbandoned(job)
    case .preparing, .waiting, .backingOff:
      _ = end(job)
      return .jobAbandoned(job)
    }
  }

  /// False for a load that is unknown or has that priority already.
  mutating func setPriority(_ priority: Priority, of id: LoadID) -> Bool {
    guard let slot = bySubscriber[id], subscribers[slot].priority != priority else { return false }
    let job = subscribers[slot].job
    jobs[job.slot].byPriority[subscribers[slot].priority] -= 1
    jobs[job.slot].byPriority[priority] += 1
    subscribers[slot].priority = priority
    updatePriority(of: job)
    return true
  }

  // MARK: - A job's way

  /// The cache could not answer: the job waits for its transfer. False, and nothing changes, when the queue is full.
  mutating func enqueue(_ id: JobID) -> Bool {
    guard contains(id), jobs[id.slot].phase == .preparing else { return true }
    guard waiting.total + backingOffCount < limits.maxQueued else { return false }
    jobs[id.slot].phase = .waiting
    addToQueue(id, next: false)
    return true
  }

  /// The transfers to start now, most urgent first; they count as active from here on.
  mutating func takeStarts() -> [JobID] {
    var starts: [JobID] = []
    while !isPaused, activeCount < limits.maxConcurrent, finishingCount < limits.maxFinishing,
      let level = Priority.allCases.last(where: { !rings[$0.rawValue].isEmpty })
    {
      let origin = rings[level.rawValue].first
      let queue = origins[origin].queues[level.rawValue]
      let id = jobs[limits.order == .fifo ? queue.first : queue.last].id
      removeFromQueue(id)
      jobs[id.slot].phase = .active
      activeCount += 1
      origins[origin].active += 1
      refreshRings(of: origin)
      if origins[origin].inRing[level.rawValue] {
        // The next turn is another origin's.
        rings[level.rawValue].remove(origin, in: &ringLinks[level.rawValue])
        rings[level.rawValue].append(origin, in: &ringLinks[level.rawValue])
      }
      starts.append(id)
    }
    return starts
  }

  /// The transfer is over and its body is to be stored: the slot is free.
  mutating func finish(_ id: JobID) {
    guard contains(id), jobs[id.slot].phase == .active else { return }
    releaseSlot(of: id)
    jobs[id.slot].phase = .finishing
    finishingCount += 1
  }

  enum Failure: Equatable {
    /// `attempt` is the one to come.
    case retry(attempt: Int, delay: Duration)
    /// Call `end`.
    case final
  }

  /// The transfer failed in a way that may pass. The slot is free; the answer says whether there is another attempt.
  ///
  /// - Parameter retryAfter: what the server asked for; it holds back the whole origin.
  mutating func retry(
    _ id: JobID, retryAfter: Duration?, now: ContinuousClock.Instant, random: inout some RandomNumberGenerator
  ) -> Failure {
    guard contains(id), jobs[id.slot].phase == .active else { return .final }
    if let retryAfter { hold(jobs[id.slot].origin, for: retryAfter, now: now) }
    let attempt = jobs[id.slot].attempt
    guard attempt <= jobs[id.slot].key.retries, !jobs[id.slot].subscribers.isEmpty else { return .final }
    // Full jitter, so that a crowd of workers does not come back as a crowd.
    let ceiling = min(30_000, 500 << min(attempt - 1, 6))
    var delay = Duration.milliseconds(Int.random(in: 0...ceiling, using: &random))
    if let retryAfter {
      guard retryAfter <= Self.longestHold else { return .final }
      delay = max(delay, retryAfter)
    }
    let due = now.advanced(by: delay)
    guard hasSubscriber(of: id, waitingPast: due) else { return .final }
    releaseSlot(of: id)
    jobs[id.slot].attempt += 1
    jobs[id.slot].phase = .backingOff(until: due)
    backingOffCount += 1
    addTimer(.retry(id), at: due)
    return .retry(attempt: attempt + 1, delay: delay)
  }

  /// Takes the job out, in whatever phase it is. Returns who waited for it, in the order of their coming.
  mutating func end(_ id: JobID) -> [LoadID] {
    guard contains(id) else { return [] }
    switch jobs[id.slot].phase {
    case .preparing: break
    case .waiting: removeFromQueue(id)
    case .active: releaseSlot(of: id)
    case .finishing: finishingCount -= 1
    case .backingOff: backingOffCount -= 1
    }
    let waited = subscribers(of: id)
    waited.forEach { _ = removeSubscriber($0) }
    detach(id)
    let origin = jobs[id.slot].origin
    jobs.remove(id.slot)
    serials[id.slot] = 0
    origins[origin].jobs -= 1
    forgetIfIdle(origin)
    return waited
  }

  /// Later loads of the same key get a job of their own.
  mutating func detach(_ id: JobID) {
    guard contains(id), jobs[id.slot].isJoinable else { return }
    jobs[id.slot].isJoinable = false
    if byKey[jobs[id.slot].key] == id { byKey[jobs[id.slot].key] = nil }
  }

  // MARK: - Time

  /// How many timers there are, those included that have lost their meaning.
  var timerCount: Int { timers.count }

  /// When `expired` has something to do next.
  var nextTimer: ContinuousClock.Instant? { timers.next }

  /// Lets due retries and held origins in again.
  ///
  /// - Returns: the loads whose deadline passed. They are still subscribed: the caller makes each `leave`.
  mutating func expired(at now: ContinuousClock.Instant) -> [LoadID] {
    var late: [LoadID] = []
    while let (due, timer) = timers.take(dueAt: now) {
      switch timer {
      case .deadline(let id):
        if bySubscriber[id] != nil { late.append(id) }
      case .retry(let id):
        guard contains(id), case .backingOff = jobs[id.slot].phase else { continue }
        backingOffCount -= 1
        jobs[id.slot].phase = .waiting
        addToQueue(id, next: true)
      case .release(let origin):
        guard let slot = byOrigin[origin], let until = origins[slot].heldUntil, until <= due else { continue }
        origins[slot].heldUntil = nil
        refreshRings(of: slot)
        forgetIfIdle(slot)
      }
    }
    return late
  }

  // MARK: - Looking

  func contains(_ id: JobID) -> Bool { serials.indices.contains(id.slot) && serials[id.slot] == id.serial }

  func job(_ id: JobID) -> Job? { contains(id) ? jobs[id.slot] : nil }

  /// The job that a load with this key would join.
  func job(for key: JobKey) -> JobID? { byKey[key] }

  func job(of id: LoadID) -> JobID? { bySubscriber[id].map { subscribers[$0].job } }

  func priority(of id: LoadID) -> Priority? { bySubscriber[id].map { subscribers[$0].priority } }

  func subscribers(of id: JobID) -> [LoadID] {
    guard contains(id) else { return [] }
    var slot = jobs[id.slot].subscribers.first
    var result: [LoadID] = []
    while slot != Chain.none {
      result.append(subscribers[slot].id)
      slot = subscriberLinks[slot].next
    }
    return result
  }

  /// All jobs, for what concerns them all: `clear`, shutting down.
  var allJobs: [Job] { jobs.occupied.map { jobs[$0] } }

  var isEmpty: Bool { jobs.isEmpty }

  /// Every origin with work or a hold, the busiest first.
  func originStates() -> [OriginState] {
    origins.occupied.map { slot in
      let record = origins[slot]
      return OriginState(
        origin: record.origin, active: record.active, waiting: record.waiting, heldUntil: record.heldUntil)
    }.sorted {
      ($0.active + $0.waiting, $1.origin.description) > ($1.active + $1.waiting, $0.origin.description)
    }
  }

  // MARK: - Inside

  private static let longestHold = Duration.seconds(120)

  /// Nothing is sent to the origin for that long, two minutes at most: then one look costs little.
  private mutating func hold(_ slot: Int, for duration: Duration, now: ContinuousClock.Instant) {
    let until = now.advanced(by: min(duration, Self.longestHold))
    guard until > now, origins[slot].heldUntil.map({ $0 < until }) ?? true else { return }
    origins[slot].heldUntil = until
    addTimer(.release(origins[slot].origin), at: until)
    refreshRings(of: slot)
  }

  private mutating func addTimer(_ timer: Timer, at instant: ContinuousClock.Instant) {
    timers.add(timer, at: instant)
    // Loads end long before their deadlines: those of the ended are not to pile up.
    guard timers.count > 2 * (bySubscriber.count + backingOffCount + byOrigin.count) + 64 else { return }
    timers = timers.filter { isPending($0) }
  }

  private func isPending(_ timer: Timer) -> Bool {
    switch timer {
    case .deadline(let id): bySubscriber[id] != nil
    case .retry(let id): contains(id)
    case .release(let origin): byOrigin[origin] != nil
    }
  }

  private func hasSubscriber(of id: JobID, waitingPast due: ContinuousClock.Instant) -> Bool {
    var slot = jobs[id.slot].subscribers.first
    while slot != Chain.none {
      if subscribers[slot].deadline.map({ $0 > due }) ?? true { return true }
      slot = subscriberLinks[slot].next
    }
    return false
  }

  private mutating func removeSubscriber(_ id: LoadID) -> JobID? {
    guard let slot = bySubscriber.removeValue(forKey: id) else { return nil }
    let subscriber = subscribers[slot]
    jobs[subscriber.job.slot].subscribers.remove(slot, in: &subscriberLinks)
    jobs[subscriber.job.slot].byPriority[subscriber.priority] -= 1
    subscribers.remove(slot)
    return subscriber.job
  }

  private mutating func updatePriority(of id: JobID) {
    let old = jobs[id.slot].priority
    let new = jobs[id.slot].byPriority.highest ?? old
    guard new != old else { return }
    guard jobs[id.slot].phase == .waiting else {
      jobs[id.slot].priority = new
      return
    }
    removeFromQueue(id)
    jobs[id.slot].priority = new
    // A raised job queues up behind those that were this urgent before it; a lowered one has waited longer than the
    // others of its level.
    addToQueue(id, next: new < old)
  }

  /// - Parameter next: whether it is the first of its level to start, rather than in the order of its coming.
  private mutating func addToQueue(_ id: JobID, next: Bool) {
    let (origin, level) = (jobs[id.slot].origin, jobs[id.slot].priority.rawValue)
    if next && limits.order == .fifo {
      origins[origin].queues[level].prepend(id.slot, in: &jobLinks)
    } else {
      origins[origin].queues[level].append(id.slot, in: &jobLinks)
    }
    waiting[jobs[id.slot].priority] += 1
    refreshRings(of: origin)
  }

  private mutating func removeFromQueue(_ id: JobID) {
    let (origin, level) = (jobs[id.slot].origin, jobs[id.slot].priority.rawValue)
    origins[origin].queues[level].remove(id.slot, in: &jobLinks)
    waiting[jobs[id.slot].priority] -= 1
    refreshRings(of: origin)
  }

  private mutating func releaseSlot(of id: JobID) {
    guard jobs[id.slot].phase == .active else { return }
    let origin = jobs[id.slot].origin
    activeCount -= 1
    origins[origin].active -= 1
    refreshRings(of: origin)
  }

  /// An origin takes its turns at a priority only while it has a job of it waiting and may start one.
  private mutating func refreshRings(of slot: Int) {
    let isOpen = origins[slot].heldUntil == nil && origins[slot].active < limits.maxPerOrigin
    for level in rings.indices {
      let belongs = isOpen && !origins[slot].queues[level].isEmpty
      guard belongs != origins[slot].inRing[level] else { continue }
      origins[slot].inRing[level] = belongs
      if belongs {
        rings[level].append(slot, in: &ringLinks[level])
      } else {
        rings[level].remove(slot, in: &ringLinks[level])
      }
    }
  }

  private mutating func forgetIfIdle(_ slot: Int) {
    guard origins[slot].jobs == 0, origins[slot].heldUntil == nil else { return }
    byOrigin[origins[slot].origin] = nil
    origins.remove(slot)
  }
}
