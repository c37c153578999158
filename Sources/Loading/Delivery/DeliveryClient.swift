internal import ImageStore
internal import Platform

/// The loads that get results, as `DeliveryCoordinator` sees them.
@LoadingActor
protocol DeliveryClient: AnyObject {
  /// The load with this ID; nil if it has ended.
  func activeLoad(_ id: LoadID) -> ActiveLoad?
  /// Ends the load.
  func end(_ load: ActiveLoad, _ result: Result<LoadedImage, LoadError>)
  /// Removes a load that is about to end from its job.
  func unsubscribe(_ load: ActiveLoad)
  /// Looks for the image once more, in the cache and then by a transfer.
  func join(_ load: ActiveLoad)
  /// Has a response decoded that cannot be delivered as it is.
  func process(
    _ candidate: Candidate, for load: ActiveLoad, _ step: DecodePlan.Step, as status: CacheStatus,
    at stage: DeliveryStage, isUrgent: Bool)
  /// Hurries a `cached` event for which an answer waits, and reports the deadline of the load at the limit.
  func boostCachedEvent(of load: ActiveLoad, until limit: Instant)
}

/// The cache, as `DeliveryCoordinator` sees it.
@LoadingActor
protocol DeliveryCache: AnyObject {
  /// The largest body that the memory tier takes, in bytes.
  var largestInMemory: Int64 { get }
  /// Stores a response that was read from disk in the memory tier, unless it has been cleared since.
  func promote(_ response: StoredResponse, bytes: [UInt8])
  /// Records in the memory tier that the response has no file any more.
  func removeFile(of response: StoredResponse)
  /// Removes the entries of a key, one of whose files is damaged, from the memory tier.
  func removeFromMemory(_ key: String)
}
