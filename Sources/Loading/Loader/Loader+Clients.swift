internal import HTTPTransport
internal import ImageStore
internal import Text
internal import Threads

/// The loader as its components see it.
extension Loader: DeliveryClient, PreviewClient {
  func activeLoad(_ id: LoadID) -> ActiveLoad? { loads[id] }

  func end(_ load: ActiveLoad, _ result: Result<LoadedImage, LoadError>) { finish(load.id, result) }

  /// Answers a load if it is still active.
  func answer(_ id: LoadID, _ result: Result<LoadedImage, LoadError>) {
    if let load = loads[id] { deliveries.complete(load, result, at: .answer) }
  }

  /// Delivers the answer of a load.
  func deliver(_ candidate: Candidate, to load: ActiveLoad, as status: CacheStatus) {
    deliveries.deliver(candidate, to: load, as: status, at: .answer)
  }

  func process(
    _ candidate: Candidate, for load: ActiveLoad, _ step: DecodePlan.Step, as status: CacheStatus,
    at stage: DeliveryStage, isUrgent: Bool
  ) {
    decodes.process(candidate, for: load, step, as: status, at: stage, isUrgent: isUrgent)
  }

  func boostCachedEvent(of load: ActiveLoad, until limit: ContinuousClock.Instant) {
    decodes.boostCachedEvent(of: load.id, until: limit)
  }

  func transfer(of job: JobID) -> TransferID? { jobs[job]?.transfer }

  func priority(of job: JobID) -> Priority? { scheduler.job(job)?.priority }

  func loads(of job: JobID, awaitingPreviewOf scans: Int) -> [ActiveLoad] {
    scheduler.subscribers(of: job).compactMap { loads[$0] }.filter { $0.awaitsPreview(of: scans) }
  }
}

/// The cache as the loader's components see it.
extension Loader: DecodeCache, DeliveryCache {
  var largestInMemory: Int64 { memory.largestEntry }

  func variantInMemory(of original: Candidate, named name: String) -> Candidate? {
    guard !original.isTransient else { return nil }
    let response = original.response
    return memory.peek(at: response.key, partition: response.partition, variant: name)
      .first { $0.response.sharesOriginal(with: response) }.map(Candidate.init(inMemory:))
  }

  func noteMetadata(of candidate: Candidate) {
    let response = candidate.response
    memory.recordMetadata(of: response)
    guard let tier = storage.tier(of: candidate) else { return }
    storage.executor.run { tier.assumeIsolated { $0.recordMetadata(of: response) } }
  }

  func forgetFile(of response: StoredResponse) { memory.recordMissingFile(of: response) }

  func promote(_ response: StoredResponse, _ bytes: [UInt8]) {
    applyPeerInvalidations()
    guard !pendingInvalidations.reach(response) else { return }
    memory.promote(response, bytes: bytes)
    for update in pendingRevalidations.values where update.key.hasSameBytes(as: response.key) { memory.update(update) }
  }

  func removeDamaged(_ key: String) { _ = memory.clear(.key(key), now: storage.now()) }

  func markCleared(_ candidate: inout Candidate) { pendingInvalidations.mark(&candidate) }
}
