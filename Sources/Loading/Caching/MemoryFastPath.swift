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
    guard request.fields.arePlain, request.cacheMode.servesFresh else { return nil }
    if isOutputStuck, request.delivery == .data { return nil }
    applyPeerInvalidations()
    guard let entry = onlyEntry(for: request) else { return nil }
    let response = entry.response
    guard request.accepts(response), request.processing?.step(for: response) == nil, isPlainlyFresh(response),
      let delivered = deliveries.deliverAtOnce(response, entry.bytes, in: .memory, DeliveryPlan(request))
    else { return nil }
    clearSlot(for: request)
    let image = LoadedImage(response, delivered, for: request, as: .memory, now: storage.now())
    count(image)
    return image
  }

  /// The only entry in memory that can answer the request; nil if there are several or none.
  private func onlyEntry(for request: LoadRequest) -> MemoryTier.Entry? {
    if isBeingPut(request.key) { return nil }
    let found = memory.look(up: request.key, partition: CachePartition.partition(of: request), variant: request.variant)
    guard found.count == 1, let only = found.first else { return nil }
    let isOfAnother = !request.variant.isEmpty && memory.hasReplacement(forOriginalOf: only.response)
    return isOfAnother ? nil : only
  }

  private func isPlainlyFresh(_ response: StoredResponse) -> Bool {
    policy.isPlainlyFresh(
      freshUntil: response.expiresAt, headers: response.headers, responseTime: response.responseTime,
      now: storage.now())
  }

  /// Cancels the loads in the request's slot if they are for another image. All loads in a slot are for one image.
  func clearSlot(for request: LoadRequest) {
    guard let slot = request.slot, let some = index.someLoad(slot: slot),
      loads[some]?.request.namesImage(of: request) != true
    else { return }
    for other in index.loads(slot: slot) { cancel(other) }
  }
}

extension CacheMode {
  /// Whether a fresh response is served without revalidation.
  fileprivate var servesFresh: Bool { self == .default || self == .forceCache || self == .onlyIfCached }
}
