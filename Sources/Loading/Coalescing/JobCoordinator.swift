internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageStore
internal import Platform

/// The jobs: each is one transfer for all loads that want the same response.
///
/// A job looks into the cache, waits in the queue of `scheduler`, transfers, and stores what it got. This class feeds
/// the events to `Job` and `Scheduler`, which decide, and carries out their actions.
@LoadingActor
final class JobCoordinator {
  weak var loader: Loader?
  let registry: LoadRegistry
  let cache: CacheCoordinator
  let peers: PeerCoordinator
  let deliveries: DeliveryCoordinator
  let storage: DiskServices
  let transport: any Transferring
  let previews: PreviewCoordinator
  let robots: RobotsCoordinator
  var maxRedirects = 10
  var counts = TransferCounts()

  /// For the delays of the scheduler.
  var random: LoaderRandom
  var scheduler: Scheduler
  var jobs = SlotMap<JobID, Job>()
  private var partialBodies: PartialBodyBudget
  /// The number of loads with a reserved queue place that they have not used yet (`ActiveLoad.place`).
  private var placesOfLoads = 0
  /// The late loads that wait for another lookup, by the job for which a lookup is under way. See LateJoinLookup.
  var lateLoads: [JobID: [LoadID]] = [:]

  init(
    registry: LoadRegistry, cache: CacheCoordinator, peers: PeerCoordinator, deliveries: DeliveryCoordinator,
    storage: DiskServices, transport: any Transferring, previews: PreviewCoordinator, settings: LoaderSettings,
    random: LoaderRandom
  ) {
    (self.registry, self.cache, self.peers, self.deliveries) = (registry, cache, peers, deliveries)
    (self.storage, self.transport, self.previews, self.random) = (storage, transport, previews, random)
    robots = RobotsCoordinator(userAgent: settings.robotsUserAgent, transport: transport, storage: storage)
    scheduler = Scheduler(limits: settings.limits)
    scheduler.latest = LoadingActor.now
    partialBodies = PartialBodyBudget(diskLimit: settings.diskLimit)
  }

  func apply(_ settings: LoaderSettings) {
    scheduler.limits = settings.limits
    partialBodies.setDiskLimit(settings.diskLimit)
    maxRedirects = settings.maxRedirects
  }

  var isEmpty: Bool { jobs.isEmpty && scheduler.isEmpty && placesOfLoads == 0 }

  /// The loads of a job, in the order in which they joined.
  func loads(of job: JobID) -> [ActiveLoad] {
    scheduler.subscribers(of: job).compactMap { registry[$0] }
  }

  /// The load that joined the job first of those that wait.
  private func firstLoad(of job: JobID) -> ActiveLoad? {
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

  // MARK: - Joining and leaving

  /// Answers the load from the candidates, or subscribes it to the job of its key.
  func submit(_ load: ActiveLoad, with candidates: [Candidate]) {
    if !serveFromCache(load, from: candidates) { join(load) }
  }

  /// Subscribes the load to the job of its key, and creates the job if there is none. A load that may send nothing
  /// (`only-if-cached`) joins no job, whose transfer would be its answer.
  func join(_ load: ActiveLoad) {
    if cache.mustNotTransfer(load) { return lookUp(alone: load) }
    let key = load.jobKey
    // Only the present loads of a superseded job wait for it.
    if let job = scheduler.job(for: key), isSuperseded(job) { scheduler.detach(job) }
    let subscription = scheduler.subscribe(
      load.id, to: key, of: load.request.origin, priority: load.priority,
      needsDecoder: load.request.processing != nil, deadline: load.deadline)
    load.resetAttempt()
    switch subscription {
    case .created(let job), .joined(let job, _): recordJoin(load, job, at: LoadingActor.now)
    }
    switch subscription {
    case .created(let job):
      jobs[job] = Job(first: load)
      lookUp(job)
    case .joined(let job, let attempt):
      let isLate = isLate(load, with: key, for: job)
      guard isLate || jobs[job]?.candidates == nil || mayTransfer(load, among: jobs[job]?.candidates ?? []) else {
        return
      }
      releasePlace(of: load)
      if let attempt { load.emit(.started(attempt: attempt)) }
      if load.request.events.contains(.preview) { jobs[job]?.download?.wantPreviews() }
      if load.request.awaitsHeader, let header = jobs[job]?.download?.wantHeader() {
        return endEarly(load, of: job, header)
      }
      if isLate { lookUp(late: load, for: job) }
    }
  }

  /// Removes the load from its job. Abandons the job or its transfer if no other load needs it.
  func unsubscribe(_ load: ActiveLoad) {
    switch scheduler.unsubscribe(load.id) {
    case .unknown, .stillNeeded: break
    case .orphanedJob(let job): remove(job)
    case .orphanedTransfer(let job): abortTransfer(of: job)
    }
  }

  /// Aborts a transfer that no load needs. The job stays active until the connection is known to be closed; the bytes
  /// received so far are retained for a later load.
  func abortTransfer(of job: JobID) {
    scheduler.detach(job)
    if let transfer = jobs[job]?.transfer { transport.cancel(transfer) }
  }

  /// Removes a job that ends without a result. Its partial body is retained for a later load, unless the error shows
  /// that it is useless.
  func remove(_ id: JobID, after error: LoadError? = nil) {
    guard let job = jobs.remove(id), let partialBody = job.takePartialBody() else { return }
    partialBodies.remove(partialBody)
    if error?.isRetryable ?? true { retain(partialBody, of: job) } else { storage.discard(partialBody.body) }
  }

  /// Aborts the transfers that no load waits for.
  func cancelBackgroundWork() {
    for job in scheduler.allJobs where scheduler.job(job)?.hasSubscribers == false { abortTransfer(of: job) }
  }

  /// Handles the due timers.
  ///
  /// - Returns: the loads whose deadline has passed, with their number of attempts. The caller must end each.
  func expire(at now: Instant) -> [(load: LoadID, attempts: Int)] {
    let expired = scheduler.expired(at: now)
    for job in expired.jobs { endAtDownOrigin(job) }
    for job in expired.redirects { followRedirect(job) }
    return expired.loads.map { ($0, scheduler.job(of: $0).flatMap { scheduler.job($0)?.attempt } ?? 1) }
  }

  // MARK: - Cache lookup

  /// Looks up all variants that the loads of the job want.
  func lookUp(_ id: JobID) {
    guard let job = jobs[id], let key = scheduler.job(id)?.key else { return }
    if key.revalidation == .whenStale {
      if let claim = job.claim {
        peers.refresh(claim)
      } else {
        jobs[id.slot].claim = peers.claim(job.request, in: job.first.partition)
      }
    }
    let variants = wantedVariants(of: id)
    jobs[id.slot].lookupStarted(for: variants)
    cache.lookUp(
      job.request.key, job.first.partition, variants, isBypassed: !key.revalidation.usesCache
    ) { [weak self] found in self?.lookedUp(id, found) }
  }

  /// Answers a load that may send nothing from the cache.
  private func lookUp(alone load: ActiveLoad) {
    if load.timeline.phase != .lookup { load.timeline.restart(at: LoadingActor.now) }
    cache.lookUp(load.request.key, load.partition, [load.request.variant], isBypassed: false) {
      [weak self, id = load.id] found in
      guard let self, let load = self.registry[id] else { return }
      // A load must not see what had been cleared before it was submitted.
      if let clear = found.firstClear, load.generation >= clear { return self.lookUp(alone: load) }
      if !self.serveFromCache(load, from: found.candidates) { _ = self.mayTransfer(load, among: found.candidates) }
    }
  }

  private func wantedVariants(of job: JobID) -> Set<String> {
    var variants: Set<String> = []
    scheduler.forEachSubscriber(of: job) { id in
      if let load = registry[id] { variants.insert(load.request.variant) }
    }
    return variants
  }

  /// Whether a load of the job wants a variant that the last lookup did not include. The variant may be stored although
  /// the original is not.
  private func missesVariant(_ id: JobID) -> Bool {
    guard cache.hasDiskTiers, let job = jobs[id], scheduler.job(id)?.key.revalidation.usesCache == true else {
      return false
    }
    return hasLoad(in: id) { !job.lookedUpVariants.contains($0.request.variant) }
  }

  /// Continues a job after its cache lookup: loads that the cache serves leave the job, the others wait for its
  /// transfer.
  private func lookedUp(_ id: JobID, _ found: CacheCoordinator.Lookup) {
    if let clear = found.firstClear { separate(id, after: clear) }
    guard jobs.contains(id) else { return }
    guard jobs[id.slot].lookupFinished(found.candidates, hasPartial: found.hasPartial) else {
      return serve(id, from: found.candidates)
    }
    serve(id, from: found.candidates)
    forEachLoad(of: id) { _ = mayTransfer($0, among: found.candidates) }
    guard let first = firstLoad(of: id) else { return }
    if missesVariant(id) { return lookUp(id) }
    // A job that resumes a partial body sends no other conditions.
    if jobs[id.slot].partialBody == nil { setConditions(of: id, for: first) }
    if case .inline(let bytes, let mediaType) = first.request.source {
      storeInline(bytes, mediaType: mediaType, for: id)
    } else {
      releasePlace(of: first)
      jobs[id.slot].releaseBytes(storage.withoutBytes)
      enqueue(id)
    }
  }

  /// Separates the loads submitted after a clear from a job whose lookup result had been cleared by then: they must not
  /// see it. They join another job.
  ///
  /// - Parameter clear: the number of the clear.
  private func separate(_ job: JobID, after clear: Int) {
    scheduler.detach(job)
    forEachLoad(of: job) { load in
      guard load.generation >= clear else { return }
      unsubscribe(load)
      join(load)
    }
  }

  /// Adds a job to the queue. Ends it if the queue is full or the origin is down.
  private func enqueue(_ job: JobID) {
    guard isPermitted(job) else { return }
    var admission = scheduler.enqueue(job)
    if case .queueFull = admission {
      // Start the transfers that are due first: jobs that only await this decision must not count as queued.
      startTransfers(at: LoadingActor.now, needsPlace: true)
      admission = scheduler.enqueue(job)
    }
    switch admission {
    case .accepted: record(for: job) { $0.enter(.wait, at: LoadingActor.now) }
    case .queueFull:
      var error = LoadError(.overloaded, "the queue is full: \(scheduler.limits.maxQueued) loads are waiting")
      error.retryAfter = scheduler.timeToFreeQueue(at: LoadingActor.now)
      fail(job, error)
    case .originDown: endAtDownOrigin(job)
    }
  }

  /// Sets the conditions of the job's transfer, and the candidate that it revalidates.
  ///
  /// - Parameter load: one of the loads that wait for the job.
  private func setConditions(of job: JobID, for load: ActiveLoad) {
    let found = jobs[job.slot].candidates ?? []
    switch cache.decision(for: load, from: load.accepted(of: found)) {
    case .revalidate(let index, let headers), .showThenRevalidate(let index, _, let headers),
      .serveThenRevalidate(let index, let headers):
      // Prefer the original, which serves all loads of the job, to a variant that serves only this one.
      let chosen = found.indices.filter { load.accepts(found[$0]) }[index]
      let original = found.firstIndex {
        $0.response.variant.isEmpty && $0.response.sharesOriginal(with: found[chosen].response)
      }
      jobs[job.slot].setConditions(headers, target: original ?? chosen)
    case .fetch(let headers): jobs[job.slot].setConditions(headers, target: nil)
    case .serve, .notCached: jobs[job.slot].setConditions(HeaderFields(), target: nil)
    }
  }

  // MARK: - Serving

  /// Serves those loads of a job that the candidates satisfy, and removes them from the job.
  private func serve(_ job: JobID, from candidates: [Candidate]) {
    forEachLoad(of: job) { load in
      // The delivery is responsible for a load that it serves.
      if serveFromCache(load, from: candidates) { unsubscribe(load) }
    }
  }

  /// Answers the load from the candidates, if that takes no transfer.
  ///
  /// - Returns: whether the load has been answered, or will be without a transfer.
  func serveFromCache(_ load: ActiveLoad, from candidates: [Candidate]) -> Bool {
    let candidates = load.accepted(of: candidates)
    guard !candidates.isEmpty else { return false }
    switch cache.decision(for: load, from: candidates) {
    case .serve(let index, let isFresh):
      deliveries.deliver(candidates[index], to: load, as: isFresh ? candidates[index].status : .stale, at: .answer)
    case .serveThenRevalidate(let index, _):
      deliveries.deliver(candidates[index], to: load, as: .stale, at: .answer)
      revalidateOnce(load)
    case .showThenRevalidate(let index, let isFresh, _):
      deliveries.show(candidates[index], to: load, as: isFresh ? candidates[index].status : .stale)
      return false
    case .revalidate, .fetch, .notCached: return false
    }
    return true
  }

  /// Revalidates a response that was just served stale, by a load of its own (stale-while-revalidate, RFC 5861 section
  /// 3). One revalidation suffices for any number of stale answers.
  private func revalidateOnce(_ load: ActiveLoad) {
    let request = load.request.forBackgroundRevalidation
    guard scheduler.job(for: request.jobKey(in: load.partition, bypassingCache: false)) == nil else { return }
    loader?.submitInBackground(request)
  }

  /// Returns whether the load may cause a transfer. If its mode forbids that, or the image failed recently, answers the
  /// load with an error and returns false.
  func mayTransfer(_ load: ActiveLoad, among candidates: [Candidate]) -> Bool {
    if case .notCached = cache.decision(for: load, from: load.accepted(of: candidates)) {
      deliveries.complete(
        load, .failure(LoadError(.notCached, "the cache has no response that may be served")), at: .answer)
      return false
    }
    guard !load.request.retriesFailed else { return true }
    let failure = cache.failures.failure(
      of: CacheIdentity(key: load.request.key, partition: load.partition),
      acceptsAnything: load.request.validation == .none, maxBytes: load.request.maxBytes, now: LoadingActor.now)
    guard let failure else { return true }
    var error = LoadError(.recentlyFailed, "failed recently: \(failure.error.message)")
    error.status = failure.error.status
    error.retryAfter = LoadingActor.now.duration(to: failure.until)
    deliveries.complete(load, .failure(error), at: .answer)
    return false
  }

  // MARK: - The recheck before a transfer

  /// Rechecks the memory tier before the first transfer of a job, for a response that a job with other headers has
  /// stored. It serves the loads, or becomes the revalidation target. If a response is just being stored, the job waits
  /// for that.
  ///
  /// - Returns: whether to start the transfer now; if not, the job waits or has ended.
  func needsTransferStill(_ id: JobID) -> Bool {
    guard let job = jobs[id], let waiting = scheduler.job(id), waiting.attempt == 1, job.partialBody == nil,
      waiting.key.revalidation.usesCache
    else { return true }
    if cache.pending.waitForStore(of: job.identity, id) {
      scheduler.deferTransfer(of: id, as: .awaitingCache)
      return false
    }
    let known = cache.lookUpMemory(job.request.key, job.first.partition, job.request.variant)
    let before = job.candidates ?? []
    guard known.contains(where: { new in !before.contains { $0.response.isUnchanged(in: new.response) } }) else {
      return true
    }
    let others = before.filter { old in !known.contains { $0.response.varyingHeaders == old.response.varyingHeaders } }
    let candidates = known + others
    jobs[id.slot].update(candidates)
    serve(id, from: candidates)
    guard let load = firstLoad(of: id) else {
      _ = scheduler.end(id)
      remove(id)
      return false
    }
    setConditions(of: id, for: load)
    return true
  }

  /// Resumes the jobs that waited until a response was stored.
  func storingEnded(_ image: CacheIdentity) {
    for job in cache.pending.endStore(of: image) where scheduler.job(job)?.phase == .awaitingCache {
      lookUp(job)
    }
  }

  /// Repeats the cache lookup of the waiting job for the same image, after a job that forces revalidation has stored a
  /// response.
  func recheckSibling(of key: TransferKey) {
    guard key.revalidation != .whenStale, let other = scheduler.job(for: key.withoutForcedRevalidation) else { return }
    switch scheduler.job(other)?.phase {
    case .waiting, .backingOff: lookUp(other)
    default: break
    }
  }

  // MARK: - Invalidation

  /// Applies a clear to the jobs under way. The results of matching ones are not cached, and no later load joins them.
  func invalidate(_ clear: Clear) {
    for id in scheduler.allJobs {
      guard let job = jobs[id] else { continue }
      let actions = jobs[id.slot].invalidated(
        by: clear, matches: clear.filter.matches(job.request), isQueued: scheduler.job(id)?.phase == .waiting)
      perform(actions, for: id)
    }
  }

  /// Whether the host has stored an image under the key since the job was created, or is storing one. Such a job
  /// accepts no further loads, and its response is not cached.
  func isSuperseded(_ id: JobID) -> Bool {
    guard cache.pending.hasHostStores else { return false }
    return jobs[id].map { cache.pending.isSuperseded($0.identity, since: $0.first.id, now: LoadingActor.now) } ?? false
  }

  // MARK: - Actions

  /// Carries out the actions of a job.
  func perform(_ actions: [JobAction], for id: JobID) {
    for action in actions {
      switch action {
      case .discard(let body): storage.discard(body)
      case .keep(let partialBody):
        if partialBodies.insert(partialBody) {
          jobs[id.slot].keep(partialBody)
        } else if let job = jobs[id] {
          retain(partialBody, of: job)
        }
      case .dropKept: if let partialBody = takePartialBody(of: id) { storage.discard(partialBody.body) }
      case .retain(let partialBody): if let job = jobs[id] { retain(partialBody, of: job) }
      case .transferWhole: send(id, resuming: nil)
      case .transferRest: send(id, resuming: takePartialBody(of: id))
      case .confirm(let summary): confirm(id, summary)
      case .store(let summary, let ending): store(id, summary, ending)
      case .attemptFailed(let error): attemptFailed(id, error)
      case .detach: scheduler.detach(id)
      case .end:
        _ = scheduler.end(id)
        let job = jobs.remove(id)
        if let job, job.hasPromisedPartialBody { storingEnded(job.identity) }
      }
    }
  }

  /// Removes the partial body from the job and the budget. The caller owns it from here on.
  func takePartialBody(of job: JobID) -> PartialBody? {
    guard jobs.contains(job), let partialBody = jobs[job.slot].takePartialBody() else { return nil }
    partialBodies.remove(partialBody)
    return partialBody
  }

  /// Retains a partial body for a later load, or discards it if it must not be stored. A newer job of the same key has
  /// looked for it too early, so it may look again.
  func retain(_ partialBody: PartialBody, of job: Job) {
    guard job.mayRetain(partialBody) else { return storage.discard(partialBody.body) }
    if case .bytes(let bytes) = partialBody.body {
      // A few bytes are worth a file only if a load is likely to follow.
      guard job.hasAnsweredProbe, job.request.store.contains(.disk) else { return }
      let identity = job.request.partialIdentity(in: job.first.partition)
      storage.retainForResume(
        bytes, as: PartialRecord(partialBody.response, identity: identity, url: job.request.requestURL))
    } else {
      storage.retainForResume(partialBody.body)
    }
    if let newer = scheduler.job(for: job.first.jobKey), jobs.contains(newer) {
      jobs[newer.slot].partialBodyAvailable()
    }
  }
}

extension TransferKey.Revalidation {
  /// Whether stored responses are looked up.
  var usesCache: Bool { self == .whenStale || self == .always }
}

extension StoredResponse {
  /// Whether the other response is the same one and has not been revalidated since.
  fileprivate func isUnchanged(in other: StoredResponse) -> Bool {
    id == other.id && responseTime == other.responseTime && digest == other.digest
  }
}

/// The jobs with a transfer, as `PreviewCoordinator` sees them.
extension JobCoordinator {
  func transfer(of job: JobID) -> TransferID? { jobs[job]?.transfer }

  func priority(of job: JobID) -> Priority? { scheduler.job(job)?.priority }

  /// The loads of the job that want a preview with so many scans.
  func loads(of job: JobID, awaitingPreviewOf scans: Int) -> [ActiveLoad] {
    loads(of: job).filter { $0.awaitsPreview(of: scans) }
  }
}
