internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore

/// The transfers of jobs: start, progress, end, and the lookup of names.
extension Loader {
  /// Starts the next attempt of a job.
  func start(_ job: JobID, at now: ContinuousClock.Instant) {
    guard let record = jobs[job], needsTransferStill(job, record) else { return }
    record.startedAt = record.startedAt ?? now
    record.clearCount = record.clearCount ?? clearCount
    record.nameDuration = scheduler.takeNameDuration(for: job)
    let attempt = scheduler.job(job)?.attempt ?? 1
    for id in scheduler.subscribers(of: job) { loads[id]?.emit(.started(attempt: attempt)) }
    if shouldResume(job, record) {
      resumePartial(for: job, record)
    } else {
      send(job, record, goingOnFrom: takePartialBody(of: record))
    }
  }

  /// Sends the request of an attempt, for a range if there is a partial body.
  func send(_ job: JobID, _ record: JobRecord, goingOnFrom partialBody: PartialBody?) {
    guard case .http(let url) = record.first.request.source else { return }
    counts.transfersStarted += 1
    var request = TransferRequest(
      url: url, headers: HeaderFields(record.first.request.headers.lines + record.conditions.lines),
      validatedURL: record.revalidationTarget.map { $0.response.finalURL ?? url.requestURL },
      idleTimeout: record.first.request.timeout, maxBytes: record.first.request.maxBytes,
      maxRedirects: settings.maxRedirects)
    request.needsFreshConnection = record.hasTimedOut
    request.isContent = Recognition.isImage
    if let partialBody { request.askForRest(after: partialBody) }
    let storage = storage
    let places = places(of: job)
    let first = record.first
    var onAnswer: (@Sendable (ResponseHead) -> Void)?
    if scheduler.wantsFirstByteSignal(of: job) {
      onAnswer = { head in
        guard TransferSignal(head, now: storage.now()) == .answered else { return }
        LoadingActor.run { [weak self] in self?.firstByteReceived(job) }
      }
    }
    let download = Download(
      acceptsAnything: first.request.validation == .none, partialBody: partialBody,
      requestHeaders: first.request.headers,
      makeSink: { head, partial, spooled, onRoom in
        let mayKeep = places.contains(.disk) && first.request.mayStore(status: head.status, headers: head.headers)
        let stored = partial.map {
          PartialRecord($0, identity: first.request.partialIdentity(in: first.partition), url: url.requestURL)
        }
        return storage.makeSink(
          keeping: mayKeep, expected: head.contentLength, of: stored, continuing: spooled, onRoom: onRoom)
      },
      discard: { storage.discard($0) }, onAnswer: onAnswer,
      onProgress: { received, total in
        LoadingActor.run { [weak self] in self?.progressed(job, received: received, total: total) }
      },
      onScan: { scans in
        LoadingActor.run { [weak self] in self?.previews.make(from: scans, of: job) }
      },
      onEnd: { ending in
        LoadingActor.run { [weak self] in self?.ended(job, ending) }
      },
      unixTime: storage.now)
    // Before the transfer starts: the first piece of the body may be the only one for a long time.
    scheduler.forEachSubscriber(of: job) { id in
      if loads[id]?.request.events.contains(.preview) == true { download.wantPreviews() }
    }
    let transfer = transport.start(request, consumer: download)
    record.transfer = transfer
    record.download = download
    download.began { [transport] in transport.resume(transfer) }
  }

  /// The union of the tiers requested by the loads of the job, as long as it may be cached.
  func places(of job: JobID) -> LoadRequest.Places {
    guard jobs[job]?.mayKeep == true else { return [] }
    var places: LoadRequest.Places = []
    var wasLost = false
    scheduler.forEachSubscriber(of: job) { id in
      guard let load = loads[id] else { return }
      places.formUnion(load.request.placesOfOriginal(hasDisk: storage.tier != nil))
      if load.hasRestarted { wasLost = true }
    }
    // A source that was evicted before it was decoded goes into a scratch file this time, which is not evicted.
    if wasLost { places.remove(.disk) }
    return places
  }

  private func progressed(_ job: JobID, received: Int64, total: Int64?) {
    for id in scheduler.subscribers(of: job) {
      loads[id]?.emit(.progress(received: received, total: total))
    }
  }

  /// Handles the end of a transfer.
  private func ended(_ job: JobID, _ ending: Download.Outcome) {
    switch ending.outcome {
    case .success(let summary): counts.transferBytes += summary.bytesReceived
    case .failure(let error): counts.transferBytes += error.bytesReceived
    }
    note(ending.outcome, by: job)
    guard let record = jobs[job] else { return }
    if isSupersededByHostStore(record) { record.mayKeep = false }
    record.transfer = nil
    record.download = nil
    previews.cancel(of: job)
    guard scheduler.job(job)?.hasSubscribers == true else {
      // All loads have left; the job only kept its slot until the connection was closed.
      storage.discard(ending.body)
      if let partialBody = ending.partialBody { leave(partialBody, of: record) }
      counts.transfersFailed += 1
      _ = scheduler.end(job)
      jobs[job] = nil
      return
    }
    keep(ending.partialBody, for: record)
    if ending.isRangeMismatch {
      counts.transfersFailed += 1
      return send(job, record, goingOnFrom: nil)
    }
    switch ending.outcome {
    case .failure(let error):
      storage.discard(ending.body)
      counts.transfersFailed += 1
      let isForNoPlace = error.kind == .aborted
      switch ending.body {
      case _ where ending.isRefused: failed(job, record, .unknownFormat)
      case .failed(let error) where isForNoPlace: failed(job, record, LoadError(error))
      default: failed(job, record, LoadError(error))
      }
    case .success(let summary):
      answered(job, record, summary, ending)
    }
  }

  /// Reports the outcome to the scheduler, and ends the jobs that wait for an origin that turns out to be down.
  private func note(_ outcome: Result<TransferSummary, TransferError>, by job: JobID) {
    guard let record = jobs[job] else { return }
    var signal = TransferSignal(outcome, now: storage.now())
    var isHTTP2 = false
    if case .success(let summary) = outcome {
      if summary.redirects > 0, let last = try? ResourceURL(summary.head.finalURL).origin,
        last != record.first.request.origin
      {
        if signal != .answered { scheduler.note(signal, at: last, now: .now, random: &random) }
        signal = .answered
      } else {
        isHTTP2 = summary.head.httpVersion == "2"
      }
    }
    let waiting = scheduler.note(
      signal, by: job, isHTTP2: isHTTP2, error: Self.downError(of: outcome, now: storage.now()), now: .now,
      random: &random
    ) { jobs[$0]?.download?.isAnswered ?? false }
    if let error = scheduler.originFailure(of: job) { endAll(waiting, at: record.first.request.origin, error) }
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
  func lookUpNames() {
    for (id, origin) in scheduler.takeNamesToAsk() {
      transport.lookUp(origin) { resolution in
        LoadingActor.run { [weak self] in self?.lookedUp(id, origin, resolution) }
      }
    }
  }

  private func lookedUp(_ id: OriginID, _ origin: Origin, _ resolution: NameResolution) {
    guard resolution.outcome == .unanswered else { return scheduler.nameFound(id, after: resolution.duration) }
    var error = LoadError(.resolve, "no name server answered for \(origin.host)")
    error.isOriginDown = true
    let waiting = scheduler.nameUnanswered(id, error: error, now: .now, random: &random)
    if !waiting.isEmpty { endAll(waiting, at: origin, error) }
  }

  /// Ends the jobs and prefetch items that wait for an origin that is down.
  private func endAll(_ waiting: [JobID], at origin: Origin, _ error: LoadError) {
    // Prefetches first, so that none of their items takes the place of a job that is about to end.
    for prefetch in prefetches.values { prefetch.originDown(origin, error) }
    for job in waiting { endAtDownOrigin(job) }
  }

  /// Ends a job that waits for an origin that is down.
  func endAtDownOrigin(_ id: JobID) {
    guard let record = jobs[id], let job = scheduler.job(id), var error = scheduler.originFailure(of: id) else {
      return
    }
    error.attempts = max(1, job.attempt - 1)
    giveUp(id, record, error)
  }

  /// Reports the first byte of a response to the scheduler.
  private func firstByteReceived(_ job: JobID) {
    guard let record = jobs[job], record.transfer != nil else { return }
    _ = scheduler.note(.answered, by: job, now: .now, random: &random)
  }

  /// Whether the response comes from the URL that the conditions apply to, and not from another URL of a redirect
  /// chain.
  private func isAsked(about revalidationTarget: Candidate, _ summary: TransferSummary) -> Bool {
    revalidationTarget.response.finalURL.map { $0 == summary.head.finalURL } ?? (summary.redirects == 0)
  }

  private func answered(_ job: JobID, _ record: JobRecord, _ summary: TransferSummary, _ ending: Download.Outcome) {
    switch summary.head.status {
    case 304 where record.revalidationTarget.map { isAsked(about: $0, summary) } ?? false:
      counts.transfersSucceeded += 1
      notModified(job, record, summary)
    case 200..<300:
      if ending.isRefused {
        storage.discard(ending.body)
        counts.transfersFailed += 1
        return failed(job, record, .unknownFormat)
      }
      if case .failed(let error) = ending.body {
        counts.transfersFailed += 1
        return failed(job, record, LoadError(error))
      }
      counts.transfersSucceeded += 1
      arrived(job, record, summary, ending)
    default:
      counts.transfersFailed += 1
      failed(job, record, LoadError(summary.head, now: storage.now()))
    }
  }
}
