internal import HTTPTypes
internal import Platform
internal import Threads

/// The scheduler: which loads share a job, which job's transfer starts next, when a failed transfer is retried, and
/// what its origin may do in the meantime.
///
/// A pure value: it does no I/O and has no clock; time and randomness are passed in. Actions are returned, and `Loader`
/// carries them out. The phases of a job:
///
///     looking up ─▶ waiting ─▶ active ─▶ storing ─▶ (end)
///                      ▲         │
///                      └─────────┘
///          backing off, awaiting a peer,
///          awaiting the cache or a permission
///
/// Jobs *looking up* search the disk cache and need no permit to transfer. *Storing* jobs have received their bytes.
/// Jobs *awaiting a peer* wait for the transfer of another worker. Jobs *awaiting the cache* look into it again,
/// because a peer or this worker may have stored a response, or wait until this worker has stored one. Jobs *awaiting a
/// permission* wait for the robots.txt of their origin, which another job transfers. A job for a file of the host goes
/// from *looking up* to *awaiting its file* and *reading its file*, and has no other phase. Loads may join in every
/// phase, until `detach` or the end.
///
/// When a transfer has ended, `record` takes its signal about the origin (`OriginHealth` and `ConcurrencyWindow`
/// determine the consequences), then `finish`, `retry` or `end` moves the job on.
///
/// Guarantees: a job's priority is the highest of its live subscribers'; no transfer starts that a window or the
/// origin's health forbids; each subscriber is returned exactly once, by `end` or by unsubscribing; every queued job
/// gets its turn, unless more urgent ones keep arriving or the decoders make no progress. An operation on one load or
/// job costs O(1) or O(log n), however many wait. Finding that an origin is down, or held for longer than some of its
/// loads can wait, costs O(n) in its jobs.
///
/// Not copyable: as a property of a class it would be copied, with a retain per reference, for each call that reads it.
struct Scheduler: ~Copyable {
  enum Phase {
    case lookingUp, waiting, active, storing, backingOff, awaitingPeer, awaitingCache, awaitingPermission
    case awaitingFile, readingFile

    /// Whether the job is out of the queue because a transfer may turn out to be unnecessary or forbidden.
    var isDeferred: Bool { self == .awaitingPeer || self == .awaitingCache || self == .awaitingPermission }
  }

  struct Job {
    let key: TransferKey
    /// The origin's slot.
    let origin: Int32
    var phase = Phase.lookingUp
    /// The priority and the need for a decoder, derived from its subscribers.
    var queueClass = FairQueue.QueueClass(priority: .lowest, needsDecoder: true)
    /// False after `detach`: later loads do not join it.
    var isJoinable = true
    /// The number of the running or next transfer, from 1.
    var attempt = 1
    /// Whether its last transfer ended with a first-byte timeout.
    var hasTimedOut = false
    /// The index of its transfer in `transfers.list`.
    var runningIndex: Int32 = -1
    /// The sequence number among the queued jobs of its origin and priority. Assigned before the job is queued.
    var sequence: Int64
    /// The slots of its subscribers.
    var subscribers = IndexLinkedList()
    /// The number of subscribers that need no decoder.
    var decodeFreeSubscribers: Int32 = 0
    var byPriority = PriorityCounts()

    var priority: Priority { queueClass.priority }

    var hasSubscribers: Bool { !subscribers.isEmpty }
  }

  struct Subscriber {
    /// The job's slot.
    var job: Int32
    var priority: Priority
    /// Whether the image must be decoded after the transfer.
    let needsDecoder: Bool
    let deadline: Instant?
    /// Whether it is in `jobs.tooLate`.
    var isTooLate = false
  }

  /// The state of the lookup of an origin's name.
  enum Name {
    /// Not looked up. Each transfer looks it up itself.
    case unknown
    /// Being looked up. No transfer starts before the result.
    case asked
    case found
  }

  struct OriginRecord {
    let origin: Origin
    var name = Name.unknown
    /// The duration of the lookup, until the first transfer takes it.
    var nameDuration: Duration?
    /// The jobs of the origin in any phase.
    var jobs = IndexLinkedList()
    var active = 0
    /// `active` after the last start: several transfers may end before the next one starts.
    var activeAtStart = 0
    var health = OriginHealth()
    var window: ConcurrencyWindow
    var isHTTP2 = false
    /// The number of transfers started by all origins when this one last answered.
    var startsAtLastAnswer: UInt64 = 0
    /// The start number of the last transfer before the window last shrank: transfers up to it do not shrink it again.
    var lastShrink: UInt64 = 0
    /// The minimum time between two starts that the origin asks for (`Crawl-delay`).
    var crawlDelay: Duration?
    /// When the next transfer may start (`--rate`, `Crawl-delay`).
    var nextStart: Instant?
    /// The failure that suspended it last.
    var failure: LoadError?
    /// No load of its jobs has an earlier deadline.
    var earliestDeadline: Instant?
    /// The health last reported, or about to be reported, by `takeHealthChanges`.
    var reportedHealth = OriginState.Health.healthy
    /// When the record is removed; set while the origin has no jobs but state worth keeping.
    var forgetAt: Instant?
  }

  enum Timer {
    case retry(JobID)
    /// The target of a redirect may be requested.
    case redirect(JobID)
    case deadline(LoadID)
    /// The origin's suspension or time of being down ends, or its next transfer may start.
    case release(OriginID)
    case forget(OriginID)
  }

  var limits: SchedulerLimits {
    didSet {
      transfers.window.setBounds(limits.windowForAll)
      for id in origins.ids.sorted(by: { $0.serial < $1.serial }) {
        origins[id.slot].window.setBounds(limits.window(isHTTP2: origins[id.slot].isHTTP2))
        reconsider(id.slot)
        checkDeadlines(at: id.slot)
      }
      reconsiderDecoders()
    }
  }
  /// Set by `pause`, and while nobody reads the output: running transfers continue, no transfer starts.
  var isPaused = false {
    didSet {
      if oldValue, !isPaused { awaitedLookUps = (jobs.lookingUpCount, jobs.lastSerial) }
    }
  }
  /// The number of jobs created before the end of a pause whose cache lookup is pending, and the serial of the last
  /// such job. No transfer starts until the number is 0: otherwise the first lookup to finish would start, not the most
  /// urgent job.
  private(set) var awaitedLookUps: (count: Int, last: UInt64) = (0, 0)
  /// Items held back outside the scheduler that will become jobs: they count as queued for `maxQueued`.
  var reserved = PriorityCounts()
  /// The running and waiting decodes of newly transferred images.
  var undecoded = PriorityCounts() {
    didSet { if undecoded != oldValue { reconsiderDecoders() } }
  }

  // The rest is modified only by the scheduler's own extensions.

  var transfers: RunningTransfers
  var jobs = JobTable()
  var subscribers = SlotMap<LoadID, Subscriber>()
  var subscriberLinks: [IndexLinkedList.Link] = []
  var origins = OriginTable()
  var queue = FairQueue()
  /// The jobs that wait until their file is read.
  var files = FairQueue()
  /// The loads whose file is read, waits for a decode, or is decoded.
  var filesUnderWay: Set<LoadID> = []
  /// All assigned sequence numbers lie between these.
  private var sequences: (first: Int64, last: Int64) = (0, 0)
  var timers = TimerQueue<Timer>()
  /// The jobs that running transfers wait for. See `startBeyondLimits`.
  var jobsBeyondLimits: [JobID] = []
  /// The latest time passed in.
  var latest = Instant.now

  init(limits: SchedulerLimits = SchedulerLimits()) {
    self.limits = limits
    transfers = RunningTransfers(window: ConcurrencyWindow(limits.windowForAll))
    files.admit(Self.hostFiles)
  }

  // MARK: - Subscribing

  enum Subscription: Equatable {
    /// A new job in the phase `lookingUp`: look into the cache, then call `enqueue` or `end`.
    case created(JobID)
    /// An existing job. `attempt` is set if a transfer is running.
    case joined(JobID, attempt: Int?)
  }

  /// Subscribes a load to the job of a key, which is created if needed. A load may have only one subscription.
  mutating func subscribe(
    _ id: LoadID, to key: TransferKey, of origin: Origin, priority: Priority, needsDecoder: Bool,
    deadline: Instant?
  ) -> Subscription {
    let result: Subscription
    let slot: Int32
    if let existing = jobs.byKey[key] {
      slot = existing
      result = .joined(jobs.id(at: slot), attempt: jobs[slot].phase == .active ? jobs[slot].attempt : nil)
    } else {
      let job = createJob(key, of: origin)
      slot = job.slot
      result = .created(job)
    }
    // What was read of its file, if it joins again, is lost.
    fileEnded(id)
    let subscriber = Subscriber(job: slot, priority: priority, needsDecoder: needsDecoder, deadline: deadline)
    subscribers.insert(subscriber, at: id)
    subscriberLinks.reach(id.slot)
    jobs[slot].subscribers.append(id.slot, in: &subscriberLinks)
    jobs[slot].byPriority[priority] += 1
    if !needsDecoder { jobs[slot].decodeFreeSubscribers += 1 }
    updateQueueClass(of: slot)
    if let deadline {
      addTimer(.deadline(id), at: deadline)
      deadlineAdded(deadline, at: jobs[slot].origin)
    }
    if let hold = hold(of: slot) { checkDeadline(of: id.slot, hold) }
    return result
  }

  private mutating func createJob(_ key: TransferKey, of origin: Origin) -> JobID {
    let originID = admit(origin)
    jobs.lookingUpCount += 1
    let job = Job(key: key, origin: originID.slot, sequence: nextSequence(.asItComes))
    return jobs.insert(job, into: &origins[originID.slot].jobs)
  }

  enum UnsubscribeResult: Equatable {
    case unknown
    /// Other loads wait for the job, or it is being stored and continues without any.
    case stillNeeded
    /// The last subscriber has gone. The job had no transfer and has been removed.
    case orphanedJob(JobID)
    /// The last subscriber has gone. Abort the transfer and `detach` the job, or let it continue, so that it can be
    /// joined again. In either case it keeps its permit until `end`, so that limits hold.
    case orphanedTransfer(JobID)
  }

  mutating func unsubscribe(_ id: LoadID) -> UnsubscribeResult {
    guard let subscriber = subscribers[id] else { return .unknown }
    let job = jobs.id(at: subscriber.job)
    remove(subscriber, id)
    guard !jobs[job.slot].hasSubscribers else {
      updateQueueClass(of: job.slot)
      return .stillNeeded
    }
    switch jobs[job.slot].phase {
    case .storing: return .stillNeeded
    case .active: return .orphanedTransfer(job)
    case .lookingUp, .waiting, .backingOff, .awaitingPeer, .awaitingCache, .awaitingPermission, .awaitingFile,
      .readingFile:
      _ = end(job)
      return .orphanedJob(job)
    }
  }

  mutating func remove(_ subscriber: Subscriber, _ id: LoadID) {
    jobs[subscriber.job].subscribers.remove(id.slot, in: &subscriberLinks)
    jobs[subscriber.job].byPriority[subscriber.priority] -= 1
    if !subscriber.needsDecoder { jobs[subscriber.job].decodeFreeSubscribers -= 1 }
    subscribers.remove(id)
  }

  /// Returns false if the load is unknown or already has that priority.
  mutating func setPriority(_ priority: Priority, of id: LoadID) -> Bool {
    guard let subscriber = subscribers[id], subscriber.priority != priority else { return false }
    jobs[subscriber.job].byPriority[subscriber.priority] -= 1
    jobs[subscriber.job].byPriority[priority] += 1
    subscribers[id.slot].priority = priority
    updateQueueClass(of: subscriber.job)
    return true
  }

  /// Updates the queue class of a job after a change of its subscribers.
  mutating func updateQueueClass(of slot: Int32) {
    guard let priority = jobs[slot].byPriority.highest else { return }
    let (old, new) = (
      jobs[slot].queueClass,
      FairQueue.QueueClass(priority: priority, needsDecoder: jobs[slot].decodeFreeSubscribers == 0)
    )
    guard new != old else { return }
    jobs[slot].queueClass = new
    // A raised job goes behind those that had this priority before; a lowered one goes first, since it has waited
    // longer than the others of its level. The same holds for a job in its cache lookup, which is queued later.
    if priority != old.priority { jobs[slot].sequence = nextSequence(priority < old.priority ? .first : .asItComes) }
    switch jobs[slot].phase {
    case .waiting: queue.move(slot, of: jobs[slot].origin, to: new, sequence: jobs[slot].sequence)
    case .awaitingFile: files.move(slot, of: Self.hostFiles, to: new, sequence: jobs[slot].sequence)
    default: break
    }
  }

  /// Ends the cache lookup of a job, or skips it.
  mutating func endCacheLookup(_ id: JobID) {
    jobs.lookingUpCount -= 1
    if awaitedLookUps.count > 0, id.serial <= awaitedLookUps.last { awaitedLookUps.count -= 1 }
  }

  enum QueuePosition {
    /// Before all queued jobs.
    case first
    case asItComes
    /// After all queued jobs.
    case last
  }

  /// Assigns a sequence number.
  mutating func nextSequence(_ turn: QueuePosition) -> Int64 {
    if turn == (limits.order == .fifo ? .first : .last) {
      sequences.first -= 1
      return sequences.first
    }
    sequences.last += 1
    return sequences.last
  }

  // MARK: - Queries

  var activeCount: Int { transfers.list.count }

  /// The number of queued jobs by priority.
  var waiting: PriorityCounts { queue.counts }

  /// How many more jobs may be queued.
  var freePlaces: Int {
    max(0, limits.maxQueued - waiting.total - jobs.backingOffCount - jobs.deferredCount - reserved.total)
  }

  /// The time after which a load rejected with `overloaded` should come again. A place for one load is free much
  /// sooner, but not for all the loads that were rejected at once.
  func timeToFreeQueue(at now: Instant) -> Duration {
    transfers.startRate.time(for: limits.maxQueued / 10 + 1, at: now)
  }

  func job(_ id: JobID) -> Job? { jobs[id] }

  /// The job that a load with this key would join.
  func job(for key: TransferKey) -> JobID? { jobs.byKey[key].map { jobs.id(at: $0) } }

  func job(of id: LoadID) -> JobID? { subscribers[id].map { jobs.id(at: $0.job) } }

  func priority(of id: LoadID) -> Priority? { subscribers[id]?.priority }

  /// The subscribers of a job, in the order in which they subscribed.
  func subscribers(of id: JobID) -> [LoadID] {
    guard jobs.contains(id) else { return [] }
    var ids: [LoadID] = []
    ids.reserveCapacity(jobs[id.slot].subscribers.count)
    forEachSubscriber(of: id) { ids.append($0) }
    return ids
  }

  /// Calls `body` for each subscriber, without allocating an array. `body` must not modify the scheduler.
  func forEachSubscriber(of id: JobID, _ body: (LoadID) -> Void) {
    guard jobs.contains(id) else { return }
    for slot in jobs[id.slot].subscribers.elements(in: subscriberLinks) { body(subscribers.id(at: slot)) }
  }

  func firstSubscriber(of id: JobID) -> LoadID? {
    guard jobs.contains(id), jobs[id.slot].hasSubscribers else { return nil }
    return subscribers.id(at: jobs[id.slot].subscribers.first)
  }

  /// All jobs, for operations such as `clear`.
  var allJobs: [JobID] { jobs.ids }

  var isEmpty: Bool { jobs.isEmpty }
}
