internal import HTTPCaching
internal import HTTPTypes
internal import ImageStore
internal import Platform

/// The cache lookups of jobs, and the loads that they serve.
@LoadingActor
final class JobLookups {
  weak var client: JobCoordinator?
  private let jobs: JobRegistry
  private let registry: LoadRegistry
  private let cache: CacheCoordinator
  private let peers: PeerCoordinator
  private let deliveries: DeliveryCoordinator
  private let storage: DiskServices
  /// The late loads that wait for another lookup, by the job for which a lookup is under way.
  private var lateLoads: [JobID: [LoadID]] = [:]

  init(
    jobs: JobRegistry, registry: LoadRegistry, cache: CacheCoordinator, peers: PeerCoordinator,
    deliveries: DeliveryCoordinator, storage: DiskServices
  ) {
    (self.jobs, self.registry, self.cache, self.peers) = (jobs, registry, cache, peers)
    (self.deliveries, self.storage) = (deliveries, storage)
  }

  /// Looks up all variants that the loads of the job want.
  func lookUp(_ id: JobID) {
    guard let job = jobs[id], let key = jobs.scheduler.job(id)?.key else { return }
    if key.revalidation == .whenStale {
      if let claim = job.claim {
        peers.refresh(claim)
      } else {
        job.claim = peers.claim(job.request, in: job.first.partition)
      }
    }
    let variants = jobs.wantedVariants(of: id)
    job.lookupStarted(for: variants)
    cache.lookUp(
      job.request.key, job.first.partition, variants, isBypassed: !key.revalidation.usesCache
    ) { [weak self] found in self?.lookedUp(id, found) }
  }

  /// Whether a load of the job wants a variant that the last lookup did not include. The variant may be stored although
  /// the original is not.
  private func missesVariant(_ id: JobID) -> Bool {
    guard cache.hasDiskTiers, let job = jobs[id], jobs.scheduler.job(id)?.key.revalidation.usesCache == true else {
      return false
    }
    return jobs.hasLoad(in: id) { !job.lookedUpVariants.contains($0.request.variant) }
  }

  /// Continues a job after its cache lookup: loads that the cache serves leave the job, the others wait for its
  /// transfer.
  private func lookedUp(_ id: JobID, _ found: CacheCoordinator.Lookup) {
    if let clear = found.firstClear { separate(id, after: clear) }
    guard let job = jobs[id] else { return }
    guard jobs.scheduler.job(id)?.phase != .storing,
      job.lookupFinished(found.candidates, hasPartial: found.hasPartial)
    else {
      return serve(id, from: found.candidates)
    }
    serve(id, from: found.candidates)
    jobs.forEachLoad(of: id) { _ = mayTransfer($0, among: found.candidates) }
    guard let first = jobs.firstLoad(of: id) else { return }
    if missesVariant(id) { return lookUp(id) }
    // A job that resumes a partial body sends no other conditions.
    if job.partialBody == nil { setConditions(of: job, for: first) }
    switch first.request.source {
    case .inline(let bytes, let mediaType): client?.responses.store(.bytes(bytes), mediaType: mediaType, for: id)
    case .file:
      guard jobs.scheduler.enqueueFile(of: id) else {
        client?.rejectAsOverloaded(id)
        return
      }
      readFiles()
      if jobs.scheduler.job(id)?.phase == .awaitingFile { jobs.record(for: id) { $0.enter(.wait, at: .now) } }
    case .http:
      jobs.releasePlace(of: first)
      job.releaseBytes(storage.withoutBytes)
      client?.enqueue(id)
    }
  }

  /// Separates the loads submitted after a clear from a job whose lookup result had been cleared by then: they must not
  /// see it. They join another job.
  ///
  /// - Parameter clear: the number of the clear.
  private func separate(_ job: JobID, after clear: Int) {
    jobs.scheduler.detach(job)
    jobs.forEachLoad(of: job) { load in
      guard load.generation >= clear else { return }
      client?.unsubscribe(load)
      client?.join(load)
    }
  }

  /// Sets the conditions of the job's transfer, and the candidate that it revalidates.
  ///
  /// - Parameter load: one of the loads that wait for the job.
  private func setConditions(of job: Job, for load: ActiveLoad) {
    let found = job.candidates ?? []
    switch cache.decision(for: load, from: load.accepted(of: found)) {
    case .revalidate(let index, let headers), .showThenRevalidate(let index, _, let headers),
      .serveThenRevalidate(let index, let headers):
      // Prefer the original, which serves all loads of the job, to a variant that serves only this one.
      let chosen = found.indices.filter { load.accepts(found[$0]) }[index]
      let original = found.firstIndex {
        $0.response.variant.isEmpty && $0.response.sharesOriginal(with: found[chosen].response)
      }
      job.setConditions(headers, target: original ?? chosen)
    case .fetch(let headers): job.setConditions(headers, target: nil)
    case .serve, .notCached: job.setConditions(HeaderFields(), target: nil)
    }
  }

  /// Reads the files of the host whose turn it is.
  private func readFiles() {
    while let id = jobs.scheduler.takeFile() {
      guard case .file(let place)? = jobs[id]?.request.source else { continue }
      client?.responses.read(place, for: id)
    }
  }

  /// Called when a load of a file has ended: the file of another may be read.
  func fileEnded(_ load: LoadID) {
    jobs.scheduler.fileEnded(load)
    readFiles()
  }

  // MARK: - Serving

  /// Serves those loads of a job that the candidates satisfy, and removes them from the job.
  private func serve(_ job: JobID, from candidates: [Candidate]) {
    jobs.forEachLoad(of: job) { load in
      // The delivery is responsible for a load that it serves.
      if serveFromCache(load, from: candidates) { client?.unsubscribe(load) }
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
    guard jobs.scheduler.job(for: request.jobKey(in: load.partition, bypassingCache: false)) == nil else { return }
    client?.loader?.submitInBackground(request)
  }

  /// Returns whether the load may cause a transfer. If its mode forbids that, or the same request failed recently,
  /// answers the load with an error and returns false.
  func mayTransfer(_ load: ActiveLoad, among candidates: [Candidate]) -> Bool {
    if case .notCached = cache.decision(for: load, from: load.accepted(of: candidates)) {
      deliveries.complete(
        load, .failure(LoadError(.notCached, "the cache has no response that may be served")), at: .answer)
      return false
    }
    guard !load.request.retriesFailed else { return true }
    let failure = cache.failures.failure(
      of: load.request.identity(in: load.partition), acceptsAnything: load.request.validation == .none,
      maxBytes: load.request.maxBytes, now: .now)
    guard let failure else { return true }
    var error = LoadError(.recentlyFailed, "failed recently: \(failure.error.message)")
    (error.failure, error.rule) = (failure.error.kind, failure.error.rule)
    (error.status, error.figures) = (failure.error.status, failure.error.figures)
    error.retryAfter = Instant.now.duration(to: failure.until)
    deliveries.complete(load, .failure(error), at: .answer)
    return false
  }

  // MARK: - Responses stored meanwhile

  // The rule: a job that may have missed a response looks into the cache again, as it did at first. It may have missed
  // one when it gets its permit (`mayStart`; for the stores of peers, its claim knows), when its wait for a peer is
  // over, and when a job for the same request that forces revalidation has stored one. A load that joins a job after
  // its lookup looks alone: for each such load, a lookup of the job would cost as much as all its loads.

  /// Has a job look into the cache again before it transfers. It leaves its permit to another until then.
  func lookAgain(_ id: JobID) {
    jobs.scheduler.deferTransfer(of: id, as: .awaitingCache)
    lookUp(id)
  }

  /// Whether a job that has a permit may start its first transfer, as far as this worker knows. If a response of the
  /// image has been stored since the lookup of the job, by a job with other headers, the job looks again; if one is
  /// being stored, it does so after that.
  func mayStart(_ id: JobID) -> Bool {
    guard let job = jobs[id], let waiting = jobs.scheduler.job(id), waiting.attempt == 1, job.partialBody == nil,
      waiting.key.revalidation.usesCache
    else { return true }
    if cache.pending.waitForStore(of: job.identity, id) {
      jobs.scheduler.deferTransfer(of: id, as: .awaitingCache)
      return false
    }
    let known = cache.peekMemory(job.request.key, job.first.partition, [job.request.variant])
    guard job.hasMissed(known) else { return true }
    lookAgain(id)
    return false
  }

  /// Resumes the jobs that waited until a response was stored.
  func storingEnded(_ image: CacheIdentity) {
    for job in cache.pending.endStore(of: image) where jobs.scheduler.job(job)?.phase == .awaitingCache {
      lookUp(job)
    }
  }

  /// A response has been stored for a request: the waiting job for the same request that accepts a fresh response looks
  /// again.
  func stored(for key: TransferKey) {
    guard key.revalidation != .whenStale, let other = jobs.scheduler.job(for: key.withoutForcedRevalidation) else {
      return
    }
    switch jobs.scheduler.job(other)?.phase {
    case .waiting, .backingOff: lookUp(other)
    default: break
    }
  }

  // MARK: - Loads alone

  /// Answers a load that may send nothing, and so joins no job, from the cache.
  func lookUp(alone load: ActiveLoad) {
    if load.timeline.phase != .lookup { load.timeline.restart(at: .now) }
    lookUp([load.id], in: nil, load.request.key, load.partition)
  }

  /// Whether the cache may have a response for a load that has joined a job.
  func isLate(_ load: ActiveLoad, with key: TransferKey, for job: JobID) -> Bool {
    guard cache.hasDiskTiers, jobs[job]?.candidates != nil,
      key.revalidation == .whenStale || load.request.cacheMode == .refresh
    else { return false }
    return switch jobs.scheduler.job(job)?.phase {
    case .waiting, .active, .backingOff, .awaitingPeer, .awaitingCache, .awaitingPermission: true
    // The response being stored is the newest.
    case .lookingUp, .storing, .awaitingFile, .readingFile, nil: false
    }
  }

  /// Whether loads that joined the job after its lookup are being looked up.
  func hasLateLoads(of job: JobID) -> Bool { lateLoads[job] != nil }

  /// Looks into the cache for a load that joined a job after its lookup. Each job has at most one such lookup at a
  /// time, for all late loads that have come by then.
  func lookUp(late load: ActiveLoad, for job: JobID) {
    if lateLoads[job]?.append(load.id) != nil { return }
    lateLoads[job] = []
    lookUp([load.id], in: job, load.request.key, load.partition)
  }

  /// - Parameter job: the job that the loads wait for; nil if they wait for none.
  private func lookUp(_ ids: [LoadID], in job: JobID?, _ key: String, _ partition: String) {
    let variants = Set(ids.compactMap { registry[$0]?.request.variant })
    cache.lookUp(key, partition, variants, isBypassed: false) { [weak self] found in
      guard let self else { return }
      var next: [LoadID] = []
      for id in ids where self.jobs.scheduler.job(of: id) == job {
        guard let load = self.registry[id] else { continue }
        if let clear = found.firstClear, load.generation >= clear {
          // The load must not see what had been cleared before it was submitted.
          next.append(id)
        } else if self.serveFromCache(load, from: found.candidates) {
          // The delivery is responsible for the load from here on.
          self.client?.unsubscribe(load)
        } else {
          _ = self.mayTransfer(load, among: found.candidates)
        }
      }
      if let job {
        next += self.lateLoads.removeValue(forKey: job) ?? []
        self.jobs.scheduler.checkDeadlines(of: job)
      }
      guard !next.isEmpty else { return }
      if let job { self.lateLoads[job] = [] }
      self.lookUp(next, in: job, key, partition)
    }
  }
}

extension TransferKey.Revalidation {
  /// Whether stored responses are looked up.
  var usesCache: Bool { self == .whenStale || self == .always }
}
