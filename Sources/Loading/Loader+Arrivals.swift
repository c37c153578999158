internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import Threads

/// A job's answer that is an image, or says that the one there is still holds.
extension Loader {
  /// What was stored still holds (RFC 9111 section 4.3.4).
  func notModified(_ job: JobID, _ record: JobRecord, _ summary: TransferSummary) {
    guard var basis = record.basis else { return }
    let asked = [basis.response.cached]
    guard !Validation.responsesUpdated(by: summary.head.headers, in: asked, asked: 0).isEmpty else {
      // It speaks of a response that is not the one asked about: ask again, for the whole.
      record.forgetBasis()
      return send(job, record, goingOnFrom: nil)
    }
    basis.response.headers = Storing.fields(
      basis.response.headers, updatedBy: summary.head.headers, receivedAt: summary.responseTime)
    basis.response.requestTime = summary.requestTime
    basis.response.responseTime = summary.responseTime
    basis.response.validatedAt = summary.responseTime
    basis.response.expiresAt = policy.freshUntil(basis.response.cached)
    if record.mayKeep {
      memory.update(basis.response)
      let updated = basis.response
      // A read-only directory keeps what it has.
      if updated.isOnDisk, basis.place == .memory || basis.place == .disk, let tier = storage.tier {
        storage.executor.run { tier.assumeIsolated { $0.update(updated) } }
      }
    }
    failures.forget(FailureMemory.Subject(key: record.first.request.key, partition: record.first.partition))
    let attempts = scheduler.job(job)?.attempt ?? 1
    jobs[job] = nil
    for id in scheduler.end(job) {
      guard let load = loads[id] else { continue }
      load.note(record, summary, attempts: attempts)
      if load.accepts(basis) {
        deliver(basis, to: load, as: .revalidated)
      } else {
        // Another load asked about it; what this one wants has to be transferred.
        load.ignoresCache = true
        join(load)
      }
    }
  }

  /// The body of a `data:` URL takes the same way as one that was transferred.
  func arrived(inline bytes: [UInt8], mediaType: String, for job: JobID) {
    guard let record = jobs[job] else { return }
    guard bytes.count <= record.first.request.maxBytes else {
      return fail(job, LoadError(.tooLarge, "the content is over \(record.first.request.maxBytes) bytes"))
    }
    var format: ImageFormat?
    if case .image(let found) = Recognition(prefix: bytes, isComplete: true) { format = found }
    guard format != nil || record.first.request.validation == .none else {
      return fail(job, LoadError(.notAnImage, Self.refusal))
    }
    let now = storage.now()
    store(
      job, record, body: .bytes(bytes), format: format,
      as: StoredResponse(
        key: record.first.request.key, url: record.first.request.url,
        headers: StoredResponse.headersOfHost(mediaType, at: now),
        requestTime: now, responseTime: now, storedAt: now, validatedAt: now, expiresAt: now + policy.maxAge,
        mediaType: mediaType),
      keeping: record.first.request.cacheMode == .noStore ? [] : places(of: job))
  }

  func arrived(_ job: JobID, _ record: JobRecord, _ summary: TransferSummary, _ ending: Download.Ending) {
    let head = summary.head
    let headers = Storing.fields(of: head.headers, receivedAt: summary.responseTime)
    let mayStore = Storing.mayStore(
      mode: record.first.request.cacheMode, requestHeaders: record.first.request.headers, status: head.status,
      headers: head.headers)
    var draft = StoredResponse(
      key: record.first.request.key, partition: record.first.partition, url: record.first.request.url,
      finalURL: summary.redirects > 0 ? head.finalURL : nil, status: head.status, headers: headers,
      varyingHeaders: Variants.selectingFields(of: head.headers, from: record.first.request.headers) ?? [:],
      requestTime: summary.requestTime, responseTime: summary.responseTime, storedAt: summary.responseTime,
      validatedAt: summary.responseTime, expiresAt: 0,
      mediaType: ending.format?.mediaType ?? head.headers["content-type"] ?? "application/octet-stream")
    draft.expiresAt = policy.freshUntil(draft.cached)
    let attempts = scheduler.job(job)?.attempt ?? 1
    for id in scheduler.subscribers(of: job) {
      guard let load = loads[id] else { continue }
      load.note(record, summary, attempts: attempts)
      load.emit(.progress(received: ending.received, total: head.contentLength))
    }
    store(
      job, record, body: ending.body, format: ending.format, as: draft, keeping: mayStore ? places(of: job) : [])
  }

  /// Hands a complete body to the disk's thread, which keeps it where it may be kept and serves all who wait.
  private func store(
    _ job: JobID, _ record: JobRecord, body: Download.Body, format: ImageFormat?, as draft: StoredResponse,
    keeping places: LoadRequest.Places
  ) {
    scheduler.finish(job)
    let waiting = scheduler.subscribers(of: job).compactMap { loads[$0] }
    let mayHavePartials = storage.tier?.mayHavePartials == true
    let arrival = Arrival(
      body: body, format: format, draft: draft, places: places,
      partials: mayHavePartials ? record.first.request.partialIdentity(in: record.first.partition) : nil,
      largestInMemory: memory.largestEntry,
      needsSize: record.first.request.validation != .none,
      deliveries: waiting.map { load in
        (load.id, load.request.digest, load.request.processing == nil ? Delivery(load.request) : .forDecoder)
      })
    storage.perform({ [storage] in arrival.store(in: storage) }) { [weak self] outcome in
      self?.stored(job, outcome, keeping: places)
    }
  }

  private func stored(_ job: JobID, _ outcome: Arrival.Outcome, keeping places: LoadRequest.Places) {
    guard let record = jobs[job] else { return }
    switch outcome {
    case .failure(let error):
      fail(job, error)
    case .success(let stored):
      jobs[job] = nil
      var candidate = Candidate(
        response: stored.response, bytes: stored.bytes, place: stored.response.isOnDisk ? .disk : .memory)
      candidate.isTransient = places.isEmpty || !record.mayKeep
      if !places.isEmpty, record.mayKeep, stored.isIntact {
        remember(candidate.response, places.contains(.memory) ? stored.bytes : nil)
      }
      failures.forget(FailureMemory.Subject(key: record.first.request.key, partition: record.first.partition))
      for id in scheduler.end(job) {
        guard let load = loads[id] else { continue }
        switch stored.delivered[id] {
        case .success(let delivered) where load.request.processing != nil:
          var own = candidate
          if !own.response.isOnDisk, own.bytes == nil, let path = delivered.path { own.place = .scratch(path) }
          deliver(own, to: load, as: .miss)
        case .success(let delivered):
          finish(id, .success(image(for: load, candidate.response, delivered, as: .miss)))
        case .failure(let error):
          finish(id, .failure(error))
        case nil
        where stored.isIntact && (stored.bytes != nil || candidate.response.isOnDisk) && load.accepts(candidate):
          // It joined while the others were being served.
          deliver(candidate, to: load, as: .miss)
        case nil:
          load.ignoresCache = true
          join(load)
        }
      }
    }
  }
}
