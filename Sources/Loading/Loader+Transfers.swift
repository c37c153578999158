internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import Threads

/// A job's way over the network.
extension Loader {
  /// Begins a job's next attempt.
  func start(_ job: JobID, at now: ContinuousClock.Instant) {
    guard let record = jobs[job] else { return }
    record.startedAt = record.startedAt ?? now
    let attempt = scheduler.job(job)?.attempt ?? 1
    for id in scheduler.subscribers(of: job) { loads[id]?.emit(.started(attempt: attempt)) }
    if shouldTakeUp(job, record) {
      takeUp(for: job, record)
    } else {
      send(job, record, goingOnFrom: takeBeginning(of: record))
    }
  }

  /// Sends the request of an attempt, for the rest where there is a beginning.
  func send(_ job: JobID, _ record: JobRecord, goingOnFrom beginning: Beginning?) {
    guard case .http(let url) = record.first.request.source else { return }
    counts.transfersStarted += 1
    var request = TransferRequest(
      url: url.requestURL, headers: HeaderFields(record.first.request.headers.lines + record.conditions.lines),
      validatedURL: record.basis.map { $0.response.finalURL ?? url.requestURL },
      idleTimeout: record.first.request.timeout, maxBytes: record.first.request.maxBytes, maxRedirects: maxRedirects)
    request.needsFreshConnection = record.hasTimedOut
    if let beginning { request.askForRest(after: beginning) }
    let storage = storage
    let places = places(of: job)
    let first = record.first
    let download = Download(
      acceptsAnything: first.request.validation == .none, beginning: beginning, requestHeaders: first.request.headers,
      makeSink: { head, partial, spooled, onRoom in
        let mayKeep =
          places.contains(.disk)
          && Storing.mayStore(
            mode: first.request.cacheMode, requestHeaders: first.request.headers, status: head.status,
            headers: head.headers)
        let stored = partial.map {
          StoredPartial($0, identity: first.request.partialIdentity(in: first.partition), url: url.requestURL)
        }
        return storage.makeSink(
          keeping: mayKeep, expected: head.contentLength, of: stored, continuing: spooled, onRoom: onRoom)
      },
      discard: { storage.discard($0) },
      onProgress: { received, total in
        LoadingActor.run { [weak self] in self?.progressed(job, received: received, total: total) }
      },
      onEnd: { ending in
        LoadingActor.run { [weak self] in self?.ended(job, ending) }
      },
      unixTime: storage.now)
    let transfer = transport.start(request, consumer: download)
    record.transfer = transfer
    record.download = download
    download.began { [transport] in transport.resume(transfer) }
  }

  /// Where the loads that wait for the job, or did to the last, want the result kept, all together.
  func places(of job: JobID) -> LoadRequest.Places {
    guard let record = jobs[job], record.mayKeep else { return [] }
    return scheduler.subscribers(of: job).reduce(into: record.placesOfLeavers) { places, id in
      if let load = loads[id] { places.formUnion(load.request.store) }
    }
  }

  private func progressed(_ job: JobID, received: Int64, total: Int64?) {
    for id in scheduler.subscribers(of: job) {
      loads[id]?.emit(.progress(received: received, total: total))
    }
  }

  /// A transfer is over, well or badly.
  private func ended(_ job: JobID, _ ending: Download.Ending) {
    switch ending.outcome {
    case .success(let summary): counts.transferBytes += summary.bytesReceived
    case .failure(let error): counts.transferBytes += error.bytesReceived
    }
    note(ending.outcome, by: job)
    guard let record = jobs[job] else { return }
    record.transfer = nil
    record.download = nil
    guard scheduler.job(job)?.hasSubscribers == true || record.goesOnAlone && ending.isSuccess else {
      // All have left; the job only held the transfer's place until now.
      storage.discard(ending.body)
      if let beginning = ending.beginning { leave(beginning, of: record) }
      counts.transfersFailed += 1
      _ = scheduler.end(job)
      jobs[job] = nil
      return
    }
    keep(ending.beginning, for: record)
    if ending.isMisfit {
      counts.transfersFailed += 1
      return send(job, record, goingOnFrom: nil)
    }
    switch ending.outcome {
    case .failure(let error):
      storage.discard(ending.body)
      counts.transfersFailed += 1
      failed(job, record, ending.isRefused ? LoadError(.notAnImage, Self.refusal) : LoadError(error))
    case .success(let summary):
      answered(job, record, summary, ending)
    }
  }

  /// Tells the scheduler how it went with the origin. Where it was a probe that failed, all who wait there have lost an
  /// attempt by it.
  private func note(_ outcome: Result<TransferSummary, TransferError>, by probe: JobID) {
    let contact = Contact(outcome, now: storage.now())
    let failed = scheduler.note(contact, by: probe, now: .now, random: &random)
    guard let failed, case .failure(let failure) = outcome else { return }
    var error = LoadError(failure)
    for job in failed.retrying {
      let attempt = scheduler.job(job)?.attempt ?? 1
      for id in scheduler.subscribers(of: job) {
        loads[id]?.emit(.retrying(attempt: attempt, delay: failed.delay, kind: error.kind))
      }
    }
    for job in failed.exhausted {
      guard let record = jobs[job] else { continue }
      error.attempts = scheduler.job(job)?.attempt ?? 1
      giveUp(job, record, error)
    }
    guard let origin = jobs[probe]?.first.request.origin else { return }
    for prefetch in prefetches.values { prefetch.probeFailed(at: origin, error) }
  }

  private static let refusal = "the content is no image of a known format"

  private func answered(_ job: JobID, _ record: JobRecord, _ summary: TransferSummary, _ ending: Download.Ending) {
    switch summary.head.status {
    case 304 where record.basis != nil:
      counts.transfersSucceeded += 1
      notModified(job, record, summary)
    case 200..<300:
      if ending.isRefused {
        storage.discard(ending.body)
        counts.transfersFailed += 1
        return failed(job, record, LoadError(.notAnImage, Self.refusal))
      }
      if case .failed(let error) = ending.body {
        counts.transfersFailed += 1
        return failed(job, record, LoadError(error))
      }
      counts.transfersSucceeded += 1
      arrived(job, record, summary, ending)
    default:
      counts.transfersFailed += 1
      var error = LoadError(.http, "the server answered \(summary.head.status)")
      error.status = summary.head.status
      error.retryAfter = summary.head.retryAfter(now: storage.now())
      error.response = LoadedImage.Response(status: summary.head.status, headers: summary.head.headers)
      failed(job, record, error)
    }
  }

  // MARK: - Failure

  /// One attempt failed: there is another, or it was the last.
  private func failed(_ job: JobID, _ record: JobRecord, _ error: LoadError) {
    var error = error
    error.attempts = scheduler.job(job)?.attempt ?? 1
    if error.kind == .timeout { record.hasTimedOut = true }
    if error.isRetryable {
      let now = ContinuousClock.now
      switch scheduler.retry(job, retryAfter: error.retryAfter, now: now, random: &random) {
      case .retry(let attempt, let delay):
        for id in scheduler.subscribers(of: job) {
          loads[id]?.emit(.retrying(attempt: attempt, delay: delay, kind: error.kind))
        }
        return
      case .final: break
      }
    }
    giveUp(job, record, error)
  }

  /// There is no further attempt: what is stored will do, or everybody is told.
  private func giveUp(_ job: JobID, _ record: JobRecord, _ error: LoadError) {
    if let stored = record.candidates, !stored.isEmpty, error.isOfServer {
      for id in scheduler.subscribers(of: job) {
        guard let load = loads[id], let fallback = fallback(for: load, among: stored, after: error) else { continue }
        deliver(fallback, to: load, as: .stale)
        _ = scheduler.leave(id)
      }
    }
    fail(job, error)
  }

  /// What the load may have in the place of an answer (`stale-if-error`).
  private func fallback(for load: Load, among stored: [Candidate], after error: LoadError) -> Candidate? {
    load.accepted(of: stored).first {
      policy.mayServeOnError(
        $0.response.cached, mode: load.request.cacheMode, requestHeaders: load.request.headers, failure: error.status,
        now: storage.now())
    }
  }

  /// Ends the job with an error for all who wait for it.
  func fail(_ job: JobID, _ error: LoadError) {
    guard let record = jobs[job] else { return }
    forget(job, after: error)
    if error.isPermanent, record.mayKeep {
      failures.remember(
        error, of: FailureMemory.Subject(key: record.first.request.key, partition: record.first.partition),
        url: record.first.request.url, host: record.first.request.origin.host, maxBytes: record.first.request.maxBytes,
        now: .now)
    }
    for id in scheduler.end(job) {
      var own = error
      if loads[id]?.request.wantsResponse != true { own.response = nil }
      finish(id, .failure(own))
    }
  }

  // MARK: - Success

  /// What was stored still holds (RFC 9111 section 4.3.4).
  private func notModified(_ job: JobID, _ record: JobRecord, _ summary: TransferSummary) {
    guard var basis = record.basis else { return }
    let asked = [basis.response.cached]
    guard !Validation.responsesUpdated(by: summary.head.headers, in: asked, asked: 0).isEmpty else {
      // It speaks of a response that is not the one asked about: ask again, for the whole.
      record.basisIndex = nil
      record.conditions = HeaderFields(
        record.conditions.lines.filter { $0.name != "if-none-match" && $0.name != "if-modified-since" })
      return start(job, at: .now)
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

  private func arrived(_ job: JobID, _ record: JobRecord, _ summary: TransferSummary, _ ending: Download.Ending) {
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
    let arrival = Arrival(
      body: body, format: format, draft: draft, places: places, largestInMemory: memory.largestEntry,
      needsSize: record.first.request.validation == .header,
      deliveries: waiting.map { ($0.id, $0.request.digest, Delivery($0.request)) })
    storage.perform({ [storage] in arrival.store(in: storage) }) { [weak self] outcome in
      self?.stored(job, outcome, keeping: places)
    }
  }

  private func stored(_ job: JobID, _ outcome: Arrival.Outcome, keeping places: LoadRequest.Places) {
    guard let record = jobs.remove(job) else { return }
    switch outcome {
    case .failure(let error):
      jobs[job] = record
      fail(job, error)
    case .success(let stored):
      let candidate = Candidate(
        response: stored.response, bytes: stored.bytes, place: stored.response.isOnDisk ? .disk : .memory)
      if !places.isEmpty, record.mayKeep, stored.isIntact {
        remember(candidate.response, places.contains(.memory) ? stored.bytes : nil)
      }
      failures.forget(FailureMemory.Subject(key: record.first.request.key, partition: record.first.partition))
      for id in scheduler.end(job) {
        guard let load = loads[id] else { continue }
        switch stored.delivered[id] {
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
