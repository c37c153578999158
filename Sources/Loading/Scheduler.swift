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
struct Scheduler {
  enum Phase {
    case preparing, waiting, active, finishing, backingOff
  }

  struct Job {
    let key: JobKey
    /// The origin's slot.
    let origin: Int32
    fileprivate(set) var phase = Phase.preparing
    fileprivate(set) var priority = Priority.lowest
    /// False once `detach` took it out of reach of later loads.
    fileprivate(set) var isJoinable = true
    private var storedAttempt: Int32 = 1
    /// The slots of the loads that wait for it.
    fileprivate var subscribers = Chain()
    fileprivate var byPriority = PriorityCounts()

    fileprivate init(key: JobKey, origin: Int32) {
      self.key = key
      self.origin = origin
    }

    /// The number of the transfer that runs or comes next, from 1.
    fileprivate(set) var attempt: Int {
      get { Int(storedAttempt) }
      set { storedAttempt = Int32(newValue) }
    }

    var hasSubscribers: Bool { !subscribers.isEmpty }
  }

  struct Subscriber {
    /// The job's slot.
    let job: Int32
    var priority: Priority
    let deadline: Moment
  }

  private struct OriginRecord {
    let origin: Origin
    /// All jobs of the origin, in every phase.
    var jobs = 0
    var active = 0
    var heldUntil: Moment?
  }

  enum Timer {
    case retry(JobID)
    case deadline(LoadID)
    case release(OriginID)
  }

  var limits: SchedulerLimits {
    didSet { origins.ids.forEach { reconsider($0.slot) } }
  }
  /// Set by `pause`, and while nobody reads the output: running transfers go on, none starts.
  var isPaused = false

  private(set) var activeCount = 0
  private(set) var finishingCount = 0
  private(set) var backingOffCount = 0
  /// Places among those that may wait, kept for loads that will come.
  var reserved = PriorityCounts()

  private var jobIDs = SlotPool<JobID>()
  private var jobs = SlotTable<JobID, Job>()
  /// The slots of the jobs that can be joined.
  private var byKey: [JobKey: Int32] = [:]
  private var subscribers = SlotTable<LoadID, Subscriber>()
  private var subscriberLinks: [Chain.Link] = []
  private var originIDs = SlotPool<OriginID>()
  private var origins = SlotTable<OriginID, OriginRecord>()
  private var byOrigin: [Origin: OriginID] = [:]
  private var backlog = Backlog()
  private var timers = TimerHeap<Timer>()

  init(limits: SchedulerLimits = SchedulerLimits()) { self.limits = limits }

  // MARK: - Subscribing

  enum Subscription: Equatable {
    /// A new job, which is `preparing`: look into the cache, then call `enqueue` or `end`.
    case created(JobID)
    /// `attempt` is there when a transfer is running.
    case joined(JobID, attempt: Int?)
  }

  /// A load waits for one job at a time.
  mutating func subscribe(
    _ id: LoadID, to key: JobKey, of origin: Origin, priority: Priority, deadline: ContinuousClock.Instant?
  ) -> Subscription {
    let result: Subscription
    let slot: Int32
    if let existing = byKey[key] {
      slot = existing
      result = .joined(jobs.id(at: slot), attempt: jobs[slot].phase == .active ? jobs[slot].attempt : nil)
    } else {
      let job = createJob(key, of: origin)
      slot = job.slot
      result = .created(job)
    }
    let due = deadline.map(Moment.init) ?? .never
    subscribers.insert(Subscriber(job: slot, priority: priority, deadline: due), at: id)
    subscriberLinks.reach(id.slot)
    jobs[slot].subscribers.append(id.slot, in: &subscriberLinks)
    jobs[slot].byPriority[priority] += 1
    updatePriority(of: slot)
    if deadline != nil { addTimer(.deadline(id), at: due) }
    return result
  }

  private mutating func createJob(_ key: JobKey, of origin: Origin) -> JobID {
    let originID = byOrigin[origin] ?? admit(origin)
    origins[originID.slot].jobs += 1
    let id = jobIDs.take()
    jobs.insert(Job(key: key, origin: originID.slot), at: id)
    byKey[key] = id.slot
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
    guard let subscriber = subscribers[id] else { return .unknown }
    let job = jobs.id(at: subscriber.job)
    remove(subscriber, id)
    guard !jobs[job.slot].hasSubscribers else {
      updatePriority(of: job.slot)
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

  private mutating func remove(_ subscriber: Subscriber, _ id: LoadID) {
    jobs[subscriber.job].subscribers.remove(id.slot, in: &subscriberLinks)
    jobs[subscriber.job].byPriority[subscriber.priority] -= 1
    subscribers.remove(id)
  }

  /// False for a load that is unknown or has that priority already.
  mutating func setPriority(_ priority: Priority, of id: LoadID) -> Bool {
    guard let subscriber = subscribers[id], subscriber.priority != priority else { return false }
    jobs[subscriber.job].byPriority[subscriber.priority] -= 1
    jobs[subscriber.job].byPriority[priority] += 1
    subscribers[id.slot].priority = priority
    updatePriority(of: subscriber.job)
    return true
  }

  private mutating func updatePriority(of slot: Int32) {
    let old = jobs[slot].priority
    let new = jobs[slot].byPriority.highest ?? old
    guard new != old else { return }
    guard jobs[slot].phase == .waiting else {
      jobs[slot].priority = new
      return
    }
    backlog.remove(slot, of: jobs[slot].origin, at: old)
    jobs[slot].priority = new
    // A raised job queues up behind those that were this urgent before it; a lowered one has waited longer than the
    // others of its level.
    addToBacklog(slot, next: new < old)
  }

  // MARK: - A job's way

  /// The cache could not answer: the job waits for its transfer. False, and nothing changes, when the queue is full.
  mutating func enqueue(_ id: JobID) -> Bool {
    guard jobs[id]?.phase == .preparing else { return true }
    guard freePlaces > 0 else { return false }
    jobs[id.slot].phase = .waiting
    addToBacklog(id.slot, next: false)
    return true
  }

  /// - Parameter next: whether it is the first of its level to start, rather than in the order of its coming.
  private mutating func addToBacklog(_ slot: Int32, next: Bool) {
    backlog.add(
      slot, of: jobs[slot].origin, at: jobs[slot].priority, atFront: next && limits.order == .fifo)
  }

  /// The transfers to start now, most urgent first; they count as active from here on.
  mutating func takeStarts() -> [JobID] {
    var starts: [JobID] = []
    while !isPaused, activeCount < limits.maxConcurrent, finishingCount < limits.maxFinishing,
      let slot = backlog.takeNext(limits.order)
    {
      jobs[slot].phase = .active
      activeCount += 1
      origins[jobs[slot].origin].active += 1
      reconsider(jobs[slot].origin)
      starts.append(jobs.id(at: slot))
    }
    return starts
  }

  /// The transfer is over and its body is to be stored: the slot is free.
  mutating func finish(_ id: JobID) {
    guard jobs[id]?.phase == .active else { return }
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
    guard let job = jobs[id], job.phase == .active else { return .final }
    if let retryAfter { hold(job.origin, for: retryAfter, now: now) }
    guard job.attempt <= job.key.retries, job.hasSubscribers else { return .final }
    // Full jitter, so that a crowd of workers does not come back as a crowd.
    let ceiling = min(30_000, 500 << min(job.attempt - 1, 6))
    var delay = Duration.milliseconds(Int.random(in: 0...ceiling, using: &random))
    if let retryAfter {
      guard retryAfter <= Self.longestHold else { return .final }
      delay = max(delay, retryAfter)
    }
    let due = Moment(now.advanced(by: delay))
    guard hasSubscriber(of: job, waitingPast: due) else { return .final }
    releaseSlot(of: id)
    jobs[id.slot].attempt += 1
    jobs[id.slot].phase = .backingOff
    backingOffCount += 1
    addTimer(.retry(id), at: due)
    return .retry(attempt: job.attempt + 1, delay: delay)
  }

  /// Takes the job out, in whatever phase it is. Returns who waited for it, in the order of their coming.
  mutating func end(_ id: JobID) -> [LoadID] {
    guard let job = jobs[id] else { return [] }
    switch job.phase {
    case .preparing: break
    case .waiting: backlog.remove(id.slot, of: job.origin, at: job.priority)
    case .active: releaseSlot(of: id)
    case .finishing: finishingCount -= 1
    case .backingOff: backingOffCount -= 1
    }
    let waited = subscribers(of: id)
    for load in waited {
      if let subscriber = subscribers[load] { remove(subscriber, load) }
    }
    detach(id)
    jobs.remove(id)
    jobIDs.giveBack(id)
    origins[job.origin].jobs -= 1
    forgetIfIdle(job.origin)
    return waited
  }

  /// Later loads of the same key get a job of their own.
  mutating func detach(_ id: JobID) {
    guard let job = jobs[id], job.isJoinable else { return }
    jobs[id.slot].isJoinable = false
    byKey[job.key] = nil
  }

  private mutating func releaseSlot(of id: JobID) {
    let origin = jobs[id.slot].origin
    activeCount -= 1
    origins[origin].active -= 1
    reconsider(origin)
  }

  // MARK: - Origins

  private static let longestHold = Duration.seconds(120)

  private mutating func admit(_ origin: Origin) -> OriginID {
    let id = originIDs.take()
    origins.insert(OriginRecord(origin: origin), at: id)
    byOrigin[origin] = id
    backlog.admit(id.slot)
    return id
  }

  /// Whether the origin may start a job may have changed.
  private mutating func reconsider(_ slot: Int32) {
    let isOpen = origins[slot].heldUntil == nil && origins[slot].active < limits.maxPerOrigin
    backlog.setStanding(isOpen ? .open : .shut, of: slot)
  }

  /// Nothing is sent to the origin for that long, two minutes at most: then one look costs little.
  private mutating func hold(_ slot: Int32, for duration: Duration, now: ContinuousClock.Instant) {
    let until = Moment(now.advanced(by: min(duration, Self.longestHold)))
    guard until > Moment(now), origins[slot].heldUntil.map({ $0 < until }) ?? true else { return }
    origins[slot].heldUntil = until
    addTimer(.release(origins.id(at: slot)), at: until)
    reconsider(slot)
  }

  private mutating func forgetIfIdle(_ slot: Int32) {
    guard origins[slot].jobs == 0, origins[slot].heldUntil == nil else { return }
    let id = origins.id(at: slot)
    byOrigin[origins[slot].origin] = nil
    origins.remove(id)
    originIDs.giveBack(id)
  }

  // MARK: - Time

  /// How many timers there are, those included that have lost their meaning.
  var timerCount: Int { timers.count }

  /// When `expired` has something to do next.
  var nextTimer: ContinuousClock.Instant? { timers.next?.instant }

  /// Lets due retries and held origins in again.
  ///
  /// - Returns: the loads whose deadline passed. They are still subscribed: the caller makes each `leave`.
  mutating func expired(at now: ContinuousClock.Instant) -> [LoadID] {
    var late: [LoadID] = []
    while let (due, timer) = timers.take(dueAt: Moment(now)) {
      switch timer {
      case .deadline(let id):
        if subscribers.contains(id) { late.append(id) }
      case .retry(let id):
        guard jobs[id]?.phase == .backingOff else { continue }
        backingOffCount -= 1
        jobs[id.slot].phase = .waiting
        addToBacklog(id.slot, next: true)
      case .release(let id):
        guard let until = origins[id]?.heldUntil, until <= due else { continue }
        origins[id.slot].heldUntil = nil
        reconsider(id.slot)
        forgetIfIdle(id.slot)
      }
    }
    return late
  }

  private mutating func addTimer(_ timer: Timer, at moment: Moment) {
    timers.add(timer, at: moment)
    // Loads end long before their deadlines: those of the ended are not to pile up.
    guard timers.count > 2 * (subscribers.count + backingOffCount + origins.count) + 64 else { return }
    timers = timers.filter { isPending($0) }
  }

  private func isPending(_ timer: Timer) -> Bool {
    switch timer {
    case .deadline(let id): subscribers.contains(id)
    case .retry(let id): jobs.contains(id)
    case .release(let id): origins.contains(id)
    }
  }

  private func hasSubscriber(of job: Job, waitingPast due: Moment) -> Bool {
    job.subscribers.elements(in: subscriberLinks).contains { subscribers[$0].deadline > due }
  }

  // MARK: - Looking

  /// The waiting jobs of each priority.
  var waiting: PriorityCounts { backlog.counts }

  /// How many more jobs may wait.
  var freePlaces: Int { max(0, limits.maxQueued - waiting.total - backingOffCount - reserved.total) }

  func contains(_ id: JobID) -> Bool { jobs.contains(id) }

  func job(_ id: JobID) -> Job? { jobs[id] }

  /// The job that a load with this key would join.
  func job(for key: JobKey) -> JobID? { byKey[key].map { jobs.id(at: $0) } }

  func job(of id: LoadID) -> JobID? { subscribers[id].map { jobs.id(at: $0.job) } }

  func priority(of id: LoadID) -> Priority? { subscribers[id]?.priority }

  /// In the order of their coming.
  func subscribers(of id: JobID) -> [LoadID] {
    guard let job = jobs[id] else { return [] }
    return job.subscribers.elements(in: subscriberLinks).map { subscribers.id(at: $0) }
  }

  /// For what concerns them all, as `clear` does.
  var allJobs: [JobID] { jobs.ids }

  var isEmpty: Bool { jobs.isEmpty }

  /// Every origin with work or a hold, the busiest first.
  ///
  /// - Parameter heldBack: what waits outside, to be counted in.
  func originStates(heldBack: [Origin: Int] = [:]) -> [OriginState] {
    origins.ids.map { id in
      let record = origins[id.slot]
      return OriginState(
        origin: record.origin, active: record.active,
        waiting: backlog.count(of: id.slot) + heldBack[record.origin, default: 0],
        heldUntil: record.heldUntil?.instant)
    }.sorted {
      ($0.active + $0.waiting, $1.origin.description) > ($1.active + $1.waiting, $0.origin.description)
    }
  }
}
