internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageStore
internal import Threads

/// One coalesced transfer, from the cache lookup to the last answer: what is asked, what is known of it, and what
/// follows from each event. It does nothing itself; `JobCoordinator.perform` carries out the actions.
///
/// Where it stands, its attempts and its loads are the subject of `Scheduler.Job`.
@LoadingActor
final class Job {
  /// The work of the current attempt.
  enum Attempt {
    /// No attempt has a permit, or the last one has ended.
    case none
    /// The disk thread looks for a partial body of an earlier load.
    case resuming
    case transferring(TransferID, Download)
  }

  /// The effects of loads that need only the header of the image.
  struct Probe {
    /// Whether the first bytes alone were requested: tried once per job.
    fileprivate(set) var hasRequestedStart = false
    /// Whether such a load was answered from the first bytes of the body: a load of the image may follow.
    fileprivate(set) var isAnswered = false
    /// Whether loads of the image wait until the job has retained its partial body.
    fileprivate(set) var hasPromisedPartialBody = false
  }

  /// The load that created the job. Its request is the one that is sent; all loads that join agree with it in that.
  nonisolated let first: ActiveLoad
  private(set) var current = Attempt.none
  /// The stored responses for the key; nil until the cache lookup finishes.
  private(set) var candidates: [Candidate]?
  /// The transform variants that the last lookup included.
  private(set) var lookedUpVariants: Set<String> = []
  /// Whether the job was found to have missed a response.
  private var hasMissedOne = false
  /// The index of the candidate that the transfer revalidates, and the conditional request fields for that.
  private(set) var revalidationTargetIndex: Int?
  private(set) var conditions = HeaderFields()
  /// False after a matching clear or a host store: the result is delivered, but not cached.
  private(set) var mayKeep = true
  /// Whether the disk tier may have a partial body of an earlier load.
  private(set) var mayResume = false
  /// The partial body of the previous attempt, until the next attempt starts.
  private(set) var partialBody: PartialBody?
  /// Whether an attempt has timed out: the open connections may be dead.
  private(set) var needsFreshConnection = false
  /// The error of the last attempt.
  private(set) var failure: LoadError?
  /// The part in single flight across processes; nil if the job takes none.
  var claim: PeerClaim?
  private(set) var probe = Probe()
  /// Whether the site allows the transfer.
  var isPermitted = false
  /// The clears so far by all workers of the directory, when the first attempt started.
  private(set) var clearCount: UInt64?
  /// Set while the content of a file of the host is read: true tells the disk thread that no load waits for it.
  var hasEnded: Locked<Bool>?

  init(first: ActiveLoad) { self.first = first }

  nonisolated var request: LoadRequest { first.request }
  nonisolated var requestIdentity: RequestIdentity { request.identity(in: first.partition) }
  nonisolated var identity: CacheIdentity { CacheIdentity(key: first.request.key, partition: first.partition) }

  /// The running transfer.
  var transfer: TransferID? { if case .transferring(let id, _) = current { id } else { nil } }
  var download: Download? { if case .transferring(_, let download) = current { download } else { nil } }

  /// The stored response that the transfer revalidates.
  var revalidationTarget: Candidate? { revalidationTargetIndex.flatMap { candidates?[$0] } }

  // MARK: - The cache lookup

  func lookupStarted(for variants: Set<String>) { lookedUpVariants = variants }

  /// - Returns: whether the job takes the candidates. A transfer that has started during a repeated lookup keeps those
  ///   that it started with.
  func lookupFinished(_ found: [Candidate], hasPartial: Bool) -> Bool {
    if hasPartial { mayResume = true }
    guard case .none = current else { return false }
    candidates = found
    return true
  }

  /// Whether there are responses that the lookup did not find, or did not find as they are now. True at most once,
  /// since a later lookup may leave out what is in memory, such as a variant of an original that has been replaced on
  /// disk.
  func hasMissed(_ known: [Candidate]) -> Bool {
    guard !hasMissedOne else { return false }
    hasMissedOne = known.contains { new in candidates?.contains { $0.isUnchanged(in: new) } != true }
    return hasMissedOne
  }

  /// Drops the bytes of the candidates that are on disk, since the job may wait for hours.
  func releaseBytes(_ withoutBytes: (Candidate) -> Candidate) {
    candidates = candidates?.map { $0.response.isOnDisk ? withoutBytes($0) : $0 }
  }

  /// Sets what the next transfer asks: for a confirmation of a candidate, or without a target, for a new response.
  func setConditions(_ conditions: HeaderFields, target: Int?) {
    (self.conditions, revalidationTargetIndex) = (conditions, target)
  }

  /// Removes the conditions: the server has another response by now, so the stored one is not revalidated.
  func dropConditions() {
    revalidationTargetIndex = nil
    conditions.remove("if-none-match")
    conditions.remove("if-modified-since")
  }

  // MARK: - Attempts

  enum Start {
    /// Look for a partial body of an earlier load first. Tried once per job.
    case resume
    case transfer
  }

  /// - Parameter mayUseDisk: whether the response may be stored on disk and the cache is not bypassed. Otherwise the
  ///   transfer starts from the beginning. A stored response is revalidated instead of a partial body resumed.
  func permitGranted(clearCount: UInt64, mayUseDisk: Bool) -> Start {
    guard case .none = current else { preconditionFailure("a job has one permit at a time") }
    self.clearCount = self.clearCount ?? clearCount
    if mayResume, mayUseDisk, partialBody == nil, revalidationTargetIndex == nil {
      mayResume = false
      current = .resuming
      return .resume
    }
    return .transfer
  }

  /// An earlier load has left a partial body since the job looked for one.
  func partialBodyAvailable() { mayResume = true }

  func transferStarted(_ transfer: TransferID, _ download: Download) {
    if case .transferring = current { assertionFailure("a job has one transfer at a time") }
    current = .transferring(transfer, download)
  }

  func startRequested() { probe.hasRequestedStart = true }

  func probeAnswered() { probe.isAnswered = true }

  func partialBodyPromised() { probe.hasPromisedPartialBody = true }

  func keep(_ partialBody: PartialBody) {
    assert(self.partialBody == nil, "a job has one partial body")
    self.partialBody = partialBody
  }

  /// The caller owns the partial body from here on.
  func takePartialBody() -> PartialBody? { partialBody.take() }

  /// Ends a transfer and decides what follows.
  ///
  /// - Parameters:
  ///   - isWanted: whether any load still waits.
  ///   - now: Unix seconds.
  func transferEnded(_ ending: Download.Outcome, isWanted: Bool, now: Int) -> [JobAction] {
    guard case .transferring = current else {
      assertionFailure("a transfer ends once, after it has started")
      return []
    }
    current = .none
    guard isWanted else {
      // All loads have left; the job only kept its permit until the connection was closed.
      let kept = ending.partialBody.map { ending.mayResumeAgain ? [JobAction.retain($0)] : [.discard($0.body)] }
      return [.discard(ending.body)] + (kept ?? []) + (partialBody == nil ? [] : [.dropKept]) + [.end]
    }
    if isRefused(ending) {
      dropConditions()
      probe.hasRequestedStart = true
      // The partial body serves a later attempt if the whole cannot be had now either.
      return [.discard(ending.body)] + (ending.partialBody.map { [.keep($0)] } ?? []) + [.transferWhole]
    }
    var actions: [JobAction] = []
    if self.partialBody != nil, ending.hasUsableHead { actions.append(.dropKept) }
    if let partialBody = ending.partialBody {
      dropConditions()
      actions.append(ending.mayResumeAgain ? .keep(partialBody) : .discard(partialBody.body))
    }
    if ending.isStart, ending.contentError == nil { return actions + [.discard(ending.body), .transferRest] }
    switch ending.outcome {
    case .failure(let error):
      actions.append(.discard(ending.body))
      if let contentError = ending.contentError {
        actions.append(.attemptFailed(contentError))
      } else if case .failed(let storeError) = ending.body, error.kind == .aborted {
        actions.append(.attemptFailed(LoadError(storeError)))
      } else {
        actions.append(.attemptFailed(LoadError(error)))
      }
    case .success(let summary): actions += answered(summary, ending, now: now)
    }
    return actions
  }

  /// Whether the outcome says nothing about the image, because it may be due to what the worker added to the request.
  /// The request is then sent as the host wants it, in the same attempt, and only that outcome counts.
  func isRefused(_ ending: Download.Outcome) -> Bool {
    guard ending.hadRange || hasConditions, ending.mayBeDueToAddedFields else { return false }
    if case .success(let summary) = ending.outcome, isConfirmed(by: summary) { return false }
    return true
  }

  /// Whether the next transfer asks for a confirmation of a stored response.
  private var hasConditions: Bool { conditions["if-none-match"] != nil || conditions["if-modified-since"] != nil }

  /// Whether the answer confirms the stored response that was to be revalidated.
  private func isConfirmed(by summary: TransferSummary) -> Bool {
    summary.head.status == 304 && revalidationTarget?.isAsked(about: summary) == true
  }

  private func answered(_ summary: TransferSummary, _ ending: Download.Outcome, now: Int) -> [JobAction] {
    switch summary.head.status {
    case 304 where isConfirmed(by: summary): return [.confirm(summary)]
    case 200..<300:
      if let error = ending.contentError { return [.discard(ending.body), .attemptFailed(error)] }
      if case .failed(let error) = ending.body { return [.attemptFailed(LoadError(error))] }
      return [.store(summary, ending)]
    default: return [.attemptFailed(LoadError(summary.head, now: now))]
    }
  }

  /// Records a failed attempt. Peers may transfer the image from here on.
  func attemptFailed(_ error: LoadError) {
    _ = claim?.takeLease()
    failure = error
    if error.kind == .timeout { needsFreshConnection = true }
  }

  // MARK: - Invalidation

  /// The job's response is not cached: a host store has replaced the image, or its file may be written at this moment.
  func superseded() { mayKeep = false }

  /// Applies a clear.
  ///
  /// - Parameters:
  ///   - matches: whether the response to the request will match the filter.
  ///   - isQueued: whether the job is in the queue, and so has not started or will start again.
  func invalidated(by clear: Clear, matches: Bool, isQueued: Bool) -> [JobAction] {
    let hadCandidate = candidates?.contains { clear.matches($0.response) } ?? false
    if hadCandidate { for index in candidates!.indices { candidates![index].mark(clear) } }
    if matches, !isQueued {
      mayKeep = false
      // Peers transfer it again too: they must not wait for this response.
      claim?.abandonLease()
      return [.detach]
    }
    var actions: [JobAction] = []
    // The result is newer than the clear and may be cached, but the partial body is older.
    if matches, partialBody != nil { actions.append(.dropKept) }
    // The candidates found before the clear must not serve later loads.
    if hadCandidate { actions.append(.detach) }
    // The stored response is gone, so there is nothing to revalidate.
    if isQueued, revalidationTarget?.retention == .cleared { dropConditions() }
    return actions
  }

  // MARK: - The response

  /// Whether the response to the request that was sent also answers the load, by its Vary (RFC 9111 section 4.1). The
  /// loads of a job differ only in headers that do not affect the image: Vary may name such a header, but `*` does not
  /// refer to them.
  func isAnswered(_ load: ActiveLoad, by response: CachedResponse) -> Bool {
    load === first || load.request.headers == first.request.headers || Vary.matches(response, load.request.headers)
      || Vary.selectingFields(of: response.headers, from: [:]) == nil
  }

  /// Whether a response that must not be stored invalidates the stored one: a 200 shows that the stored one is out of
  /// date (RFC 9111 section 4.3.3).
  func invalidatesStored(_ response: StoredResponse) -> Bool {
    response.status == 200 && !request.mayStore(status: 200, headers: response.headers) && request.letsKeep
  }

  /// Whether a partial body may stay on disk for a later load.
  func mayRetain(_ partialBody: PartialBody) -> Bool {
    mayKeep && request.mayStore(status: 200, headers: partialBody.response.headers)
  }
}

/// An action that a job requires after an event.
enum JobAction {
  /// Discards the body of a transfer.
  case discard(Download.Body)
  /// Keeps a partial body for the next attempt, if the budget allows.
  case keep(PartialBody)
  /// Discards the partial body that the job keeps.
  case dropKept
  /// Retains a partial body on disk for a later load, if it may stay there.
  case retain(PartialBody)
  /// Sends the request of this attempt again, without what the worker had added to it.
  case transferWhole
  /// Sends the request of this attempt again, for what is missing.
  case transferRest
  /// Applies a 304 to the stored response and serves it.
  case confirm(TransferSummary)
  /// Stores the body and serves the loads.
  case store(TransferSummary, Download.Outcome)
  /// Retries, or ends the loads with the error.
  case attemptFailed(LoadError)
  /// Closes the job to further loads.
  case detach
  /// Removes the job, which no load waits for.
  case end
}

extension Candidate {
  /// Whether the other candidate has the same response, which has not been revalidated since.
  fileprivate func isUnchanged(in other: Candidate) -> Bool {
    response.id == other.response.id && response.responseTime == other.response.responseTime
      && response.content.digest == other.response.content.digest
  }

  /// Whether the response comes from the URL that the conditions apply to, and not from another URL of a redirect
  /// chain.
  fileprivate func isAsked(about summary: TransferSummary) -> Bool {
    response.finalURL.map { $0 == summary.head.finalURL } ?? (summary.redirects == 0)
  }
}
