internal import HTTPCaching
internal import HTTPTransport
internal import ImageStore
internal import Platform

/// The jobs: each is one transfer for all loads that want the same response.
///
/// A job looks into the cache (`JobLookups`), waits in the queue of the scheduler, transfers (`TransferCoordinator`),
/// and stores what it got (`ResponseCoordinator`). This class lets loads join and leave, and carries out the actions
/// that a `Job` returns.
@LoadingActor
final class JobCoordinator {
  weak var loader: Loader?
  let jobs: JobRegistry
  let lookups: JobLookups
  let transfers: TransferCoordinator
  let responses: ResponseCoordinator
  let permission: PermissionCoordinator
  private let registry: LoadRegistry
  private let cache: CacheCoordinator
  private let peers: PeerCoordinator
  private let deliveries: DeliveryCoordinator
  private let storage: DiskServices
  private let partialBodies: PartialBodies

  init(
    jobs: JobRegistry, registry: LoadRegistry, cache: CacheCoordinator, peers: PeerCoordinator,
    decodes: DecodeCoordinator, deliveries: DeliveryCoordinator, storage: DiskServices, transport: Transport,
    previews: PreviewCoordinator, settings: LoaderSettings
  ) {
    (self.jobs, self.registry, self.cache, self.peers) = (jobs, registry, cache, peers)
    (self.deliveries, self.storage) = (deliveries, storage)
    partialBodies = PartialBodies(jobs: jobs, storage: storage, diskLimit: settings.diskLimit)
    lookups = JobLookups(
      jobs: jobs, registry: registry, cache: cache, peers: peers, deliveries: deliveries, storage: storage)
    permission = PermissionCoordinator(
      jobs: jobs, registry: registry, transport: transport, userAgent: settings.robotsUserAgent)
    transfers = TransferCoordinator(
      jobs: jobs, cache: cache, peers: peers, deliveries: deliveries, storage: storage, transport: transport,
      previews: previews, permission: permission, partialBodies: partialBodies)
    responses = ResponseCoordinator(
      jobs: jobs, registry: registry, cache: cache, decodes: decodes, deliveries: deliveries, storage: storage)
    (lookups.client, permission.client, transfers.client, responses.client) = (self, self, self, self)
  }

  func apply(_ settings: LoaderSettings) {
    jobs.scheduler.limits = settings.limits
    partialBodies.setDiskLimit(settings.diskLimit)
    transfers.maxRedirects = settings.maxRedirects
  }

  // MARK: - Joining and leaving

  /// Answers the load from the candidates, or subscribes it to the job of its key.
  func submit(_ load: ActiveLoad, with candidates: [Candidate]) {
    if !lookups.serveFromCache(load, from: candidates) { join(load) }
  }

  /// Subscribes the load to the job of its key, and creates the job if there is none. A load that may send nothing
  /// (`only-if-cached`) joins no job, whose transfer would be its answer.
  func join(_ load: ActiveLoad) {
    if cache.mustNotTransfer(load) { return lookups.lookUp(alone: load) }
    let key = load.jobKey
    // Only the present loads of a superseded job wait for it.
    if let job = jobs.scheduler.job(for: key), isSuperseded(job) { jobs.scheduler.detach(job) }
    let subscription = jobs.scheduler.subscribe(
      load.id, to: key, of: load.request.origin, priority: load.priority,
      needsDecoder: load.request.processing != nil, deadline: load.deadline)
    load.resetAttempt()
    switch subscription {
    case .created(let job), .joined(let job, _): jobs.recordJoin(load, job, at: .now)
    }
    switch subscription {
    case .created(let job):
      jobs.insert(Job(first: load), at: job)
      lookups.lookUp(job)
    case .joined(let job, let attempt):
      let isLate = lookups.isLate(load, with: key, for: job)
      guard isLate || jobs[job]?.candidates == nil || lookups.mayTransfer(load, among: jobs[job]?.candidates ?? [])
      else {
        return
      }
      jobs.releasePlace(of: load)
      permission.raise(for: job)
      if let attempt { load.emit(.started(attempt: attempt)) }
      if load.request.events.contains(.preview) { jobs[job]?.download?.wantPreviews() }
      if load.request.awaitsHeader, let header = jobs[job]?.download?.wantHeader() {
        return transfers.endEarly(load, of: job, header)
      }
      if isLate { lookups.lookUp(late: load, for: job) }
    }
  }

  /// Has an image transferred again whose stored original is damaged, without conditions: a 304 would confirm the
  /// damage. Once for a load.
  func transferAgain(_ load: ActiveLoad, mayStart: Bool) -> Bool {
    guard case .http = load.request.source, !load.bypassesCache, !cache.mustNotTransfer(load),
      mayStart || jobs.scheduler.job(for: load.request.jobKey(in: load.partition, bypassingCache: true)) != nil
    else { return false }
    load.bypassesCache = true
    join(load)
    return true
  }

  /// Removes the load from its job. Abandons the job or its transfer if no other load needs it.
  func unsubscribe(_ load: ActiveLoad) {
    switch jobs.scheduler.unsubscribe(load.id) {
    case .unknown, .stillNeeded: break
    case .orphanedJob(let job): remove(job)
    case .orphanedTransfer(let job): abortTransfer(of: job)
    }
  }

  /// Aborts a transfer that no load needs. The job stays active until the connection is known to be closed; the bytes
  /// received so far are retained for a later load.
  func abortTransfer(of job: JobID) {
    jobs.scheduler.detach(job)
    transfers.cancel(job)
  }

  /// Removes a job that ends without a result. Its partial body is retained for a later load, unless the error shows
  /// that it is useless.
  func remove(_ id: JobID, after error: LoadError? = nil) {
    guard let job = jobs.remove(id) else { return }
    permission.leave(id)
    guard let partialBody = partialBodies.take(from: job) else { return }
    if error.map({ $0.isOfServer && !$0.isPermanent }) ?? true {
      partialBodies.retain(partialBody, of: job)
    } else {
      storage.discard(partialBody.body)
    }
  }

  /// Aborts the transfers that no load waits for.
  func cancelBackgroundWork() {
    for job in jobs.scheduler.allJobs where jobs.scheduler.job(job)?.hasSubscribers == false { abortTransfer(of: job) }
  }

  /// Handles the due timers, and ends the loads that cannot wait for the next attempt of their job.
  ///
  /// - Returns: the loads whose deadline has passed, with their number of attempts. The caller must end each.
  func expire(at now: Instant) -> [(load: LoadID, attempts: Int)] {
    let expired = jobs.scheduler.expired(at: now)
    for job in expired.jobs { endAtDownOrigin(job) }
    for job in expired.redirects { permission.followRedirect(job) }
    for (id, job, hold) in jobs.scheduler.takeTooLate() where !lookups.hasLateLoads(of: job) {
      guard let load = registry[id] else { continue }
      let error = error(for: job, hold, at: now)
      if serveStale(load, of: job, after: error) { unsubscribe(load) } else { fail(load, error) }
    }
    return expired.loads.map { ($0, jobs.scheduler.job(of: $0).flatMap { jobs.scheduler.job($0)?.attempt } ?? 1) }
  }

  /// Looks into the cache again for the jobs whose wait for a peer is over.
  func pollPeers(at now: Instant) {
    for job in peers.poll(at: now) where jobs.scheduler.job(job)?.phase == .awaitingPeer { lookups.lookAgain(job) }
  }

  /// Adds a job to the queue. Ends it if the site does not allow it, the queue is full or the origin is down.
  func enqueue(_ job: JobID) {
    let answer = permission.permission(of: job)
    if case .refused(let error) = answer { return fail(job, error) }
    let isPermitted = if case .allowed = answer { true } else { false }
    let needsPlace = jobs[job]?.isForPermission != true
    var admission = jobs.scheduler.enqueue(job, isPermitted: isPermitted, needsPlace: needsPlace)
    if case .queueFull = admission {
      // Start the transfers that are due first: jobs that only await this decision must not count as queued.
      transfers.start(at: .now, needsPlace: true)
      admission = jobs.scheduler.enqueue(job, isPermitted: isPermitted, needsPlace: needsPlace)
    }
    switch admission {
    case .accepted:
      jobs.record(for: job) { $0.enter(.wait, at: .now) }
      if case .open(let url, let rules) = answer { permission.find(of: job, for: url, rules) }
    case .queueFull: rejectAsOverloaded(job)
    case .originDown: endAtDownOrigin(job)
    }
  }

  /// Fails a job for which the queue has no place.
  func rejectAsOverloaded(_ job: JobID) {
    var error = LoadError(.overloaded, "the queue is full: \(jobs.scheduler.limits.maxQueued) loads are waiting")
    error.retryAfter = jobs.scheduler.timeToFreeQueue(at: .now)
    fail(job, error)
  }

  // MARK: - Invalidation

  /// Applies a clear to the jobs under way. The results of matching ones are not cached, and no later load joins them.
  func invalidate(_ clear: Clear) {
    for id in jobs.scheduler.allJobs {
      guard let job = jobs[id], let phase = jobs.scheduler.job(id)?.phase else { continue }
      let actions = job.invalidated(
        by: clear, matches: clear.filter.matches(job.request),
        isQueued: phase == .waiting || phase == .awaitingPermission)
      perform(actions, for: id)
    }
  }

  /// Whether the host has stored an image under the key since the job was created, or is storing one. Such a job
  /// accepts no further loads, and its response is not cached.
  func isSuperseded(_ id: JobID) -> Bool {
    guard cache.pending.hasHostStores else { return false }
    return jobs[id].map { cache.pending.isSuperseded($0.identity, since: $0.first.id, now: .now) } ?? false
  }

  // MARK: - Actions

  /// Carries out the actions of a job.
  func perform(_ actions: [JobAction], for id: JobID) {
    for action in actions {
      switch action {
      case .discard(let body): storage.discard(body)
      case .keep(let partialBody):
        if let job = jobs[id] { partialBodies.keep(partialBody, of: job) }
      case .dropKept:
        if let partialBody = jobs[id].flatMap({ partialBodies.take(from: $0) }) { storage.discard(partialBody.body) }
      case .retain(let partialBody): if let job = jobs[id] { partialBodies.retain(partialBody, of: job) }
      case .transferWhole: transfers.send(id, resuming: nil)
      case .transferRest: transfers.send(id, resuming: jobs[id].flatMap { partialBodies.take(from: $0) })
      case .confirm(let summary): responses.confirm(id, summary)
      case .store(let summary, let ending): responses.store(id, summary, ending)
      case .attemptFailed(let error): attemptFailed(id, error)
      case .detach: jobs.scheduler.detach(id)
      case .end:
        _ = jobs.scheduler.end(id)
        let job = jobs.remove(id)
        if let job, job.probe.hasPromisedPartialBody { lookups.storingEnded(job.identity) }
      }
    }
  }

  // MARK: - Failures

  /// Handles a failed attempt: schedules a retry, or gives up.
  func attemptFailed(_ id: JobID, _ error: LoadError) {
    guard let job = jobs[id] else { return }
    job.attemptFailed(error)
    var error = error
    error.attempts = jobs.scheduler.job(id)?.attempt ?? 1
    if error.isRetryable {
      switch jobs.scheduler.retry(id, retryAfter: error.retryAfter, now: .now, random: &transfers.random) {
      case .retry(let attempt, let delay):
        transfers.counts.retries += 1
        loader?.trace?.retrying(job.request, attempt: attempt, delay: delay, after: error)
        jobs.record(for: id) { $0.restart(at: .now) }
        return jobs.forEachLoad(of: id) {
          guard !jobs.scheduler.isTooLate($0.id) else { return }
          $0.emit(.retrying(attempt: attempt, delay: delay, kind: error.kind))
        }
      case .final: error.isOriginDown = jobs.scheduler.isOriginDown(of: id)
      }
    }
    giveUp(id, error)
  }

  /// Ends a job without a further attempt. Loads that may have a stored response get it; the others fail.
  func giveUp(_ id: JobID, _ error: LoadError) {
    jobs.forEachLoad(of: id) { if serveStale($0, of: id, after: error) { _ = jobs.scheduler.unsubscribe($0.id) } }
    fail(id, error)
  }

  /// Serves the load the stored response that it accepts after an error of the server, if there is one. The load must
  /// then leave its job.
  private func serveStale(_ load: ActiveLoad, of id: JobID, after error: LoadError) -> Bool {
    guard error.isOfServer, let stored = jobs[id]?.candidates,
      let fallback = cache.fallback(for: load, among: stored, after: error)
    else { return false }
    deliveries.deliver(fallback, to: load, as: .stale, at: .answer)
    return true
  }

  /// The error for a load that cannot wait for the next attempt of its job: the reason for the wait.
  private func error(for id: JobID, _ hold: Scheduler.Hold, at now: Instant) -> LoadError {
    let failure = hold.reason == .origin ? jobs.scheduler.originFailure(of: id) : jobs[id]?.failure
    var error = failure ?? jobs.scheduler.rateError(of: id, hold)
    error.retryAfter = now.duration(to: hold.until)
    error.attempts = max(1, (jobs.scheduler.job(id)?.attempt ?? 1) - 1)
    return error
  }

  /// Ends a job that waits for an origin that is down.
  func endAtDownOrigin(_ id: JobID) {
    guard let job = jobs.scheduler.job(id), var error = jobs.scheduler.originFailure(of: id) else { return }
    error.attempts = max(1, job.attempt - 1)
    giveUp(id, error)
  }

  /// Ends the job with an error for its loads.
  func fail(_ id: JobID, _ error: LoadError) {
    guard let job = jobs[id] else { return }
    remove(id, after: error)
    if error.isPermanent, job.mayKeep, !job.isForPermission, Storing.isForWhole(requestHeaders: job.request.headers) {
      cache.failures.remember(error, of: job.requestIdentity, maxBytes: job.request.maxBytes, now: .now)
    }
    for subscriber in jobs.scheduler.end(id) {
      if let load = registry[subscriber] { fail(load, error) }
    }
  }

  private func fail(_ load: ActiveLoad, _ error: LoadError) {
    var error = error
    if !load.request.wantsResponse { error.response = nil }
    deliveries.complete(load, .failure(error), at: .answer)
  }
}
