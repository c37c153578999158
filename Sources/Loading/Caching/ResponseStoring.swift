internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import Threads

/// Handles successful responses: a 304 that confirms a stored response, or a body to store.
extension Loader {
  /// Handles a 304: the stored response is still valid (RFC 9111 section 4.3.4).
  func notModified(_ job: JobID, _ record: JobRecord, _ summary: TransferSummary) {
    guard let updated = updated(by: summary, record), var revalidationTarget = updated.first else {
      // The 304 does not confirm the response that was to be revalidated: send the request again without conditions.
      record.dropConditions()
      return send(job, record, goingOnFrom: nil)
    }
    for candidate in updated where record.mayKeep && !candidate.isTransient {
      if let kept = kept(of: candidate, record) { keepUpdate(of: kept, under: record.lease.take()) }
    }
    if !revalidationTarget.isTransient,
      !record.first.request.mayStore(
        status: revalidationTarget.response.status, headers: revalidationTarget.response.headers)
    {
      revalidationTarget.retention = .forbidden
    }
    failures.forget(record.identity)
    var confirmed = revalidationTarget.response.cached
    confirmed.selectingFields =
      Vary.selectingFields(of: confirmed.headers, from: record.first.request.headers) ?? [:]
    let attempts = scheduler.job(job)?.attempt ?? 1
    jobs[job] = nil
    for id in scheduler.end(job) {
      guard let load = loads[id] else { continue }
      guard record.isAnswered(load, by: confirmed) else {
        join(load)
        continue
      }
      load.note(record, summary, attempts: attempts)
      if load.accepts(revalidationTarget) {
        deliver(revalidationTarget, to: load, as: .revalidated)
      } else {
        // The revalidation was for another load; this one needs another representation.
        load.bypassesCache = true
        join(load)
      }
    }
  }

  /// The responses that a 304 confirms, with the fields that it updates: the revalidation target first, then other
  /// stored responses that the request might have selected. Nil if it does not confirm the target.
  private func updated(by summary: TransferSummary, _ record: JobRecord) -> [Candidate]? {
    guard let stored = record.candidates, let revalidationTarget = record.revalidationTargetIndex else { return nil }
    let others = stored.indices.filter {
      $0 != revalidationTarget && Vary.matches(stored[$0].response.cached, record.first.request.headers)
    }
    let asked = [stored[revalidationTarget]] + others.map { stored[$0] }
    let confirmed = Validation.responsesUpdated(
      by: summary.head.headers, in: asked.map(\.response.cached), asked: 0)
    guard confirmed.first == 0 else { return nil }
    return confirmed.map { index in
      var candidate = asked[index]
      candidate.response.headers = Storing.fields(
        candidate.response.headers, updatedBy: summary.head.headers, receivedAt: summary.responseTime)
      candidate.response.requestTime = summary.requestTime
      candidate.response.responseTime = summary.responseTime
      candidate.response.validatedAt = summary.responseTime
      candidate.response.expiresAt = policy.freshUntil(candidate.response.cached)
      return candidate
    }
  }

  /// The update to apply to the cache. If the updated response must not be stored, or its Vary has changed, so that it
  /// is unknown whom the stored response is for, the result is the stored response with `no-cache`. If only the request
  /// forbids storing, the stored response stays unchanged (RFC 9111 section 5.2.1.5) and the result is nil.
  private func kept(of updated: Candidate, _ record: JobRecord) -> Candidate? {
    let (request, response) = (record.first.request, updated.response)
    let selecting = Vary.selectingFields(of: response.headers, from: request.headers)
    guard
      Storing.mayStore(mode: .default, requestHeaders: [:], status: response.status, headers: response.headers),
      selecting.map({ Set($0.lines.map(\.name)) }) == Set(response.varyingHeaders.lines.map(\.name))
    else { return distrusted(updated, record) }
    return request.letsKeep ? updated : nil
  }

  /// The stored response without the update, but with `no-cache`, so that each later use revalidates it.
  private func distrusted(_ updated: Candidate, _ record: JobRecord) -> Candidate {
    var stored =
      record.candidates?.first { $0.response.id == updated.response.id && $0.place == updated.place } ?? updated
    if stored.response.expiresAt != .min { stored.response.headers.append("cache-control", "no-cache") }
    stored.response.expiresAt = policy.freshUntil(stored.response.cached)
    return stored
  }

  /// - Parameter lease: released when the update is committed to the index.
  private func keepUpdate(of candidate: Candidate, under lease: Lease?) {
    let response = candidate.response
    memory.update(response)
    // A read-only directory cannot be updated.
    guard response.isOnDisk, candidate.place == .memory || candidate.place == .disk, let tier = storage.tier else {
      return
    }
    pendingRevalidations[response.id] = response
    storage.perform({
      tier.assumeIsolated { tier in
        tier.update(response)
        if let lease { tier.retainUntilCommit(lease) }
      }
    }) { [weak self] in
      if self?.pendingRevalidations[response.id] == response { self?.pendingRevalidations[response.id] = nil }
    }
  }

  /// Stores the body of a `data:` URL in the same way as one that was transferred.
  func arrived(inline bytes: [UInt8], mediaType: String, for job: JobID) {
    guard let record = jobs[job] else { return }
    guard bytes.count <= record.first.request.maxBytes else {
      return fail(job, LoadError(.tooLarge, "the content is larger than \(record.first.request.maxBytes) bytes"))
    }
    var format: ImageFormat?
    if case .image(let found) = Recognition(prefix: bytes, isComplete: true) { format = found }
    guard format != nil || record.first.request.validation == .none else {
      return fail(job, .unknownFormat)
    }
    let now = storage.now()
    store(
      job, record, body: .bytes(bytes), format: format,
      as: StoredResponse(
        key: record.first.request.key, url: record.first.request.url,
        headers: StoredResponse.headersOfHost(StoredResponse.mediaType(told: mediaType), at: now),
        requestTime: now, responseTime: now, storedAt: now, validatedAt: now, expiresAt: now + policy.maxAge,
        mediaType: StoredResponse.mediaType(told: mediaType)),
      keeping: record.first.request.cacheMode == .noStore ? [] : places(of: job))
  }

  func arrived(_ job: JobID, _ record: JobRecord, _ summary: TransferSummary, _ ending: Download.Outcome) {
    let head = summary.head
    let headers = Storing.fields(of: head.headers, receivedAt: summary.responseTime)
    var draft = StoredResponse(
      key: record.first.request.key, partition: record.first.partition, url: record.first.request.url,
      finalURL: summary.redirects > 0 ? head.finalURL : nil, status: head.status, headers: headers,
      varyingHeaders: Vary.selectingFields(of: head.headers, from: record.first.request.headers) ?? [:],
      requestTime: summary.requestTime, responseTime: summary.responseTime, storedAt: summary.responseTime,
      validatedAt: summary.responseTime, expiresAt: 0,
      mediaType: ending.format?.mediaType ?? StoredResponse.mediaType(told: head.headers["content-type"]))
    draft.expiresAt = policy.freshUntil(draft.cached)
    let attempts = scheduler.job(job)?.attempt ?? 1
    let wanted = places(of: job)
    let places = record.first.request.mayStore(status: head.status, headers: head.headers) ? wanted : []
    let supersedes = places.isEmpty && !wanted.isEmpty && record.supersedes(draft)
    scheduler.finish(job)
    imagesBeingStored[record.identity] = imagesBeingStored[record.identity] ?? []
    record.arrived = draft.cached
    for id in scheduler.subscribers(of: job) {
      guard let load = loads[id], record.isAnswered(load, by: draft.cached) else { continue }
      load.note(record, summary, attempts: attempts)
      load.emit(.progress(received: ending.received, total: head.contentLength))
    }
    store(job, record, body: ending.body, format: ending.format, as: draft, keeping: places, supersedes: supersedes)
  }

  /// Passes a complete body to the disk thread, which stores it if it may be stored and serves the loads that wait.
  private func store(
    _ job: JobID, _ record: JobRecord, body: Download.Body, format: ImageFormat?, as draft: StoredResponse,
    keeping places: LoadRequest.Places, supersedes: Bool = false
  ) {
    let waiting = scheduler.subscribers(of: job).compactMap { loads[$0] }.filter {
      record.isAnswered($0, by: draft.cached)
    }
    let mayHavePartials = storage.tier?.mayHavePartials == true
    let operation = StoreOperation(
      body: body, format: format, draft: draft, places: places, supersedes: supersedes,
      partials: mayHavePartials ? record.first.request.partialIdentity(in: record.first.partition) : nil,
      largestInMemory: memory.largestEntry,
      needsSize: record.first.request.validation != .none, lease: record.lease.take(), clearCount: record.clearCount,
      deliveries: waiting.map { load in
        (load.id, load.request.digest, load.request.processing == nil ? DeliveryPlan(load.request) : .forDecoder)
      })
    storage.perform({ [storage] in operation.store(in: storage) }) { [weak self] outcome in
      self?.stored(job, outcome, keeping: places, supersedes: supersedes)
    }
  }

  private func stored(
    _ job: JobID, _ outcome: StoreOperation.Outcome, keeping places: LoadRequest.Places, supersedes: Bool
  ) {
    applyPeerInvalidations()
    guard let record = jobs[job] else { return }
    defer { storingEnded(record.identity) }
    switch outcome {
    case .failure(let error):
      fail(job, error)
    case .success(let stored):
      jobs[job] = nil
      var candidate = Candidate(
        response: stored.response, bytes: stored.bytes, place: stored.response.isOnDisk ? .disk : .memory)
      candidate.retention = !record.mayKeep ? .cleared : places.isEmpty ? .forbidden : .allowed
      pendingInvalidations.mark(&candidate)
      if !candidate.isTransient, stored.isIntact {
        remember(candidate.response, places.contains(.memory) ? stored.bytes : nil)
      } else if supersedes, stored.isIntact {
        memory.remove(replacedBy: candidate.response)
      }
      failures.forget(record.identity)
      if candidate.response.isOnDisk, let key = scheduler.job(job)?.key { recheckSiblingJob(of: key) }
      for id in scheduler.end(job) {
        guard let load = loads[id] else { continue }
        load.isKept = stored.isKept || !load.request.store.contains(.disk)
        switch stored.delivered[id] {
        case .success(let delivered) where load.request.processing != nil:
          var own = candidate
          if !own.response.isOnDisk, own.bytes == nil, let path = delivered.path { own.place = .scratch(path) }
          deliver(own, to: load, as: .miss)
        case .success(let delivered):
          answer(id, .success(LoadedImage(candidate.response, delivered, for: load, as: .miss, now: storage.now())))
        case .failure(let error):
          answer(id, .failure(error))
        // The remaining loads joined while the others were being served, or need a transfer of their own.
        case nil where !record.isAnswered(load, by: candidate.response.cached):
          join(load)
        case nil
        where stored.isIntact && (stored.bytes != nil || candidate.response.isOnDisk) && load.accepts(candidate):
          deliver(candidate, to: load, as: .miss)
        case nil:
          load.bypassesCache = true
          join(load)
        }
      }
    }
  }
}
