internal import HTTPTransport
internal import ImageStore
internal import Threads

/// The loader as its components see it.
extension Loader: DecodeClient, PreviewClient {
  func activeLoad(_ id: LoadID) -> ActiveLoad? { loads[id] }

  func lostSource(for load: ActiveLoad, at stage: DeliveryStage) {
    switch stage {
    case .answer: join(load)
    case .cachedEvent: endShowing(of: load)
    }
  }

  func deadlinePassed(for load: ActiveLoad) {
    if load.showing?.end != nil {
      endShowing(of: load)
    } else {
      finish(load.id, .failure(LoadError.timeout(.deadline, "the deadline passed")))
    }
  }

  func transfer(of job: JobID) -> TransferID? { jobs[job]?.transfer }

  func priority(of job: JobID) -> Priority? { scheduler.job(job)?.priority }

  func loads(of job: JobID, awaitingPreviewOf scans: Int) -> [ActiveLoad] {
    scheduler.subscribers(of: job).compactMap { loads[$0] }.filter { $0.awaitsPreview(of: scans) }
  }
}

/// The cache as the loader's components see it.
extension Loader: DecodeCache {
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

  func markCleared(_ candidate: inout Candidate) { pendingInvalidations.mark(&candidate) }
}
