/// The `cached` event of `refresh`, which comes before the answer.
///
/// What is cached may have to be read first, or decoded, and the answer may be there earlier. Then it waits for the
/// event, which goes first now. There is no event if what is cached turns out to be gone or damaged, if it takes too
/// long or the deadline passes, nor of pixels.
extension Loader {
  /// How long an answer waits for the event: less than its file stays without it.
  private static let longestWait = Duration.seconds(30)

  /// Shows what is cached: once, whatever tier has it first.
  func show(_ candidate: Candidate, to load: ActiveLoad, as status: CacheStatus) {
    guard !load.hasShownCached else { return }
    load.hasShownCached = true
    // Nobody would release the pixels of an event.
    if load.request.processing?.deliversPixels == true { return }
    load.showing = ActiveLoad.Showing()
    deliver(candidate, to: load, as: status, isFinal: false)
  }

  /// What is cached has been shown, or cannot be: nothing waits for it any more.
  func endShowing(of load: ActiveLoad) {
    guard let showing = load.showing.take(), let end = showing.end else { return }
    // The host has the path from now on only.
    if case .success(let image) = end, let path = image.path { storage.markDelivered(path) }
    finish(load.id, end)
  }

  /// Tells a load its end, or what is cached.
  func complete(_ load: ActiveLoad, _ result: Result<LoadedImage, LoadError>, isFinal: Bool) {
    if isFinal { return answer(load.id, result) }
    if case .success(let image) = result {
      if isOutputStuck, image.data != nil {
        return deferCompletion(load) { $0.complete(load, result, isFinal: false) }
      }
      load.emit(.cached(image))
    }
    endShowing(of: load)
  }

  /// Tells a load its end, once it has been shown what is cached. It takes no part in anything else from here on.
  func answer(_ id: LoadID, _ result: Result<LoadedImage, LoadError>) {
    guard let load = loads[id], let showing = load.showing else {
      finish(id, result)
      return
    }
    showing.end = result
    unsubscribe(load)
    decodeDeadlines.add(id, at: CompactInstant(.now + Self.longestWait))
    if let change = decodes.boost(whatIsShownTo: id) { carryOut([change]) }
  }
}
