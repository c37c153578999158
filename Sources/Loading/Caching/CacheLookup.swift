internal import HTTPCaching
internal import HTTPTypes
internal import ImageStore
internal import Text

/// The cache lookup of a load, and its result.
extension Loader {
  /// Looks up the named variant and the original in the memory tier. The entry that is likely to be served counts as
  /// used.
  func lookUpMemory(_ key: String, _ partition: String, _ variant: String) -> [Candidate] {
    if isBeingPut(key) { return [] }
    if variant.isEmpty { return memory.look(up: key, partition: partition).map(Candidate.init(inMemory:)) }
    let variants = memory.look(up: key, partition: partition, variant: variant)
    if variants.isEmpty { return memory.look(up: key, partition: partition).map(Candidate.init(inMemory:)) }
    return Candidate.merging(
      variants.map(Candidate.init(inMemory:)),
      memory.peek(at: key, partition: partition).map(Candidate.init(inMemory:)))
  }

  /// As `lookUpMemory`, but counts nothing as used.
  func peekMemory(_ key: String, _ partition: String, _ variants: Set<String>) -> [Candidate] {
    let originals = memory.peek(at: key, partition: partition).map(Candidate.init(inMemory:))
    let found = variants.filter { !$0.isEmpty }.flatMap { memory.peek(at: key, partition: partition, variant: $0) }
    return found.isEmpty ? originals : Candidate.merging(found.map(Candidate.init(inMemory:)), originals)
  }

  /// Whether a host `store` for this key is in progress. A load submitted now must see the stored image: it is routed
  /// through the disk thread, and reads the memory tier only after that.
  func isBeingPut(_ key: String) -> Bool { !hostStores.isEmpty && hostStores[ExactString(key)] != nil }

  /// Whether the host has stored an image under this key since the job was created, or is storing one. Such a job
  /// accepts no further loads, and its response is not cached.
  func isSupersededByHostStore(_ record: JobRecord) -> Bool {
    let first = record.first.id
    if !hostStores.isEmpty, let put = hostStores[ExactString(record.first.request.key)], first < put.latest {
      return true
    }
    return recentHostStores.value(of: record.identity, now: .now).map { first < $0 } ?? false
  }

  /// Stores a new response in the memory tier. If it comes without its bytes, or has been cleared since, the entry that
  /// it replaces is removed instead.
  ///
  /// - Returns: whether the response is in memory now.
  @discardableResult
  func remember(_ response: StoredResponse, _ bytes: [UInt8]?) -> Bool {
    if let bytes, !pendingInvalidations.reach(response) { return memory.store(response, bytes: bytes) }
    memory.remove(replacedBy: response)
    return false
  }

  /// - Parameter candidates: those that the load accepts.
  private func decision(for load: ActiveLoad, from candidates: [Candidate]) -> CacheDecision {
    policy.decide(
      mode: load.request.cacheMode, requestHeaders: load.request.headers, stored: candidates.map(\.response.cached),
      now: storage.now())
  }

  /// Answers the load from the candidates, if that takes no transfer.
  ///
  /// - Returns: whether the load has been answered, or will be without a transfer.
  func serveFromCache(_ load: ActiveLoad, from candidates: [Candidate]) -> Bool {
    let candidates = load.accepted(of: candidates)
    guard !candidates.isEmpty else { return false }
    switch decision(for: load, from: candidates) {
    case .serve(let index, let isFresh):
      deliver(candidates[index], to: load, as: isFresh ? candidates[index].status : .stale)
    case .serveThenRevalidate(let index, _):
      deliver(candidates[index], to: load, as: .stale)
      revalidateInBackground(load)
    case .showThenRevalidate(let index, let isFresh, _):
      deliveries.show(candidates[index], to: load, as: isFresh ? candidates[index].status : .stale)
      return false
    case .revalidate, .fetch, .notCached:
      return false
    }
    return true
  }

  /// Revalidates a response that was just served stale, by a load of its own (stale-while-revalidate, RFC 5861 section
  /// 3).
  private func revalidateInBackground(_ load: ActiveLoad) {
    var request = load.request
    request.cacheMode = .noCache
    request.delivery = .none
    request.processing = nil
    request.saveTo = nil
    request.digest = nil
    request.slot = nil
    request.group = nil
    request.events = []
    request.priority = .low
    // One revalidation suffices for any number of stale answers.
    let key = request.jobKey(in: load.partition, bypassingCache: false)
    guard scheduler.job(for: key) == nil else { return }
    submit(request, as: makeID(), for: DiscardingObserver.shared, isInternal: true, place: nil)
  }

  /// Whether any directory can be looked up: the read-write tier or a read-only one.
  var hasDiskTiers: Bool { storage.tier != nil || !storage.readOnlyTiers.isEmpty }

  /// Subscribes the load to the job of its key, and creates the job if there is none.
  func join(_ load: ActiveLoad) {
    let key = load.jobKey
    // Only the present loads of a superseded job wait for it.
    if let job = scheduler.job(for: key), let record = jobs[job], isSupersededByHostStore(record) {
      scheduler.detach(job)
    }
    let deadline = load.request.deadline.map { load.acceptedAt.advanced(by: $0) }
    let subscription = scheduler.subscribe(
      load.id, to: key, of: load.request.origin, priority: load.priority,
      needsDecoder: load.request.processing != nil, deadline: deadline)
    load.startedAttempt = 0
    switch subscription {
    case .created(let job):
      jobs[job] = JobRecord(first: load)
      look(for: job, bypassing: key.revalidation == .bypassed || key.revalidation == .unused)
    case .joined(let job, let attempt):
      guard jobs[job]?.candidates == nil || mayTransfer(load) else { return }
      releasePlace(of: load)
      if let attempt { load.emit(.started(attempt: attempt)) }
      if load.request.events.contains(.preview) { jobs[job]?.download?.wantPreviews() }
      switch scheduler.job(job)?.phase {
      case .waiting, .backingOff: if missesVariant(job) { recheckCache(for: job) }
      default: break
      }
    }
  }

  /// Whether a load of the job wants a variant that its last cache lookup did not include. The variant may be stored
  /// although the original is not.
  private func missesVariant(_ job: JobID) -> Bool {
    guard hasDiskTiers, let record = jobs[job], let key = scheduler.job(job)?.key,
      key.revalidation == .whenStale || key.revalidation == .always
    else { return false }
    return !wantedVariants(of: job).isSubset(of: record.lookedUpVariants)
  }

  private func wantedVariants(of job: JobID) -> Set<String> {
    var variants: Set<String> = []
    scheduler.forEachSubscriber(of: job) { id in
      if let load = loads[id] { variants.insert(load.request.variant) }
    }
    return variants
  }

  private func look(for job: JobID, bypassing: Bool) {
    guard let record = jobs[job] else { return }
    if scheduler.job(job)?.key.revalidation == .whenStale { leaseRequest(record) }
    let (key, partition) = (record.first.request.key, record.first.partition)
    let variants = wantedVariants(of: job)
    record.lookedUpVariants = variants
    let isBeingPut = isBeingPut(key)
    let known = bypassing || isBeingPut ? [] : peekMemory(key, partition, variants)
    guard hasDiskTiers || isBeingPut else { return looked(for: job, found: known) }
    // Requests that bypass the cache pass through the disk thread too, so that they do not overtake earlier requests.
    if bypassing { return storage.perform({}) { [weak self] in self?.looked(for: job, found: []) } }
    storage.look(up: key, partition: partition, variants: variants) { [weak self] found in
      guard let self else { return }
      if found.hasPartial { record.mayResume = true }
      let known = isBeingPut ? self.peekMemory(key, partition, variants) : known
      var candidates = Candidate.current(self.merge(known, found.candidates))
      if let clear = self.pendingInvalidations.mark(&candidates) { self.separate(job, after: clear) }
      self.looked(for: job, found: candidates)
    }
  }

  /// Merges the candidates of both tiers. A response that is in both is served from memory, with the newer metadata if
  /// a peer has revalidated it on disk.
  private func merge(_ known: [Candidate], _ found: [Candidate]) -> [Candidate] {
    if known.isEmpty { return found }
    var merged = known
    for candidate in found {
      guard let place = known.firstIndex(where: { $0.response.id == candidate.response.id }) else {
        merged.append(candidate)
        continue
      }
      let (own, stored) = (known[place].response, candidate.response)
      guard (own.responseTime, own.expiresAt) < (stored.responseTime, stored.expiresAt) else { continue }
      merged[place].response = stored
      memory.update(stored)
    }
    return merged
  }

  /// Looks into the cache again, for what a peer may have stored.
  func recheckCache(for job: JobID) { look(for: job, bypassing: false) }

  /// Continues a job after its cache lookup: loads that the cache serves leave the job, the others wait for its
  /// transfer.
  private func looked(for job: JobID, found: [Candidate]) {
    guard let known = scheduler.job(job), let record = jobs[job] else { return }
    // The transfer has started during a repeated lookup, and keeps the candidates that it started with.
    guard known.phase != .active && known.phase != .storing else { return serve(job, from: found) }
    record.candidates = found
    serve(job, from: found)
    for id in scheduler.subscribers(of: job) {
      if let load = loads[id] { _ = mayTransfer(load) }
    }
    guard let first = scheduler.firstSubscriber(of: job), let load = loads[first] else { return }
    if missesVariant(job) { return recheckCache(for: job) }
    // A job that resumes a partial body sends no other conditions.
    guard record.partialBody == nil else { return enqueue(job, record) }
    (record.revalidationTargetIndex, record.conditions) = (nil, HeaderFields())
    setConditions(of: record, for: load)
    if case .inline(let bytes, let mediaType) = record.first.request.source {
      arrived(inline: bytes, mediaType: mediaType, for: job)
    } else {
      releasePlace(of: load)
      // The job may wait for hours: do not hold the bytes of candidates that are on disk.
      record.candidates = found.map { $0.response.isOnDisk ? storage.withoutBytes($0) : $0 }
      enqueue(job, record)
    }
  }

  /// Serves those loads of a job that the candidates satisfy, and removes them from the job.
  func serve(_ job: JobID, from candidates: [Candidate]) {
    for id in scheduler.subscribers(of: job) {
      guard let load = loads[id], serveFromCache(load, from: candidates) else { continue }
      // The delivery is responsible for the load from here on.
      if case .orphanedJob = scheduler.leave(id) { forget(job) }
    }
  }

  /// Sets the conditions of the job's transfer, and the candidate that it revalidates.
  ///
  /// - Parameter load: one of the loads that wait for the job.
  func setConditions(of record: JobRecord, for load: ActiveLoad) {
    let found = record.candidates ?? []
    switch decision(for: load, from: load.accepted(of: found)) {
    case .revalidate(let index, let headers), .showThenRevalidate(let index, _, let headers),
      .serveThenRevalidate(let index, let headers):
      // Prefer the original, which serves all loads of the job, to a variant that serves only this one.
      let chosen = found.indices.filter { load.accepts(found[$0]) }[index]
      let original = found.firstIndex {
        $0.response.variant.isEmpty && $0.response.sharesOriginal(with: found[chosen].response)
      }
      record.revalidationTargetIndex = original ?? chosen
      record.conditions = headers
    case .fetch(let headers):
      (record.revalidationTargetIndex, record.conditions) = (nil, headers)
    case .serve, .notCached:
      break
    }
  }

  /// Adds a job to the queue. Ends it if the queue is full or the origin is down.
  private func enqueue(_ job: JobID, _ record: JobRecord) {
    var admission = scheduler.enqueue(job)
    if case .queueFull = admission {
      // Start the transfers that are due first: jobs that only await this decision must not count as queued.
      startTransfers(at: .now, needsPlace: true)
      admission = scheduler.enqueue(job)
    }
    switch admission {
    case .accepted: break
    case .queueFull: fail(job, overloaded)
    case .originDown: endAtDownOrigin(job)
    }
  }

  private var overloaded: LoadError {
    var error = LoadError(.overloaded, "the queue is full: \(scheduler.limits.maxQueued) loads are waiting")
    // A place for one load is free much sooner, but not for all the loads that were rejected at once.
    error.retryAfter = startRate.time(for: scheduler.limits.maxQueued / 10 + 1, at: .now)
    return error
  }

  /// Returns whether the load may cause a transfer. If its mode forbids that, or the image failed recently, answers the
  /// load with an error and returns false.
  private func mayTransfer(_ load: ActiveLoad) -> Bool {
    let candidates = scheduler.job(of: load.id).flatMap { jobs[$0]?.candidates } ?? []
    if case .notCached = decision(for: load, from: load.accepted(of: candidates)) {
      answer(load.id, .failure(LoadError(.notCached, "the cache has no response that may be served")))
      return false
    }
    guard !load.request.retriesFailed else { return true }
    let image = CacheIdentity(key: load.request.key, partition: load.partition)
    let failure = failures.failure(
      of: image, acceptsAnything: load.request.validation == .none, maxBytes: load.request.maxBytes, now: .now)
    guard let failure else { return true }
    var error = LoadError(.recentlyFailed, "failed recently: \(failure.error.message)")
    error.status = failure.error.status
    error.retryAfter = ContinuousClock.now.duration(to: failure.until)
    answer(load.id, .failure(error))
    return false
  }
}

extension ActiveLoad {
  /// The candidates that satisfy the request. None if the load bypasses the cache.
  func accepted(of candidates: [Candidate]) -> [Candidate] {
    if bypassesCache { return [] }
    return candidates.allSatisfy(accepts) ? candidates : candidates.filter(accepts)
  }

  func accepts(_ candidate: Candidate) -> Bool { request.accepts(candidate.response) }
}

extension LoadRequest {
  /// Whether the stored response is what the request asks for, or can be decoded into that: it has the digest, if one
  /// is given, and is an image, if it must be one.
  func accepts(_ response: StoredResponse) -> Bool {
    if validation != .none, response.format == nil { return false }
    if !response.variant.isEmpty, processing?.accepts(variant: response) != true { return false }
    return digest == nil || digest == response.originalDigest
  }

  /// Whether both requests have the same URL. A `data:` URL is stored truncated, so its key, which is its digest, is
  /// compared instead.
  func namesImage(of other: LoadRequest) -> Bool {
    guard url.hasSameBytes(as: other.url) else { return false }
    if case .inline = source { return key.hasSameBytes(as: other.key) }
    return true
  }

  /// The origin to which limits and fair queueing apply.
  var origin: Origin {
    switch source {
    case .http(let url): url.origin
    case .inline: Origin(scheme: "data", host: "", port: 0)
    }
  }
}

extension Candidate {
  init(inMemory entry: MemoryTier.Entry) {
    self.init(response: entry.response, bytes: entry.bytes, place: .memory)
  }

  var status: CacheStatus { place == .memory ? .memory : .disk }
}

extension StoredResponse {
  var cached: CachedResponse {
    CachedResponse(
      status: status, headers: headers, selectingFields: varyingHeaders, requestTime: requestTime,
      responseTime: responseTime)
  }
}

/// The observer of loads without a host: background revalidations.
@LoadingActor
final class DiscardingObserver: LoadObserver {
  static let shared = DiscardingObserver()
  func load(_ id: LoadID, did event: LoadEvent) {}
  func load(_ id: LoadID, ended result: Result<LoadedImage, LoadError>) {}
}
