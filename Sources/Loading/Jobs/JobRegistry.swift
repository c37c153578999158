internal import HTTPTransport
internal import Platform
internal import Threads

/// The jobs under way: the scheduler, which knows where each stands, with a record of what it is for (`Job`); and the
/// loads that wait for them.
@LoadingActor
final class JobRegistry {
  private let registry: LoadRegistry
  var scheduler: Scheduler
  private var records = SlotMap<JobID, Job>()
  /// The number of loads with a reserved queue place that they have not used yet (`ActiveLoad.place`).
  private var placesOfLoads = 0

  init(loads: LoadRegistry, limits: SchedulerLimits) {
    registry = loads
    scheduler = Scheduler(limits: limits)
  }

  var isEmpty: Bool { records.isEmpty && scheduler.isEmpty && placesOfLoads == 0 }

  subscript(_ id: JobID) -> Job? { records[id] }

  func insert(_ job: Job, at id: JobID) { records.insert(job, at: id) }

  /// Removes the record of a job, which must also end in the scheduler.
  @discardableResult
  func remove(_ id: JobID) -> Job? {
    let job = records.remove(id)
    job?.hasEnded?.withLock { $0 = true }
    return job
  }

  // MARK: - The loads of a job

  /// The loads of a job, in the order in which they joined.
  func loads(of job: JobID) -> [ActiveLoad] {
    scheduler.subscribers(of: job).compactMap { registry[$0] }
  }

  /// The load that joined the job first of those that wait.
  func firstLoad(of job: JobID) -> ActiveLoad? {
    scheduler.firstSubscriber(of: job).flatMap { registry[$0] }
  }

  /// Whether a load of the job satisfies the predicate, which must leave the jobs as they are.
  func hasLoad(in job: JobID, where predicate: (ActiveLoad) -> Bool) -> Bool {
    var isFound = false
    scheduler.forEachSubscriber(of: job) { id in
      if !isFound, let load = registry[id] { isFound = predicate(load) }
    }
    return isFound
  }

  /// Calls `body` for each load of a job that has not ended by then.
  func forEachLoad(of job: JobID, _ body: (ActiveLoad) -> Void) {
    for id in scheduler.subscribers(of: job) { if let load = registry[id] { body(load) } }
  }

  /// The loads of the job that want a preview with so many scans.
  func loads(of job: JobID, awaitingPreviewOf scans: Int) -> [ActiveLoad] {
    loads(of: job).filter { $0.awaitsPreview(of: scans) }
  }

  /// The variants that the loads of the job want.
  func wantedVariants(of job: JobID) -> Set<String> {
    var variants: Set<String> = []
    scheduler.forEachSubscriber(of: job) { id in
      if let load = registry[id] { variants.insert(load.request.variant) }
    }
    return variants
  }

  /// The union of the tiers requested by the loads of the job, as long as it may be cached.
  func tiers(of job: JobID, hasDisk: Bool) -> LoadRequest.Tiers {
    guard records[job]?.mayKeep == true else { return [] }
    var tiers: LoadRequest.Tiers = []
    var hasRestarted = false
    scheduler.forEachSubscriber(of: job) { id in
      guard let load = registry[id] else { return }
      tiers.formUnion(load.request.tiersOfOriginal(hasDisk: hasDisk))
      if load.hasRestarted { hasRestarted = true }
    }
    // A source that was evicted before it was decoded goes into a scratch file this time, which is not evicted.
    if hasRestarted { tiers.remove(.disk) }
    return tiers
  }

  // MARK: - Queue places

  /// How many more loads may be queued, assuming that each job still in its cache lookup will be.
  var freePlaces: Int { max(0, scheduler.freePlaces - (scheduler.jobs.lookingUpCount - placesOfLoads)) }

  /// Reserves queue places for prefetch items that are not loads yet.
  func reserve(places: Int, at priority: Priority) { scheduler.reserved[priority] += places }

  func release(places: Int, at priority: Priority) { scheduler.reserved[priority] -= places }

  /// Counts the queue place that is reserved for a new load.
  func adoptPlace(of load: ActiveLoad) { if load.place != nil { placesOfLoads += 1 } }

  /// Releases the queue place reserved for a load, which has joined the queue or does not need it.
  func releasePlace(of load: ActiveLoad) {
    guard let place = load.place.take() else { return }
    placesOfLoads -= 1
    release(places: 1, at: place)
  }

  // MARK: - The timelines of the loads

  /// Changes the timeline of each load of the job.
  func record(for job: JobID, _ change: (inout LoadTimeline) -> Void) {
    scheduler.forEachSubscriber(of: job) { id in
      if let load = registry[id] { change(&load.timeline) }
    }
  }

  /// The load has joined the job: the phases of the job are those of the load from now on.
  func recordJoin(_ load: ActiveLoad, _ job: JobID, at now: Instant) {
    // It has waited for another job before.
    if load.timeline.phase != .lookup { load.timeline.restart(at: now) }
    switch scheduler.job(job)?.phase {
    case .active:
      load.transfer = job.serial
      load.timeline.attemptStarted(at: now)
    case .storing:
      load.transfer = job.serial
      load.timeline.enter(.store, at: now)
    case .waiting, .backingOff, .awaitingPeer, .awaitingCache, .awaitingPermission, .awaitingFile:
      load.timeline.enter(.wait, at: now)
    case .readingFile: load.timeline.enter(.store, at: now)
    case .lookingUp, nil: break
    }
  }

  func recordAttempt(of job: JobID, at now: Instant, name: Duration?) {
    scheduler.forEachSubscriber(of: job) { id in
      guard let load = registry[id] else { return }
      load.transfer = job.serial
      load.timeline.attemptStarted(at: now, name: name)
    }
  }

  func recordTransfer(of job: JobID, _ outcome: Result<TransferSummary, TransferError>) {
    switch outcome {
    case .success(let summary):
      record(for: job) { $0.transferred(summary.times, hasBody: summary.head.status != 304) }
    case .failure(let error):
      guard let times = error.times else { return }
      record(for: job) { $0.transferred(times, hasBody: true) }
    }
  }
}
