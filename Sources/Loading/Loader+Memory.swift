internal import HTTPCaching
internal import ImageStore

/// The first station of a load: memory.
extension Loader {
  /// What memory has for a load, where that is all it takes: it is fresh, the same for all who ask, and to be had without
  /// a word to the disk's thread.
  ///
  /// Nothing remains of a load that was answered here: it had no name, and nobody can ask for it. One that was not is for
  /// `submit`.
  public func recall(_ request: LoadRequest) -> LoadedImage? {
    guard request.fields.arePlain, request.cacheMode.servesFresh else { return nil }
    heedOthers()
    var found = remembered(request.key, Credentials.partition(of: request), request.variant)
    if !request.variant.isEmpty { found.removeAll { $0.response.variant != request.variant } }
    guard found.count == 1, let candidate = found.first, request.accepts(candidate.response),
      request.processing?.step(for: candidate.response) == nil, isPlainlyFresh(candidate.response),
      let delivered = deliverAtOnce(candidate, Delivery(request))
    else { return nil }
    clearSlot(for: request)
    let image = image(for: request, candidate.response, delivered, as: .memory)
    count(image)
    return image
  }

  private func isPlainlyFresh(_ response: StoredResponse) -> Bool {
    policy.isPlainlyFresh(
      freshUntil: response.expiresAt, headers: response.headers, responseTime: response.responseTime,
      now: storage.now())
  }

  /// Cancels what the request's slot is no longer for.
  func clearSlot(for request: LoadRequest) {
    guard let slot = request.slot else { return }
    for other in index.loads(slot: slot) where loads[other]?.request.namesImage(of: request) != true { cancel(other) }
  }
}

extension CacheMode {
  /// Whether what is fresh is served without a question.
  fileprivate var servesFresh: Bool { self == .default || self == .forceCache || self == .onlyIfCached }
}
