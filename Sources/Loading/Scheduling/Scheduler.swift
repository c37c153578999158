internal import HTTPTypes
internal import Threads

/// The queue: which loads share a job, which job's transfer starts next, when a failed one is tried again, and what its
/// origin may do meanwhile.
///
/// A pure value: it does no I/O and has no clock; time and randomness are handed in. What is to be done comes back as
/// return values, and the `Loader` does it. A job's life:
///
///     preparing ─▶ waiting ─▶ active ─▶ finishing ─▶ (end)
///                     ▲         │ │
///                     └─────────┘
///               backing off, elsewhere
///
/// *Preparing* jobs look into the disk cache and need no transfer slot. *Finishing* jobs have their bytes and are being
/// stored. What is *elsewhere* another worker transfers; it is waited for, then looked for in the cache. Joining is
/// possible in every phase, until `detach` or the end.
///
/// When a transfer has ended, `note` says how that went with the origin (`OriginHealth` and `ConcurrencyWindow` tell
/// what follows), then `finish`, `retry` or `end` what becomes of the job.
///
/// Guarantees: a job's priority is the highest of its live subscribers'; no transfer starts that a window or the
/// origin's health forbids; each subscriber is handed back exactly once, by `end` or `leave`; every job that waits gets
/// its turn, unless more urgent ones keep coming or the decoders stand still. What happens to one load or job costs
/// O(1) or O(log n), however many wait. That an origin is found to be down costs O(n) in the jobs that wait for it.
///
/// Not copyable: as a property of an object it would be copied, one reference after the other, for each call that
/// looks.
struct Scheduler: ~Copyable {
  enum Phase {
    case preparing, waiting, active, finishing, backingOff, awaitingPeer
  }

  struct Job {
    var key: TransferKey
    /// Under which it can be joined as well. See `share`.
    var sharedKey: TransferKey?
    /// The origin's slot.
    let origin: Int32
    var phase = Phase.preparing
    /// What its subscribers make of it.
    var queueClass = FairQueue.QueueClass(priority: .lowest, needsDecoder: true)
    /// False once `detach` took it out of reach of later loads.
    var isJoinable = true
    private var storedAttempt: Int32 = 1
    /// Whether its last transfer has waited for an answer in vain.
    var hasTimedOut = false
    /// Where its transfer is among those that run.
    var seat: Int32 = -1
    /// Its place among the waiting jobs of its origin and priority, from before it is one of them.
    var place: Int64
    /// The slots of the loads that wait for it.
    var subscribers = IndexLinkedList()
    /// How many of them want the image as it comes.
    var decodeFreeSubscribers: Int32 = 0
    var byPriority = PriorityCounts()

    init(key: TransferKey, origin: Int32, place: Int64) {
      self.key = key
      self.origin = origin
      self.place = place
    }

    /// The number of the transfer that runs or comes next, from 1.
    var attempt: Int {
      get { Int(storedAttempt) }
      set { storedAttempt = Int32(newValue) }
    }

    var priority: Priority { queueClass.priority }

    var hasSubscribers: Bool { !subscribers.isEmpty }
  }

  struct Subscriber {
    /// The job's slot.
    var job: Int32
    var priority: Priority
    /// Whether what comes is then to be decoded.
    let needsDecoder: Bool
    let deadline: CompactInstant
  }

  /// A transfer that has a slot.
  struct Running {
    /// The job's slot.
    let job: Int32
    /// Greater than those of the transfers that started before.
    let number: UInt64
    let since: CompactInstant
    /// The epoch of the origin's health in which it started.
    var epoch: UInt32
    /// Whether it has been answered, as far as is known.
    var isAnswered = false
    /// Whether it has waited for an answer for `patience`. Then it does not count for the window of all transfers.
    var isQuiet = false
  }

  /// How far the look-up of an origin's name has come.
  enum Name {
    /// Not asked for. A transfer looks it up itself.
    case unknown
    /// No transfer starts before the answer.
    case asked
    case found
  }

  struct OriginRecord {
    let origin: Origin
    var name = Name.unknown
    /// How long the look-up took, until the first transfer takes it.
    var nameDuration: Duration?
    /// All jobs of the origin, in every phase.
    var jobs = 0
    var active = 0
    /// The same after its last start: several may end before the next.
    var activeAtStart = 0
    var health = OriginHealth()
    var window: ConcurrencyWindow
    var isHTTP2 = false
    /// How many transfers had started, of all, when it was last heard of.
    var lastWord: UInt64 = 0
    /// The number of the last transfer that had started when the window shrank last: those up to it do not shrink it
    /// again.
    var lastShrink: UInt64 = 0
    /// When the next transfer may start (`--rate`).
    var nextStart: CompactInstant?
    /// Why it is down.
    var failure: LoadError?
    /// Its health as it was last told by `takeHealthChanges`, or is to be.
    var toldHealth = OriginState.Health.healthy
    /// Set while there are no jobs and there is something to remember.
    var forgetAt: CompactInstant?
  }

  enum Timer {
    case retry(JobID)
    case deadline(LoadID)
    /// The origin's suspension or time of being down ends, or its next transfer may start.
    case release(OriginID)
    case forget(OriginID)
  }

  var limits: SchedulerLimits {
    didSet {
      window.setBounds(limits.windowForAll)
      for id in origins.ids.sorted(by: { $0.serial < $1.serial }) {
        origins[id.slot].window.setBounds(limits.window(isHTTP2: origins[id.slot].isHTTP2))
        reconsider(id.slot)
      }
      reconsiderDecoders()
    }
  }
  /// Set by `pause`, and while nobody reads the output: running transfers go on, none starts.
  var isPaused = false {
    didSet {
      if oldValue, !isPaused { (lookUpsPendingAfterResume, lastAwaited) = (preparingCount, jobIDs.lastSerial) }
    }
  }
  /// What came before a pause ended is looked for in the cache before anything starts: else what was looked for first
  /// would start, and not what is the most urgent. How many jobs that still are, and the last of them by its serial.
  private(set) var lookUpsPendingAfterResume = 0
  private var lastAwaited: UInt64 = 0
  /// Loads that are held back outside and are to be jobs later: they count as waiting where `maxQueued` is checked.
  var reserved = PriorityCounts()
  /// The decodes, running or waiting, of what was not in the cache.
  var undecoded = PriorityCounts() {
    didSet { if undecoded != oldValue { reconsiderDecoders() } }
  }

  // The rest is changed by the scheduler's own extensions only.

  var preparingCount = 0
  /// In no order; each job knows its transfer's seat.
  var running: [Running] = []
  /// How many transfers have started so far.
  var startCount: UInt64 = 0
  /// For the transfers of all origins.
  var window: ConcurrencyWindow
  /// Transfers that are not known to be answered, in the order of their starts, and when patience with each ends.
  var unanswered = FIFO<(id: JobID, number: UInt64, until: CompactInstant)>()
  var quietCount = 0
  /// The transfers that counted after the last starts: several may end before the next.
  var countedAtStarts = 0
  var finishingCount = 0
  var backingOffCount = 0
  var elsewhereCount = 0

  var jobIDs = GenerationalIDPool<JobID>()
  var jobs = SlotMap<JobID, Job>()
  /// The slots of the jobs that can be joined.
  var byKey: [TransferKey: Int32] = [:]
  var subscribers = SlotMap<LoadID, Subscriber>()
  var subscriberLinks: [IndexLinkedList.Link] = []
  /// The origins that failed while none was heard of, and when one last was. See Scheduler+Origins.
  var suspectedLocalOutage: Set<OriginID> = []
  var lastHeard: CompactInstant?

  var originIDs = GenerationalIDPool<OriginID>()
  var origins = SlotMap<OriginID, OriginRecord>()
  var byOrigin: [Origin: OriginID] = [:]
  /// The origins whose names are to be looked up, and how many have been asked for and are not found.
  var namesToAsk: [OriginID] = []
  var lookUpCount = 0
  /// The origins whose health has changed since that was asked for.
  var healthChanges: [OriginState] = []
  /// How many origins are kept though they have no jobs.
  var rememberedCount = 0
  var queue = FairQueue()
  /// The places given to jobs lie between these.
  private var firstPlace: Int64 = 0
  private var lastPlace: Int64 = 0
  var timers = TimerQueue<Timer>()
  /// The latest time that was handed in.
  var latest = CompactInstant(.now)

  init(limits: SchedulerLimits = SchedulerLimits()) {
    self.limits = limits
    window = ConcurrencyWindow(limits.windowForAll)
  }

  // MARK: - Subscribing

  enum Subscription: Equatable {
    /// A new job, which is `preparing`: look into the cache, then call `enqueue` or `end`.
    case created(JobID)
    /// `attempt` is there when a transfer is running.
    case joined(JobID, attempt: Int?)
  }

  /// A load waits for one job at a time.
  mutating func subscribe(
    _ id: LoadID, to key: TransferKey, of origin: Origin, priority: Priority, needsDecoder: Bool,
    deadline: ContinuousClock.Instant?
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
    let due = deadline.map(CompactInstant.init) ?? .never
    let subscriber = Subscriber(job: slot, priority: priority, needsDecoder: needsDecoder, deadline: due)
    subscribers.insert(subscriber, at: id)
    subscriberLinks.reach(id.slot)
    add(subscriber, id)
    updateLane(of: slot)
    if deadline != nil { addTimer(.deadline(id), at: due) }
    return result
  }

  private mutating func createJob(_ key: TransferKey, of origin: Origin) -> JobID {
    let originID = admit(origin)
    origins[originID.slot].jobs += 1
    let id = jobIDs.take()
    preparingCount += 1
    jobs.insert(Job(key: key, origin: originID.slot, place: nextPlace(.asItComes)), at: id)
    byKey[key] = id.slot
    return id
  }

  enum UnsubscribeResult: Equatable {
    case unknown
    /// Others wait for the job, or it is being stored and goes on without them.
    case stillNeeded
    /// Nobody waits any more. Without a transfer the job is gone.
    case orphanedJob(JobID)
    /// Nobody waits any more. Abort the transfer and `detach` the job, or let it go on: then it can be joined again.
    /// Either way it holds its slot until `end`, so that limits hold.
    case orphanedTransfer(JobID)
  }

  mutating func leave(_ id: LoadID) -> UnsubscribeResult {
    guard let subscriber = subscribers[id] else { return .unknown }
    let job = jobs.id(at: subscriber.job)
    remove(subscriber, id)
    guard !jobs[job.slot].hasSubscribers else {
      updateLane(of: job.slot)
      return .stillNeeded
    }
    switch jobs[job.slot].phase {
    case .finishing:
      return .stillNeeded
    case .active:
      return .orphanedTransfer(job)
    case .preparing, .waiting, .backingOff, .awaitingPeer:
      _ = end(job)
      return .orphanedJob(job)
    }
  }

  mutating func remove(_ subscriber: Subscriber, _ id: LoadID) {
    drop(subscriber, id)
    subscribers.remove(id)
  }

  /// Has the job know of who waits for it.
  mutating func add(_ subscriber: Subscriber, _ id: LoadID) {
    jobs[subscriber.job].subscribers.append(id.slot, in: &subscriberLinks)
    jobs[subscriber.job].byPriority[subscriber.priority] += 1
    if !subscriber.needsDecoder { jobs[subscriber.job].decodeFreeSubscribers += 1 }
  }

  mutating func drop(_ subscriber: Subscriber, _ id: LoadID) {
    jobs[subscriber.job].subscribers.remove(id.slot, in: &subscriberLinks)
    jobs[subscriber.job].byPriority[subscriber.priority] -= 1
    if !subscriber.needsDecoder { jobs[subscriber.job].decodeFreeSubscribers -= 1 }
  }

  /// False for a load that is unknown or has that priority already.
  mutating func setPriority(_ priority: Priority, of id: LoadID) -> Bool {
    guard let subscriber = subscribers[id], subscriber.priority != priority else { return false }
    jobs[subscriber.job].byPriority[subscriber.priority] -= 1
    jobs[subscriber.job].byPriority[priority] += 1
    subscribers[id.slot].priority = priority
    updateLane(of: subscriber.job)
    return true
  }

  /// Who waits for the job may want other things of it now.
  mutating func updateLane(of slot: Int32) {
    guard let priority = jobs[slot].byPriority.highest else { return }
    let (old, new) = (jobs[slot].queueClass, FairQueue.QueueClass(priority: priority, needsDecoder: jobs[slot].decodeFreeSubscribers == 0))
    guard new != old else { return }
    jobs[slot].queueClass = new
    // A raised job queues up behind those that were this urgent before it; a lowered one has waited longer than the
    // others of its level. So does one that is still looked for in the cache: it finds its place later.
    if priority != old.priority { jobs[slot].place = nextPlace(priority < old.priority ? .first : .asItComes) }
    guard jobs[slot].phase == .waiting else { return }
    queue.move(slot, of: jobs[slot].origin, to: new, place: jobs[slot].place)
  }

  /// The job has been looked for in the cache, or need not be.
  mutating func endPreparing(_ id: JobID) {
    preparingCount -= 1
    if lookUpsPendingAfterResume > 0, id.serial <= lastAwaited { lookUpsPendingAfterResume -= 1 }
  }

  enum QueuePosition {
    /// Before all others that wait.
    case first
    case asItComes
    /// After all others that wait.
    case last
  }

  /// A place before all others, or behind them.
  mutating func nextPlace(_ turn: QueuePosition) -> Int64 {
    if turn == (limits.order == .fifo ? .first : .last) {
      firstPlace -= 1
      return firstPlace
    }
    lastPlace += 1
    return lastPlace
  }

  // MARK: - Looking

  var activeCount: Int { running.count }

  /// The waiting jobs of each priority.
  var waiting: PriorityCounts { queue.counts }

  /// How many more may wait.
  var freePlaces: Int { max(0, limits.maxQueued - waiting.total - backingOffCount - elsewhereCount - reserved.total) }

  func contains(_ id: JobID) -> Bool { jobs.contains(id) }

  func job(_ id: JobID) -> Job? { jobs[id] }

  /// The job that a load with this key would join.
  func job(for key: TransferKey) -> JobID? { byKey[key].map { jobs.id(at: $0) } }

  func job(of id: LoadID) -> JobID? { subscribers[id].map { jobs.id(at: $0.job) } }

  func priority(of id: LoadID) -> Priority? { subscribers[id]?.priority }

  /// In the order of their coming.
  func subscribers(of id: JobID) -> [LoadID] {
    guard jobs.contains(id) else { return [] }
    var ids: [LoadID] = []
    ids.reserveCapacity(jobs[id.slot].subscribers.count)
    forEachSubscriber(of: id) { ids.append($0) }
    return ids
  }

  /// The same without an array, for who only looks: `body` must not change anything here.
  func forEachSubscriber(of id: JobID, _ body: (LoadID) -> Void) {
    guard jobs.contains(id) else { return }
    for slot in jobs[id.slot].subscribers.elements(in: subscriberLinks) { body(subscribers.id(at: slot)) }
  }

  func firstSubscriber(of id: JobID) -> LoadID? {
    guard jobs.contains(id), jobs[id.slot].hasSubscribers else { return nil }
    return subscribers.id(at: jobs[id.slot].subscribers.first)
  }

  /// For what concerns them all, as `clear` does.
  var allJobs: [JobID] { jobs.ids }

  var isEmpty: Bool { jobs.isEmpty }
}
