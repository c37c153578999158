internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import Platform
internal import Tracing

/// The transfers of jobs: their start, progress and end, and the lookup of names.
extension JobCoordinator {
  /// The bytes that are requested for a probe. Most headers are in fewer, with the EXIF data of a camera included.
  nonisolated static let probedBytes: Int64 = 32 << 10

  /// Starts the transfers that the scheduler permits.
  ///
  /// - Parameter needsPlace: whether a queue place is needed now.
  func startTransfers(at now: Instant, needsPlace: Bool = false) {
    // A job that still waits for the disk has sent no request yet.
    scheduler.findQuiet(at: now) { jobs[$0]?.download?.isAnswered }
    lookUpNames()
    var starts: [JobID]
    repeat {
      starts = scheduler.takeStarts(at: now, needsPlace: needsPlace)
      for job in starts where acquireLease(job, at: now) { start(job, at: now) }
      // A job that was deferred, or needed no transfer, leaves its permit to the next one.
    } while starts.contains { scheduler.job($0)?.phase != .active }
  }

  /// Looks into the cache again for the jobs whose wait for a peer is over.
  func pollPeers(at now: Instant) {
    for job in peers.poll(at: now) where scheduler.job(job)?.phase == .awaitingPeer { lookUp(job) }
  }

  /// Acquires the lease of the job, if it takes part in single flight across processes. Returns false if the job is
  /// deferred: a peer holds the lease, or may have stored the response.
  private func acquireLease(_ id: JobID, at now: Instant) -> Bool {
    guard let job = jobs[id], let claim = job.claim, job.mayKeep else { return true }
    switch peers.acquireLease(claim, for: id, at: now) {
    case .granted: return true
    case .held: scheduler.deferTransfer(of: id, as: .awaitingPeer)
    case .cacheChanged:
      scheduler.deferTransfer(of: id, as: .awaitingCache)
      lookUp(id)
    }
    return false
  }

  /// Starts the next attempt of a job.
  private func start(_ id: JobID, at now: Instant) {
    guard jobs.contains(id), needsTransferStill(id) else { return }
    let attempt = scheduler.job(id)?.attempt ?? 1
    forEachLoad(of: id) { $0.emit(.started(attempt: attempt)) }
    guard let job = jobs[id] else { return }
    let usesCache = scheduler.job(id)?.key.revalidation.usesCache == true
    let mayUseDisk = job.mayResume && usesCache && tiers(of: id).contains(.disk)
    recordAttempt(of: id, at: now, name: scheduler.takeNameDuration(for: id))
    let start = jobs[id.slot].permitGranted(clearCount: peers.clearCount, mayUseDisk: mayUseDisk)
    switch start {
    case .resume: resume(id)
    case .transfer: send(id, resuming: takePartialBody(of: id))
    }
  }

  /// Starts the job's transfer with the partial body of an earlier load, if there is one.
  private func resume(_ id: JobID) {
    guard let job = jobs[id] else { return }
    let identity = job.request.partialIdentity(in: job.first.partition)
    let (maxBytes, acceptsAnything) = (job.request.maxBytes, job.request.validation == .none)
    let wantsHeader = hasLoad(in: id, where: { $0.request.awaitsHeader })
    storage.perform(
      .resume,
      { [storage] in
        storage.resumePartial(
          identity, maxBytes: maxBytes, acceptsAnything: acceptsAnything, readingHeader: wantsHeader)
      }
    ) { [weak self] partialBody in
      guard let self else { return }
      guard self.jobs.contains(id), self.scheduler.job(id)?.hasSubscribers == true else {
        if let partialBody { self.storage.retainForResume(partialBody.body) }
        _ = self.scheduler.end(id)
        return self.remove(id)
      }
      if partialBody != nil { self.jobs[id.slot].dropConditions() }
      self.send(id, resuming: partialBody)
    }
  }

  /// Sends the request of an attempt, for a range if there is a partial body.
  func send(_ id: JobID, resuming partialBody: PartialBody?) {
    guard let job = jobs[id], case .http(let url) = job.request.source else { return }
    counts.started += 1
    var request = TransferRequest(
      url: url, headers: HeaderFields(job.request.headers.lines + job.conditions.lines),
      validatedURL: job.revalidationTarget.map { $0.response.finalURL ?? url.requestURL },
      idleTimeout: job.request.timeout, maxBytes: job.request.maxBytes, maxRedirects: maxRedirects)
    request.needsFreshConnection = job.needsFreshConnection
    request.isContent = Recognition.isImage
    let firstRange = partialBody == nil ? firstRange(for: id) : nil
    if let firstRange {
      jobs[id.slot].startRequested()
      for field in firstRange.requestFields.lines { request.headers.append(field.name, field.value) }
    }
    if let partialBody { request.askForRest(after: partialBody) }
    let download = makeDownload(for: id, job, url, firstRange, resuming: partialBody)
    // Before the transfer starts: the first piece of the body may be the only one for a long time.
    if hasLoad(in: id, where: { $0.request.events.contains(.preview) }) { download.wantPreviews() }
    if hasLoad(in: id, where: { $0.request.awaitsHeader }) { _ = download.wantHeader() }
    let transfer = transport.start(request, consumer: download)
    jobs[id.slot].transferStarted(transfer, download)
    download.began { [transport] in transport.resume(transfer) }
  }

  /// The range to request for probes alone: a transfer that ends with its range leaves its connection open. Nil if
  /// another request may have to follow too soon for the rate of the origin.
  private func firstRange(for id: JobID) -> FirstRange? {
    guard let job = jobs[id], !job.hasRequestedStart, job.conditions.lines.isEmpty,
      Storing.isForWhole(requestHeaders: job.request.headers), !scheduler.hasRate(id),
      !hasLoad(in: id, where: { !$0.request.isProbe })
    else { return nil }
    return FirstRange(byteCount: Self.probedBytes)
  }

  private func makeDownload(
    for id: JobID, _ job: Job, _ url: ResourceURL, _ firstRange: FirstRange?, resuming partialBody: PartialBody?
  ) -> Download {
    let (storage, first, tiers, source) = (storage, job.first, tiers(of: id), WorkSource())
    var onAnswer: (@Sendable (ResponseHead) -> Void)?
    if scheduler.wantsFirstByteSignal(of: id) {
      onAnswer = { head in
        guard TransferSignal(head, now: storage.now()) == .answered else { return }
        LoadingActor.run(for: source) { [weak self] in self?.firstByteReceived(id) }
      }
    }
    var onRedirect: (@Sendable (String) -> Void)?
    if checksRedirects {
      onRedirect = { url in LoadingActor.run(for: source) { [weak self] in self?.redirected(id, to: url) } }
    }
    let robotsUserAgent = robots.userAgent
    let configuration = Download.Configuration(
      acceptsAnything: first.request.validation == .none, requestHeaders: first.request.headers,
      firstRange: firstRange, maxBytes: first.request.maxBytes,
      makeSink: { head, partial, spooled, onRoom in
        let mayKeep = tiers.contains(.disk) && first.request.mayStore(status: head.status, headers: head.headers)
        let stored = partial.map {
          PartialRecord($0, identity: first.request.partialIdentity(in: first.partition), url: url.requestURL)
        }
        return storage.makeSink(
          keeping: mayKeep, expected: head.contentLength, of: stored, continuing: spooled, onRoom: onRoom)
      },
      discard: { storage.discard($0) },
      refusal: { head in
        robotsUserAgent.flatMap { UsageDirectives.refusal(in: head.headers, userAgent: $0) }
      }, onRedirect: onRedirect, onAnswer: onAnswer,
      onProgress: { received, total in
        LoadingActor.run(for: source) { [weak self] in
          self?.forEachLoad(of: id) { $0.emit(.progress(received: received, total: total)) }
        }
      },
      onHeader: { header in LoadingActor.run(for: source) { [weak self] in self?.headerArrived(header, of: id) } },
      onScan: { scans in LoadingActor.run(for: source) { [weak self] in self?.previews.make(from: scans, of: id) } },
      onEnd: { ending in LoadingActor.run(for: source) { [weak self] in self?.ended(id, ending) } },
      unixTime: storage.now)
    return Download(configuration, partialBody: partialBody)
  }

  /// The union of the tiers requested by the loads of the job, as long as it may be cached.
  func tiers(of job: JobID) -> LoadRequest.Tiers {
    guard jobs[job]?.mayKeep == true else { return [] }
    var tiers: LoadRequest.Tiers = []
    var hasRestarted = false
    scheduler.forEachSubscriber(of: job) { id in
      guard let load = registry[id] else { return }
      tiers.formUnion(load.request.tiersOfOriginal(hasDisk: storage.tier != nil))
      if load.hasRestarted { hasRestarted = true }
    }
    // A source that was evicted before it was decoded goes into a scratch file this time, which is not evicted.
    if hasRestarted { tiers.remove(.disk) }
    return tiers
  }

  /// Ends the loads of a job that need no more than the header of the image. The transfer pauses until then.
  private func headerArrived(_ header: ArrivedHeader, of id: JobID) {
    forEachLoad(of: id) { endEarly($0, of: id, header) }
    guard let job = jobs[id], let transfer = job.transfer else { return }
    if scheduler.job(id)?.hasSubscribers == true { return transport.resume(transfer) }
    guard job.hasAnsweredProbe else { return }
    // A load that follows at once waits until the partial body can be resumed.
    cache.pending.beginStore(of: job.identity)
    jobs[id.slot].partialBodyPromised()
  }

  /// Ends a load that needs no more than the header of the image: a probe, or a load that does not want the image. A
  /// load with other request headers waits for the end of the response, whose Vary decides whether it is answered.
  func endEarly(_ load: ActiveLoad, of id: JobID, _ header: ArrivedHeader) {
    guard let job = jobs[id], load === job.first || load.request.headers == job.request.headers else { return }
    if let objection = load.request.want?.objection(to: header.image) {
      deliveries.complete(load, .failure(LoadError(.unwanted, objection)), at: .answer)
    } else if load.request.isProbe {
      jobs[id.slot].probeAnswered()
      deliveries.complete(load, .success(LoadedImage(header, for: load.request)), at: .answer)
    }
  }

  /// Handles the end of a transfer.
  private func ended(_ id: JobID, _ ending: Download.Outcome) {
    let (bytes, times): (Int64, TransferTimes?) =
      switch ending.outcome {
      case .success(let summary): (summary.bytesReceived, summary.times)
      case .failure(let error): (error.bytesReceived, error.times)
      }
    counts.bytes += bytes
    reportSignal(of: ending.outcome, by: id)
    if let times, times.redirects == 0, let sent = times.requestSentAt {
      scheduler.requestSent(by: id, at: sent)
    }
    guard jobs.contains(id) else { return assertionFailure("a job lasts as long as its transfer") }
    if isSuperseded(id) { jobs[id.slot].superseded() }
    previews.cancel(of: id)
    recordTransfer(of: id, ending.outcome)
    if ending.isStart, let header = jobs[id]?.download?.wantHeader() {
      forEachLoad(of: id) { endEarly($0, of: id, header) }
    }
    let isWanted = scheduler.job(id)?.hasSubscribers == true
    let actions = jobs[id.slot].transferEnded(ending, isWanted: isWanted, now: storage.now())
    let hasSucceeded = ending.isStart || actions.contains(where: \.isSuccess)
    if hasSucceeded { counts.succeeded += 1 } else { counts.failed += 1 }
    if let job = jobs[id] {
      counts.busiestOrigins.count(job.request.origin, hasSucceeded: hasSucceeded, bytes: bytes)
    }
    perform(actions, for: id)
  }

  // MARK: - Origins

  /// Reports the outcome to the scheduler, and ends the jobs that wait for an origin that turns out to be down.
  private func reportSignal(of outcome: Result<TransferSummary, TransferError>, by id: JobID) {
    guard let job = jobs[id] else { return }
    var signal = TransferSignal(outcome, now: storage.now())
    var isHTTP2 = false
    if case .success(let summary) = outcome {
      if summary.redirects > 0, let last = try? ResourceURL(summary.head.finalURL).origin, last != job.request.origin {
        if signal != .answered { scheduler.record(signal, at: last, now: LoadingActor.now, random: &random) }
        signal = .answered
      } else {
        isHTTP2 = summary.head.httpVersion == "2"
      }
    }
    let waiting = scheduler.record(
      signal, by: id, isHTTP2: isHTTP2, error: Self.downError(of: outcome, now: storage.now()),
      now: LoadingActor.now, random: &random
    ) { jobs[$0]?.download?.isAnswered ?? false }
    if let error = scheduler.originFailure(of: id) { endAll(waiting, at: job.request.origin, error) }
  }

  /// Reports the first byte of a response to the scheduler.
  func firstByteReceived(_ job: JobID) {
    guard jobs[job]?.transfer != nil else { return }
    _ = scheduler.record(.answered, by: job, now: LoadingActor.now, random: &random)
  }

  /// The error for loads that wait for an origin that this outcome has shown to be down.
  private static func downError(of outcome: Result<TransferSummary, TransferError>, now: Int) -> LoadError {
    var error: LoadError
    switch outcome {
    case .failure(let failure): error = LoadError(failure)
    case .success(let summary):
      error = LoadError(summary.head, now: now)
      // The response belongs to another load.
      error.response = nil
    }
    error.isOriginDown = true
    return error
  }

  /// Looks up the host names of origins that transfers are about to contact.
  private func lookUpNames() {
    for (id, origin) in scheduler.takeNamesToAsk() {
      if origin.isAddress || scheduler.limits.maxLookUps == 0 {
        askForPermission(id, origin)
        continue
      }
      let source = WorkSource()
      transport.lookUp(origin) { resolution in
        LoadingActor.run(for: source) { [weak self] in self?.lookedUp(id, origin, resolution) }
      }
    }
  }

  private func lookedUp(_ id: OriginID, _ origin: Origin, _ resolution: NameResolution) {
    guard resolution.outcome == .unanswered else { return askForPermission(id, origin, after: resolution.duration) }
    var error = LoadError(.resolve, "no name server answered for \(origin.host)")
    error.isOriginDown = true
    let waiting = scheduler.nameUnanswered(id, error: error, now: LoadingActor.now, random: &random)
    if !waiting.isEmpty { endAll(waiting, at: origin, error) }
  }

  /// Ends the jobs and prefetch items that wait for an origin that is down.
  private func endAll(_ waiting: [JobID], at origin: Origin, _ error: LoadError) {
    // Prefetches first, so that none of their items takes the place of a job that is about to end.
    loader?.originDown(origin, error)
    for job in waiting { endAtDownOrigin(job) }
  }

  /// Ends a job that waits for an origin that is down.
  func endAtDownOrigin(_ id: JobID) {
    guard let job = scheduler.job(id), var error = scheduler.originFailure(of: id) else { return }
    error.attempts = max(1, job.attempt - 1)
    giveUp(id, error)
  }

  // MARK: - Failures

  /// Handles a failed attempt: schedules a retry, or gives up.
  func attemptFailed(_ id: JobID, _ error: LoadError) {
    guard jobs.contains(id) else { return }
    jobs[id.slot].attemptFailed(error)
    var error = error
    error.attempts = scheduler.job(id)?.attempt ?? 1
    if error.isRetryable {
      switch scheduler.retry(id, retryAfter: error.retryAfter, now: LoadingActor.now, random: &random) {
      case .retry(let attempt, let delay):
        counts.retries += 1
        if let request = jobs[id]?.request {
          loader?.trace?.retrying(request, attempt: attempt, delay: delay, after: error)
        }
        record(for: id) { $0.restart(at: LoadingActor.now) }
        return forEachLoad(of: id) { $0.emit(.retrying(attempt: attempt, delay: delay, kind: error.kind)) }
      case .final: error.isOriginDown = scheduler.originFailure(of: id) != nil
      }
    }
    giveUp(id, error)
  }

  /// Ends a job without a further attempt. Loads that may have a stored response get it; the others fail.
  private func giveUp(_ id: JobID, _ error: LoadError) {
    if let stored = jobs[id]?.candidates, !stored.isEmpty, error.isOfServer {
      forEachLoad(of: id) { load in
        guard let fallback = cache.fallback(for: load, among: stored, after: error) else { return }
        deliveries.deliver(fallback, to: load, as: .stale, at: .answer)
        _ = scheduler.unsubscribe(load.id)
      }
    }
    fail(id, error)
  }

  /// Ends the job with an error for its loads.
  func fail(_ id: JobID, _ error: LoadError) {
    guard let job = jobs[id] else { return }
    remove(id, after: error)
    if error.isPermanent, job.mayKeep, Storing.isForWhole(requestHeaders: job.request.headers) {
      cache.failures.remember(error, of: job.identity, maxBytes: job.request.maxBytes, now: LoadingActor.now)
    }
    for subscriber in scheduler.end(id) {
      guard let load = registry[subscriber] else { continue }
      var own = error
      if !load.request.wantsResponse { own.response = nil }
      deliveries.complete(load, .failure(own), at: .answer)
    }
  }
}

extension JobAction {
  fileprivate var isSuccess: Bool {
    switch self {
    case .confirm, .store: true
    default: false
    }
  }
}
