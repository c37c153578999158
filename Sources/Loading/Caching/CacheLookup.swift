internal import HTTPCaching
internal import HTTPTypes
internal import ImageStore
internal import Text

/// What the cache can do for a load.
extension Loader {
  /// What the memory tier has for a key: the variant of that name, and the original. What is likely to be served counts
  /// as used.
  func lookUpMemory(_ key: String, _ partition: String, _ variant: String) -> [Candidate] {
    if isBeingPut(key) { return [] }
    if variant.isEmpty { return memory.look(up: key, partition: partition).map(Candidate.init(inMemory:)) }
    let variants = memory.look(up: key, partition: partition, variant: variant)
    if variants.isEmpty { return memory.look(up: key, partition: partition).map(Candidate.init(inMemory:)) }
    return Candidate.merging(
      variants.map(Candidate.init(inMemory:)),
      memory.peek(at: key, partition: partition).map(Candidate.init(inMemory:)))
  }

  /// The same, without being a use.
  func peekMemory(_ key: String, _ partition: String, _ variant: String) -> [Candidate] {
    let originals = memory.peek(at: key, partition: partition).map(Candidate.init(inMemory:))
    if variant.isEmpty { return originals }
    let variants = memory.peek(at: key, partition: partition, variant: variant)
    return Candidate.merging(variants.map(Candidate.init(inMemory:)), originals)
  }

  /// Whether a host is putting an image in under the key. Who asks for it now comes after that: by way of the disk's
  /// thread, and looks into memory then.
  func isBeingPut(_ key: String) -> Bool { !hostStores.isEmpty && hostStores[ExactString(key)] != nil }

  /// Whether an image is being put in, or has been, since the job was wanted: it is not for who comes after that, and
  /// what it brings is not kept.
  func isSupersededByHostStore(_ record: JobRecord) -> Bool {
    let first = record.first.id
    if !hostStores.isEmpty, let put = hostStores[ExactString(record.first.request.key)], first < put.latest { return true }
    return recentHostStores.serveFromMemory(record.identity, now: .now).map { first < $0 } ?? false
  }

  /// Puts what was just stored into the memory tier. Without its bytes, or cleared meanwhile, what it replaces is
  /// forgotten there.
  ///
  /// - Returns: whether it is in memory now.
  @discardableResult
  func remember(_ response: StoredResponse, _ bytes: [UInt8]?) -> Bool {
    if let bytes, !pendingInvalidations.reach(response) { return memory.store(response, bytes: bytes) }
    memory.remove(replacedBy: response)
    return false
  }

  /// - Parameter candidates: only such as the load accepts.
  private func decision(for load: ActiveLoad, from candidates: [Candidate]) -> CacheDecision {
    policy.decide(
      mode: load.request.cacheMode, requestHeaders: load.request.headers, stored: candidates.map(\.response.cached),
      now: storage.now())
  }

  /// Answers the load from what the cache offers, if that takes no transfer.
  ///
  /// - Returns: whether the load is taken care of.
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
      show(candidates[index], to: load, as: isFresh ? candidates[index].status : .stale)
      return false
    case .revalidate, .fetch, .notCached:
      return false
    }
    return true
  }

  /// Asks the server about what was just served stale, for the next who wants it (RFC 5861 section 3).
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
    // One is enough, however many are served meanwhile.
    let key = request.jobKey(in: load.partition, bypassingCache: false)
    guard scheduler.job(for: key) == nil else { return }
    submit(request, as: makeID(), for: DiscardingObserver.shared, isInternal: true, place: nil)
  }

  /// Whether there is a disk cache to look into for a load.
  var hasDiskTiers: Bool { storage.tier != nil || !storage.readOnlyTiers.isEmpty }

  /// Subscribes the load to its job, and begins that if there is none.
  func join(_ load: ActiveLoad) {
    let key = coalescingKey(load)
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
      if jobs[job]?.candidates == nil || mayTransfer(load) { attach(load, in: job, attempt: attempt) }
    }
  }

  private func look(for job: JobID, bypassing: Bool) {
    guard let record = jobs[job] else { return }
    if scheduler.job(job)?.key.revalidation == .whenStale { leaseRequest(record) }
    let (key, partition) = (record.first.request.key, record.first.partition)
    let variant = record.first.request.variant
    let isBeingPut = isBeingPut(key)
    let known = bypassing || isBeingPut ? [] : peekMemory(key, partition, variant)
    guard hasDiskTiers || isBeingPut else { return looked(for: job, found: known) }
    // What goes past the cache takes the same way, so that nothing gets ahead of what was sent before it.
    if bypassing { return storage.perform({}) { [weak self] in self?.looked(for: job, found: []) } }
    storage.look(up: key, partition: partition, variant: variant) { [weak self] found in
      guard let self else { return }
      if found.hasPartial { record.mayResume = true }
      let known = isBeingPut ? self.peekMemory(key, partition, variant) : known
      var candidates = Candidate.current(self.merge(known, found.candidates))
      if let clear = self.pendingInvalidations.mark(&candidates) { self.separate(job, after: clear) }
      self.looked(for: job, found: candidates)
    }
  }

  /// What both tiers have comes from memory, with what another worker has learnt of it since.
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

  /// Looks anew for what another worker may have brought.
  func recheckCache(for job: JobID) { look(for: job, bypassing: false) }

  /// The cache has been looked into: whom it serves leaves the job, the others wait for the transfer.
  private func looked(for job: JobID, found: [Candidate]) {
    guard let known = scheduler.job(job), let record = jobs[job] else { return }
    // Its turn came while it was looked for again: the transfer goes by what was known then.
    guard known.phase != .active && known.phase != .finishing else { return serve(job, from: found) }
    record.candidates = found
    serve(job, from: found)
    for id in scheduler.subscribers(of: job) {
      if let load = loads[id] { _ = mayTransfer(load) }
    }
    guard let first = scheduler.firstSubscriber(of: job), let load = loads[first] else { return }
    if known.key.isLooking, let other = scheduler.rename(job, to: load.jobKey) {
      return move(loadsOf: job, to: other)
    }
    // One that goes on with what an attempt has left asks about nothing else.
    guard record.partialBody == nil else { return enqueue(job, record) }
    (record.revalidationTargetIndex, record.conditions) = (nil, HeaderFields())
    if mergeIntoEquivalentJob(job, record) { return }
    setConditions(of: record, for: load)
    if case .inline(let bytes, let mediaType) = record.first.request.source {
      arrived(inline: bytes, mediaType: mediaType, for: job)
    } else {
      releasePlace(of: load)
      // It may wait for hours.
      record.candidates = found.map { $0.response.isOnDisk ? withoutBytes($0) : $0 }
      enqueue(job, record)
    }
  }

  /// Takes out of a job whom the cache serves.
  func serve(_ job: JobID, from candidates: [Candidate]) {
    for id in scheduler.subscribers(of: job) {
      guard let load = loads[id], serveFromCache(load, from: candidates) else { continue }
      // The delivery owns the load from here on.
      if case .orphanedJob = scheduler.leave(id) { forget(job) }
    }
  }

  /// Works out what the job's transfer asks about.
  ///
  /// - Parameter load: one of the loads that wait for it.
  func setConditions(of record: JobRecord, for load: ActiveLoad) {
    let found = record.candidates ?? []
    switch decision(for: load, from: load.accepted(of: found)) {
    case .revalidate(let index, let headers), .showThenRevalidate(let index, _, let headers),
      .serveThenRevalidate(let index, let headers):
      // What all who wait can have is better asked about than what only this one can.
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

  /// Queues a job, or ends it.
  private func enqueue(_ job: JobID, _ record: JobRecord) {
    var admission = scheduler.enqueue(job)
    if case .queueFull = admission {
      // What waits only because its turn has not come to be looked at does not count as waiting.
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
    var error = LoadError(.overloaded, "\(scheduler.limits.maxQueued) loads are waiting, which is the most")
    // There is room for one long before, but not for a crowd.
    error.retryAfter = startRate.time(for: scheduler.limits.maxQueued / 10 + 1, at: .now)
    return error
  }

  /// Ends a load that may not cause a transfer: because its mode forbids it, or because it failed a short while ago.
  private func mayTransfer(_ load: ActiveLoad) -> Bool {
    let candidates = scheduler.job(of: load.id).flatMap { jobs[$0]?.candidates } ?? []
    if case .notCached = decision(for: load, from: load.accepted(of: candidates)) {
      answer(load.id, .failure(LoadError(.notCached, "the cache has nothing that may be served")))
      return false
    }
    guard !load.request.retriesFailed, !load.isUnshared else { return true }
    let image = CacheIdentity(key: load.request.key, partition: load.partition)
    let failure = failures.failure(
      of: image, acceptsAnything: load.request.validation == .none, maxBytes: load.request.maxBytes, now: .now)
    guard let failure else { return true }
    var error = LoadError(.recentlyFailed, "failed a short while ago: \(failure.error.message)")
    error.status = failure.error.status
    error.retryAfter = ContinuousClock.now.duration(to: failure.until)
    answer(load.id, .failure(error))
    return false
  }
}

extension ActiveLoad {
  /// What the cache offers, less what is not what the load asks for.
  func accepted(of candidates: [Candidate]) -> [Candidate] {
    if bypassesCache { return [] }
    return candidates.allSatisfy(accepts) ? candidates : candidates.filter(accepts)
  }

  func accepts(_ candidate: Candidate) -> Bool { request.accepts(candidate.response) }
}

extension LoadRequest {
  /// Whether what is stored is what is asked for, or can be made into it: it has the digest, and it is an image if it
  /// has to be one.
  func accepts(_ response: StoredResponse) -> Bool {
    if validation != .none, response.format == nil { return false }
    if !response.variant.isEmpty, processing?.accepts(variant: response) != true { return false }
    return digest == nil || digest == response.originalDigest
  }

  /// Whether the URLs are the same. Of a `data:` URL not all is there; then the key, which is its digest, tells.
  func namesImage(of other: LoadRequest) -> Bool {
    guard url.hasSameBytes(as: other.url) else { return false }
    if case .inline = source { return key.hasSameBytes(as: other.key) }
    return true
  }

  /// What limits and fair turns are counted by.
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

/// The observer of loads that nobody waits for.
@LoadingActor
final class DiscardingObserver: LoadObserver {
  static let shared = DiscardingObserver()
  func load(_ id: LoadID, did event: LoadEvent) {}
  func load(_ id: LoadID, ended result: Result<LoadedImage, LoadError>) {}
}
