internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import Platform
internal import Threads
internal import Tracing

/// The successful responses of jobs: a 304 that confirms a stored response, or a body to store.
@LoadingActor
final class ResponseCoordinator {
  weak var client: JobCoordinator?
  private let jobs: JobRegistry
  private let registry: LoadRegistry
  private let cache: CacheCoordinator
  private let decodes: DecodeCoordinator
  private let deliveries: DeliveryCoordinator
  private let storage: DiskServices

  init(
    jobs: JobRegistry, registry: LoadRegistry, cache: CacheCoordinator, decodes: DecodeCoordinator,
    deliveries: DeliveryCoordinator, storage: DiskServices
  ) {
    (self.jobs, self.registry, self.cache) = (jobs, registry, cache)
    (self.decodes, self.deliveries, self.storage) = (decodes, deliveries, storage)
  }

  // MARK: - 304

  /// Handles a 304: the stored response is still valid (RFC 9111 section 4.3.4).
  func confirm(_ id: JobID, _ summary: TransferSummary) {
    guard let job = jobs[id] else { return }
    let revalidation = Revalidation(job, cache.policy)
    guard let updated = revalidation.updated(by: summary), var target = updated.first else {
      // The 304 does not confirm the response that was to be revalidated: send the request again without conditions.
      job.dropConditions()
      client?.transfers.send(id, resuming: nil)
      return
    }
    for candidate in updated where job.mayKeep && !candidate.isTransient {
      if let kept = revalidation.toStore(candidate) {
        cache.apply(revalidation: kept, under: job.claim?.takeLease())
      }
    }
    if !target.isTransient,
      !job.request.mayStore(status: target.response.status, headers: target.response.headers)
    {
      target.retention = .forbidden
    }
    cache.failures.forget(job.requestIdentity)
    var confirmed = target.response.cached
    confirmed.selectingFields = Vary.selectingFields(of: confirmed.headers, from: job.request.headers) ?? [:]
    let attempts = jobs.scheduler.job(id)?.attempt ?? 1
    jobs.remove(id)
    for subscriber in jobs.scheduler.end(id) {
      guard let load = registry[subscriber] else { continue }
      guard job.isAnswered(load, by: confirmed) else {
        client?.join(load)
        continue
      }
      load.attempts = attempts
      if load.accepts(target) {
        deliveries.deliver(target, to: load, as: .revalidated, at: .answer)
      } else {
        // The revalidation was for another load; this one needs another representation.
        load.bypassesCache = true
        client?.join(load)
      }
    }
  }

  // MARK: - Bodies

  /// Reads a file of the host and handles it as a body that was transferred.
  func read(_ place: HostPlace, for id: JobID) {
    guard let job = jobs[id] else { return }
    jobs.record(for: id) { $0.enter(.store, at: .now) }
    let hasEnded = Locked(false)
    job.hasEnded = hasEnded
    storage.read(place, maxBytes: job.request.maxBytes, while: { !hasEnded.withLock { $0 } }) { [weak self] body in
      switch body {
      case .failure(let error): self?.client?.fail(id, error)
      case .success(let body): self?.store(body, mediaType: nil, for: id)
      }
    }
  }

  /// Stores the body of a `data:` URL or a file of the host in the same way as one that was transferred.
  ///
  /// - Parameter mediaType: as told by the URL.
  func store(_ body: Download.Body, mediaType: String?, for id: JobID) {
    guard let job = jobs[id] else { return storage.discard(body) }
    let now = storage.now()
    let file = job.request.cachedFile
    if file?.version?.isSettled == false { job.superseded() }
    var draft = StoredResponse(
      key: job.request.key, url: job.request.url,
      headers: StoredResponse.headersOfHost(StoredResponse.mediaType(told: mediaType), at: now),
      requestTime: now, responseTime: now, storedAt: now, validatedAt: now, expiresAt: now + cache.policy.maxAge,
      content: ImageDescription(mediaType: StoredResponse.mediaType(told: mediaType)))
    // Variants inherit it, and serve this version alone.
    if let version = file?.version { draft.headers.append("etag", version.tag) }
    let isStored = file == nil && job.request.cacheMode != .noStore
    jobs.record(for: id) { $0.enter(.store, at: .now) }
    store(
      id, job, as: draft,
      keeping: isStored ? jobs.tiers(of: id, hasDisk: storage.tier != nil) : [],
      invalidatesStored: job.request.cachesVariantsAlone
    ) { [maxBytes = job.request.maxBytes] operation, storage in
      operation.storing(body: body, maxBytes: maxBytes, in: storage)
    }
  }

  /// Stores a body that has arrived.
  func store(_ id: JobID, _ summary: TransferSummary, _ ending: Download.Outcome) {
    guard let job = jobs[id] else { return }
    let draft = StoredResponse(job, summary, ending.format, cache.policy)
    let attempts = jobs.scheduler.job(id)?.attempt ?? 1
    let wanted = jobs.tiers(of: id, hasDisk: storage.tier != nil)
    let tiers = job.request.mayStore(status: draft.status, headers: summary.head.headers) ? wanted : []
    jobs.scheduler.finish(id)
    cache.pending.beginStore(of: job.identity)
    jobs.record(for: id) { $0.enter(.store, at: summary.times.endedAt) }
    jobs.forEachLoad(of: id) { load in
      guard job.isAnswered(load, by: draft.cached) else { return }
      load.attempts = attempts
      load.emit(.progress(received: ending.received, total: summary.head.contentLength))
    }
    store(
      id, job, as: draft, keeping: tiers,
      invalidatesStored: tiers.isEmpty && !wanted.isEmpty && job.invalidatesStored(draft)
    ) { operation, storage in
      var complete = operation
      (complete.body, complete.format) = (ending.body, ending.format)
      return complete.store(in: storage)
    }
  }

  /// Passes an operation without a body to the disk thread. There, `perform` gives it one, stores that if it may be
  /// stored, and serves the loads that wait.
  private func store(
    _ id: JobID, _ job: Job, as draft: StoredResponse, keeping tiers: LoadRequest.Tiers, invalidatesStored: Bool,
    _ perform: @escaping @Sendable (StoreOperation, DiskServices) -> StoreOperation.Outcome
  ) {
    let waiting = jobs.loads(of: id).filter { job.isAnswered($0, by: draft.cached) }
    let mayHavePartials = storage.tier?.mayHavePartials == true
    let operation = StoreOperation(
      body: .bytes([]), draft: draft, tiers: tiers, invalidatesStored: invalidatesStored,
      partials: mayHavePartials ? job.request.partialIdentity(in: job.first.partition) : nil,
      largestInMemory: cache.largestInMemory, needsSize: job.request.validation != .none,
      lease: job.claim?.takeLease(), clearCount: job.clearCount,
      deliveries: waiting.map { load in
        (load.id, load.request.digest, load.request.deliversAtOnce ? DeliveryPlan(load.request) : .forDecoder)
      },
      decodes: (
        waiting.compactMap { $0.request.want == nil ? $0.request.processing : nil }, decodes.maxPixels
      ))
    storage.perform(.store, { [storage] in perform(operation, storage) }) { [weak self] outcome in
      self?.stored(id, outcome, keeping: tiers, invalidatesStored: invalidatesStored)
    }
  }

  private func stored(
    _ id: JobID, _ outcome: StoreOperation.Outcome, keeping tiers: LoadRequest.Tiers, invalidatesStored: Bool
  ) {
    cache.applyPeerInvalidations()
    // A job for a `data:` URL has no transfer, so it ends with its last load.
    guard let job = jobs[id] else {
      if case .success(let stored) = outcome { decodes.begin(stored.decodes) {} }
      return
    }
    defer { client?.lookups.storingEnded(job.identity) }
    switch outcome {
    case .failure(let error): client?.fail(id, error)
    case .success(let stored):
      jobs.remove(id)
      var candidate = Candidate(
        response: stored.response, bytes: stored.bytes, location: stored.response.isOnDisk ? .disk : .memory)
      let mayCache = !tiers.isEmpty || job.request.cachesVariantsAlone
      candidate.retention = !job.mayKeep ? .cleared : mayCache ? .allowed : .forbidden
      cache.mark(&candidate)
      if !candidate.isTransient, stored.isIntact {
        cache.remember(candidate.response, tiers.contains(.memory) ? stored.bytes : nil)
      } else if invalidatesStored, stored.isIntact {
        cache.remove(replacedBy: candidate.response)
      }
      cache.failures.forget(job.requestIdentity)
      if candidate.response.isOnDisk, let key = jobs.scheduler.job(id)?.key { client?.lookups.stored(for: key) }
      decodes.begin(stored.decodes) {
        for subscriber in jobs.scheduler.end(id) {
          if let load = registry[subscriber] { serve(load, of: job, candidate, stored) }
        }
      }
    }
  }

  /// Answers a load of a job whose response has been stored.
  private func serve(_ load: ActiveLoad, of job: Job, _ candidate: Candidate, _ stored: StoreOperation.Stored) {
    let file = job.request.cachedFile
    // Without a variant nothing is to be kept.
    let isTooNew =
      file?.version?.isSettled == false && job.request.cacheMode != .noStore && !load.request.variant.isEmpty
    load.isKept = stored.isKept && !isTooNew || !load.request.store.contains(.disk)
    let status: CacheStatus = file == nil ? .miss : .file
    switch stored.delivered[load.id] {
    case .success(let delivered) where !load.request.deliversAtOnce:
      var own = candidate
      if !own.response.isOnDisk, own.bytes == nil, let path = delivered.path { own.location = .scratch(path) }
      deliveries.deliver(own, to: load, as: status, at: .answer)
    case .success(let delivered):
      let image = LoadedImage(candidate.response, delivered, for: load, as: status, now: storage.now())
      deliveries.complete(load, .success(image), at: .answer)
    case .failure(let error):
      deliveries.complete(load, .failure(error), at: .answer)
    // The remaining loads joined while the others were being served, or need a transfer of their own.
    case nil where !job.isAnswered(load, by: candidate.response.cached): client?.join(load)
    case nil where stored.isIntact && (stored.bytes != nil || candidate.response.isOnDisk) && load.accepts(candidate):
      deliveries.deliver(candidate, to: load, as: status, at: .answer)
    case nil:
      load.bypassesCache = true
      client?.join(load)
    }
  }
}

extension LoadRequest {
  /// Whether the image can be delivered when it is stored, without a decode and without a look at its properties.
  fileprivate var deliversAtOnce: Bool { processing == nil && want == nil }
}

extension StoredResponse {
  /// The response to store for a transfer, without the properties that the body determines.
  fileprivate init(_ job: Job, _ summary: TransferSummary, _ format: ImageFormat?, _ policy: CachePolicy) {
    let head = summary.head
    self.init(
      key: job.request.key, partition: job.first.partition, url: job.request.url,
      finalURL: summary.redirects > 0 ? head.finalURL : nil, status: head.status,
      headers: Storing.fields(of: head.headers, receivedAt: summary.responseTime),
      varyingHeaders: Vary.selectingFields(of: head.headers, from: job.request.headers) ?? [:],
      requestTime: summary.requestTime, responseTime: summary.responseTime, storedAt: summary.responseTime,
      validatedAt: summary.responseTime, expiresAt: 0,
      content: ImageDescription(
        mediaType: format?.mediaType ?? StoredResponse.mediaType(told: head.headers["content-type"])))
    expiresAt = policy.freshUntil(cached)
  }
}
