internal import HTTPCaching
internal import ImageStore

/// The first station of a load: memory.
extension Loader {
  /// What memory has for a load, where that is all it takes: it is fresh, the same for all who ask, and to be had
  /// without a word to the disk's thread. Data are for `submit` while nobody reads.
  ///
  /// Nothing remains of a load that was answered here: it had no name, and nobody can ask for it. One that was not is
  /// for `submit`.
  public func serveFromMemory(_ request: LoadRequest) -> LoadedImage? {
    guard request.fields.arePlain, request.cacheMode.servesFresh else { return nil }
    if isOutputStuck, request.delivery == .data { return nil }
    applyPeerInvalidations()
    guard let entry = onlyEntry(for: request) else { return nil }
    let response = entry.response
    guard request.accepts(response), request.processing?.step(for: response) == nil, isPlainlyFresh(response),
      let delivered = deliverAtOnce(response, entry.bytes, in: .memory, DeliveryPlan(request))
    else { return nil }
    clearSlot(for: request)
    let image = image(for: request, response, delivered, as: .memory)
    count(image)
    return image
  }

  /// What memory has to answer with, if there is no choice.
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

  /// Cancels what the request's slot is no longer for. All in a slot are for one image.
  func clearSlot(for request: LoadRequest) {
    guard let slot = request.slot, let some = index.someLoad(slot: slot),
      loads[some]?.request.namesImage(of: request) != true
    else { return }
    for other in index.loads(slot: slot) { cancel(other) }
  }
}

extension CacheMode {
  /// Whether what is fresh is served without a question.
  fileprivate var servesFresh: Bool { self == .default || self == .forceCache || self == .onlyIfCached }
}
