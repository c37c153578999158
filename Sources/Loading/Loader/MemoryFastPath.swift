internal import HTTPCaching
internal import ImageStore

/// The memory fast path: answers a load without creating one.
extension Loader {
  /// Answers a request from the memory tier, or returns nil if `submit` must handle it. Serves only a fresh response
  /// that does not depend on request headers and needs no work on the disk thread. Image data is left to `submit` while
  /// the output is stuck.
  ///
  /// A load that is answered here has no ID, so it cannot be cancelled or prioritized.
  public func serveFromMemory(_ request: LoadRequest) -> LoadedImage? {
    guard request.fields.arePlain, request.cacheMode.servesFresh, request.want == nil, request.cachedFile == nil
    else { return nil }
    if isOutputStuck, request.delivery == .data { return nil }
    applyPeerInvalidations()
    guard let entry = cache.onlyEntry(for: request) else { return nil }
    let response = entry.response
    guard request.accepts(response), request.processing?.step(for: response) == nil, cache.isPlainlyFresh(response),
      let delivered = deliveries.deliverAtOnce(response, entry.bytes, in: .memory, DeliveryPlan(request))
    else { return nil }
    cancelReplaced(by: request)
    let image = LoadedImage(response, delivered, for: request, as: .memory, now: storage.now())
    observation.recordMemoryHit(byteCount: image.content.byteCount)
    return image
  }
}

extension CacheMode {
  /// Whether a fresh response is served without revalidation.
  fileprivate var servesFresh: Bool { self == .default || self == .forceCache || self == .onlyIfCached }
}
