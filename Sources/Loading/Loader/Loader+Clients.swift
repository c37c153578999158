internal import HTTPTypes
internal import Platform

/// The loader as its components see it.
extension Loader: DeliveryClient {
  func activeLoad(_ id: LoadID) -> ActiveLoad? { registry[id] }

  /// Submits a load that no host waits for.
  func submitInBackground(_ request: LoadRequest) {
    submit(request, as: makeID(), for: DiscardingObserver.shared, requester: .revalidation, place: nil)
  }

  /// Fails the prefetch items that wait for an origin that is down.
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

  func boostCachedEvent(of load: ActiveLoad, until limit: Instant) {
    decodes.boostCachedEvent(of: load.id, until: limit)
  }
}
