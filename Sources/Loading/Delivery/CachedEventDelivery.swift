/// The `cached` event of `refresh`, which precedes the answer.
///
/// The cached image may have to be read or decoded first, and the answer may be ready earlier. The answer then waits,
/// and the event is processed as urgent. The event is dropped if the cached image turns out to be missing or damaged,
/// if it takes too long, if the deadline passes, or if it would consist of pixels.
extension Loader {
  /// The maximum wait of an answer for the event. Shorter than the lifetime of the answer's file before it is
  /// delivered.
  private static let longestWait = Duration.seconds(30)

  /// Sends the `cached` event, once per load, from the tier that is found first.
  func show(_ candidate: Candidate, to load: ActiveLoad, as status: CacheStatus) {
    guard !load.hasShownCached else { return }
    load.hasShownCached = true
    // No one would release the pixels of an event.
    if load.request.processing?.deliversPixels == true { return }
    load.showing = ActiveLoad.Showing()
    deliver(candidate, to: load, as: status, at: .cachedEvent)
  }

  /// Ends the wait for the `cached` event, and with it the load if its answer is ready.
  func endShowing(of load: ActiveLoad) {
    guard let showing = load.showing.take(), let end = showing.end else { return }
    // The host receives the path only now.
    if case .success(let image) = end, let path = image.path { storage.markDelivered(path) }
    finish(load.id, end)
  }

  /// Delivers the answer of a load or its `cached` event.
  func complete(_ load: ActiveLoad, _ result: Result<LoadedImage, LoadError>, at stage: DeliveryStage) {
    if stage == .answer { return answer(load.id, result) }
    if case .success(let image) = result {
      if isOutputStuck, image.data != nil {
        return deferCompletion(load) { $0.complete(load, result, at: .cachedEvent) }
      }
      load.emit(.cached(image))
    }
    endShowing(of: load)
  }

  /// Finishes a load, after its pending `cached` event if there is one. The load takes no part in anything else from
  /// here on.
  func answer(_ id: LoadID, _ result: Result<LoadedImage, LoadError>) {
    guard let load = loads[id], let showing = load.showing else {
      finish(id, result)
      return
    }
    showing.end = result
    unsubscribe(load)
    decodes.boostCachedEvent(of: id, until: .now + Self.longestWait)
  }
}
