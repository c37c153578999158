internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import Platform

/// The transfers of jobs: their start, progress and end, what they tell about their origins, and the lookup of names.
@LoadingActor
final class TransferCoordinator {
  /// The bytes that are requested for a probe. Most headers are in fewer, with the EXIF data of a camera included.
  nonisolated static let probedBytes: Int64 = 32 << 10

  weak var client: JobCoordinator?
  private let jobs: JobRegistry
  private let cache: CacheCoordinator
  private let peers: PeerCoordinator
  private let deliveries: DeliveryCoordinator
  private let storage: DiskServices
  private let transport: Transport
  private let previews: PreviewCoordinator
  private let permission: PermissionCoordinator
  private let partialBodies: PartialBodies
  var maxRedirects = 10
  var counts = TransferCounts()
  /// For the delays of the scheduler.
  var random = DelayRandom()

  init(
    jobs: JobRegistry, cache: CacheCoordinator, peers: PeerCoordinator, deliveries: DeliveryCoordinator,
    storage: DiskServices, transport: Transport, previews: PreviewCoordinator, permission: PermissionCoordinator,
    partialBodies: PartialBodies
  ) {
    (self.jobs, self.cache, self.peers, self.deliveries) = (jobs, cache, peers, deliveries)
    (self.storage, self.transport, self.previews) = (storage, transport, previews)
    (self.permission, self.partialBodies) = (permission, partialBodies)
  }

  // MARK: - The start

  /// Starts the transfers that the scheduler permits.
  ///
  /// - Parameter needsPlace: whether a queue place is needed now.
  func start(at now: Instant, needsPlace: Bool = false) {
    // A job that still waits for the disk has sent no request yet.
    jobs.scheduler.findQuiet(at: now) { jobs[$0]?.download?.isAnswered }
    lookUpNames()
    var starts: [JobID]
    repeat {
      starts = jobs.scheduler.takeStarts(at: now, needsPlace: needsPlace)
      for job in starts where acquireLease(job, at: now) { startAttempt(of: job, at: now) }
      // A job that was deferred, or needed no transfer, leaves its permit to the next one.
    } while starts.contains { jobs.scheduler.job($0)?.phase != .active }
  }

  /// Acquires the lease of the job, if it takes part in single flight across processes. Returns false if the job is
  /// deferred: a peer holds the lease, or may have stored the response.
  private func acquireLease(_ id: JobID, at now: Instant) -> Bool {
    guard let job = jobs[id], let claim = job.claim, job.mayKeep else { return true }
    switch peers.acquireLease(claim, for: id, at: now) {
    case .granted: return true
    case .held: jobs.scheduler.deferTransfer(of: id, as: .awaitingPeer)
    case .cacheChanged: client?.lookups.lookAgain(id)
    }
    return false
  }

  /// Starts the next attempt of a job.
  private func startAttempt(of id: JobID, at now: Instant) {
    guard jobs[id] != nil, client?.lookups.mayStart(id) == true else { return }
    let attempt = jobs.scheduler.job(id)?.attempt ?? 1
    jobs.forEachLoad(of: id) { $0.emit(.started(attempt: attempt)) }
    guard let job = jobs[id] else { return }
    let usesCache = jobs.scheduler.job(id)?.key.revalidation.usesCache == true
    let mayUseDisk = job.mayResume && usesCache && jobs.tiers(of: id, hasDisk: storage.tier != nil).contains(.disk)
    jobs.recordAttempt(of: id, at: now, name: jobs.scheduler.takeNameDuration(for: id))
    let start = job.permitGranted(clearCount: peers.clearCount, mayUseDisk: mayUseDisk)
    switch start {
    case .resume: resume(id)
    case .transfer: send(id, resuming: partialBodies.take(from: job))
    }
  }

  /// Starts the job's transfer with the partial body of an earlier load, if there is one.
  private func resume(_ id: JobID) {
    guard let job = jobs[id] else { return }
    let identity = job.request.partialIdentity(in: job.first.partition)
    let (maxBytes, acceptsAnything) = (job.request.maxBytes, job.request.validation == .none)
    let wantsHeader = jobs.hasLoad(in: id, where: { $0.request.awaitsHeader })
    storage.perform(
      .resume,
      { [storage] in
        storage.resumePartial(
          identity, maxBytes: maxBytes, acceptsAnything: acceptsAnything, readingHeader: wantsHeader)
      }
    ) { [weak self] partialBody in
      guard let self else { return }
      guard let job = self.jobs[id], self.jobs.scheduler.job(id)?.hasSubscribers == true else {
        if let partialBody { self.storage.retainForResume(partialBody.body) }
        _ = self.jobs.scheduler.end(id)
        self.client?.remove(id)
        return
      }
      if partialBody != nil { job.dropConditions() }
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
      idleTimeout: job.request.timeout, maxBytes: job.request.maxBytes,
      maxRedirects: job.isForPermission ? LoadRequest.maxRobotsRedirects : maxRedirects)
    request.needsFreshConnection = job.needsFreshConnection
    if !job.isForPermission { request.isContent = Recognition.isImage }
    let firstRange = partialBody == nil ? firstRange(for: id) : nil
    if let firstRange {
      job.startRequested()
      for field in firstRange.requestFields.lines { request.headers.append(field.name, field.value) }
    }
    if let partialBody { request.askForRest(after: partialBody) }
    let download = makeDownload(for: id, job, url, firstRange, resuming: partialBody)
    // Before the transfer starts: the first piece of the body may be the only one for a long time.
    if jobs.hasLoad(in: id, where: { $0.request.events.contains(.preview) }) { download.wantPreviews() }
    if jobs.hasLoad(in: id, where: { $0.request.awaitsHeader }) { _ = download.wantHeader() }
    let transfer = transport.start(request, consumer: download)
    job.transferStarted(transfer, download)
    download.began { [transport] in transport.resume(transfer) }
  }

  /// The range to request for probes alone: a transfer that ends with its range leaves its connection open. Nil if
  /// another request may have to follow too soon for the rate of the origin.
  private func firstRange(for id: JobID) -> FirstRange? {
    guard let job = jobs[id], !job.probe.hasRequestedStart, job.conditions.lines.isEmpty,
      Storing.isForWhole(requestHeaders: job.request.headers), !jobs.scheduler.hasRate(id),
      !jobs.hasLoad(in: id, where: { !$0.request.isProbe })
    else { return nil }
    return FirstRange(byteCount: Self.probedBytes)
  }

  private func makeDownload(
    for id: JobID, _ job: Job, _ url: ResourceURL, _ firstRange: FirstRange?, resuming partialBody: PartialBody?
  ) -> Download {
    let (storage, first, tiers) = (storage, job.first, jobs.tiers(of: id, hasDisk: storage.tier != nil))
    var onAnswer: (@Sendable (ResponseHead) -> Void)?
    if jobs.scheduler.wantsFirstByteSignal(of: id) {
      onAnswer = { head in
        guard TransferSignal(head, now: storage.now()) == .answered else { return }
        LoadingActor.run { [weak self] in self?.firstByteReceived(id) }
      }
    }
    var onRedirect: (@Sendable (String) -> Void)?
    if permission.checksRedirects(of: job) {
      onRedirect = { url in LoadingActor.run { [weak self] in self?.permission.redirected(id, to: url) } }
    }
    let robotsUserAgent = job.isForPermission ? nil : permission.userAgent
    var configuration = Download.Configuration(
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
        LoadingActor.run { [weak self] in
          self?.jobs.forEachLoad(of: id) { $0.emit(.progress(received: received, total: total)) }
        }
      },
      onHeader: { header in LoadingActor.run { [weak self] in self?.headerArrived(header, of: id) } },
      onScan: { scans in LoadingActor.run { [weak self] in self?.previews.make(from: scans, of: id) } },
      onEnd: { ending in LoadingActor.run { [weak self] in self?.ended(id, ending) } },
      unixTime: storage.now)
    if job.isForPermission { configuration.lengthOfPrefix = RobotsRules.maxBytes }
    return Download(configuration, partialBody: partialBody)
  }

  /// Aborts the transfer of a job, if one is running.
  func cancel(_ job: JobID) {
    if let transfer = jobs[job]?.transfer { transport.cancel(transfer) }
  }

  // MARK: - The header and the end

  /// Ends the loads of a job that need no more than the header of the image. The transfer pauses until then.
  private func headerArrived(_ header: ArrivedHeader, of id: JobID) {
    jobs.forEachLoad(of: id) { endEarly($0, of: id, header) }
    guard let job = jobs[id], let transfer = job.transfer else { return }
    if jobs.scheduler.job(id)?.hasSubscribers == true { return transport.resume(transfer) }
    guard job.probe.isAnswered else { return }
    // A load that follows at once waits until the partial body can be resumed.
    cache.pending.beginStore(of: job.identity)
    job.partialBodyPromised()
  }

  /// Ends a load that needs no more than the header of the image: a probe, or a load that does not want the image. A
  /// load with other request headers waits for the end of the response, whose Vary decides whether it is answered.
  func endEarly(_ load: ActiveLoad, of id: JobID, _ header: ArrivedHeader) {
    guard let job = jobs[id], load === job.first || load.request.headers == job.request.headers else { return }
    if let refusal = load.request.want?.refusal(of: header.image) {
      deliveries.complete(load, .failure(refusal), at: .answer)
    } else if load.request.isProbe {
      job.probeAnswered()
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
    guard let job = jobs[id] else { return assertionFailure("a job lasts as long as its transfer") }
    // An answer to the added fields alone says nothing about the origin either.
    if !job.isRefused(ending) { reportSignal(of: ending.outcome, by: id) }
    if let times, times.redirects == 0, let sent = times.requestSentAt {
      jobs.scheduler.requestSent(by: id, at: sent)
    }
    permission.leave(id)
    if client?.isSuperseded(id) == true { job.superseded() }
    previews.cancel(of: id)
    jobs.recordTransfer(of: id, ending.outcome)
    if ending.isStart, let header = job.download?.wantHeader() {
      jobs.forEachLoad(of: id) { endEarly($0, of: id, header) }
    }
    let isWanted = jobs.scheduler.job(id)?.hasSubscribers == true
    let actions = job.transferEnded(ending, isWanted: isWanted, now: storage.now())
    let hasSucceeded = ending.isStart || actions.contains(where: \.isSuccess)
    if hasSucceeded { counts.succeeded += 1 } else { counts.failed += 1 }
    counts.busiestOrigins.count(job.request.origin, hasSucceeded: hasSucceeded, bytes: bytes)
    client?.perform(actions, for: id)
  }

  // MARK: - Origins

  /// Reports the outcome to the scheduler, and ends the jobs that wait for an origin that turns out to be down.
  private func reportSignal(of outcome: Result<TransferSummary, TransferError>, by id: JobID) {
    guard let job = jobs[id] else { return }
    var signal = TransferSignal(outcome, now: storage.now())
    var isHTTP2 = false
    if case .success(let summary) = outcome {
      if summary.redirects > 0, let last = try? ResourceURL(final: summary.head.finalURL).origin,
        last != job.request.origin
      {
        if signal != .answered {
          jobs.scheduler.record(
            signal, at: last, error: Self.originError(of: outcome, now: storage.now()), now: .now, random: &random)
        }
        signal = .answered
      } else {
        isHTTP2 = summary.head.httpVersion == "2"
      }
    }
    let waiting = jobs.scheduler.record(
      signal, by: id, isHTTP2: isHTTP2, error: Self.originError(of: outcome, now: storage.now()),
      now: .now, random: &random
    ) { jobs[$0]?.download?.isAnswered ?? false }
    if jobs.scheduler.isOriginDown(of: id), let error = jobs.scheduler.originFailure(of: id) {
      endAll(waiting, at: job.request.origin, error)
    }
  }

  /// Reports the first byte of a response to the scheduler.
  func firstByteReceived(_ job: JobID) {
    guard jobs[job]?.transfer != nil else { return }
    _ = jobs.scheduler.record(.answered, by: job, now: .now, random: &random)
  }

  /// The error for loads that cannot wait for an origin that is suspended or down because of this outcome.
  private static func originError(of outcome: Result<TransferSummary, TransferError>, now: Int) -> LoadError {
    switch outcome {
    case .failure(let failure): return LoadError(failure)
    case .success(let summary):
      var error = LoadError(summary.head, now: now)
      // The response belongs to another load.
      error.response = nil
      return error
    }
  }

  /// Looks up the host names of origins that transfers are about to contact.
  private func lookUpNames() {
    for (id, origin) in jobs.scheduler.takeNamesToAsk() {
      if origin.isAddress || jobs.scheduler.limits.maxLookUps == 0 {
        jobs.scheduler.nameFound(id)
        continue
      }
      transport.lookUp(origin) { resolution in
        LoadingActor.run { [weak self] in self?.lookedUp(id, origin, resolution) }
      }
    }
  }

  private func lookedUp(_ id: OriginID, _ origin: Origin, _ resolution: NameResolution) {
    guard resolution.outcome == .unanswered else { return jobs.scheduler.nameFound(id, after: resolution.duration) }
    var error = LoadError(.resolve, "no name server answered for \(origin.host)")
    error.isUnanswered = true
    let waiting = jobs.scheduler.nameUnanswered(id, error: error, now: .now, random: &random)
    guard !waiting.isEmpty else { return }
    error.isOriginDown = true
    endAll(waiting, at: origin, error)
  }

  /// Ends the jobs and prefetch items that wait for an origin that is down.
  private func endAll(_ waiting: [JobID], at origin: Origin, _ error: LoadError) {
    // Prefetches first, so that none of their items takes the place of a job that is about to end.
    client?.loader?.originDown(origin, error)
    for job in waiting { client?.endAtDownOrigin(job) }
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
