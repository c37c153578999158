internal import HTTPTypes
internal import ImageStore
internal import Threads

/// The loader as its components see it.
extension Loader: JobClient, DeliveryClient {
  func activeLoad(_ id: LoadID) -> ActiveLoad? { registry[id] }

  func revalidateInBackground(_ request: LoadRequest) {
    submit(request, as: makeID(), for: DiscardingObserver.shared, isInternal: true, place: nil)
  }

  func originDown(_ origin: Origin, _ error: LoadError) {
    for prefetch in registry.allPrefetches { prefetch.originDown(origin, error) }
  }

  func end(_ load: ActiveLoad, _ result: Result<LoadedImage, LoadError>) { finish(load.id, result) }

  func join(_ load: ActiveLoad) { jobs.join(load) }

  func unsubscribe(_ load: ActiveLoad) { jobs.unsubscribe(load) }

  func process(
    _ candidate: Candidate, for load: ActiveLoad, _ step: DecodePlan.Step, as status: CacheStatus,
    at stage: DeliveryStage, isUrgent: Bool
  ) {
    decodes.process(candidate, for: load, step, as: status, at: stage, isUrgent: isUrgent)
  }

  func boostCachedEvent(of load: ActiveLoad, until limit: ContinuousClock.Instant) {
    decodes.boostCachedEvent(of: load.id, until: limit)
  }
}

/// The cache as the decodes and deliveries see it.
extension Loader: DecodeCache, DeliveryCache {
  var clearCount: UInt64 { peers.clearCount }

  var largestInMemory: Int64 { cache.largestInMemory }

  func variantInMemory(of original: Candidate, named name: String) -> Candidate? {
    cache.variantInMemory(of: original, named: name)
  }

  func noteMetadata(of candidate: Candidate) { cache.updateMetadata(of: candidate) }

  func forgetFile(of response: StoredResponse) { cache.removeFile(of: response) }

  func promote(_ response: StoredResponse, _ bytes: [UInt8]) {
    applyPeerInvalidations()
    cache.promote(response, bytes: bytes)
  }

  func removeDamaged(_ key: String) { cache.removeFromMemory(key) }

  func markCleared(_ candidate: inout Candidate) { cache.mark(&candidate) }

  @discardableResult
  func remember(_ response: StoredResponse, _ bytes: [UInt8]?) -> Bool { cache.remember(response, bytes) }
}
