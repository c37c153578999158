internal import ImageCodec
internal import ImageStore
internal import Platform
internal import Threads
internal import Tracing

/// Completes a decode with the output of the decoder.
extension DecodeCoordinator {
  /// Merges the result of a check, facts or a placeholder into the cached metadata and continues the loads.
  func merge(_ decoded: Decoded, of id: DecodeCoalescer.ID, _ decode: ActiveDecode) {
    let found = DecodeMetadata(
      source: decode.candidate.response.metadata?.source,
      placeholder: decoded.placeholder, isChecked: decode.step == .check,
      notes: decoded.notes, facts: decoded.facts)
    let candidate = adding(found, of: decode.candidate)
    decode.keepFile()
    proceed(id, with: candidate)
  }

  /// Merges metadata into that of a stored image, in the candidate and in the cache.
  func adding(_ found: DecodeMetadata, of candidate: Candidate) -> Candidate {
    var candidate = candidate
    candidate.response.metadata = candidate.response.metadata?.adding(found) ?? found
    if !candidate.isTransient { cache.updateMetadata(of: candidate) }
    return candidate
  }

  /// Adds the facts of an original to a stored variant of it, which may have been made before they were known.
  func withFacts(of original: Candidate, _ variant: Candidate) -> Candidate {
    let known = variant.response.metadata?.facts.known ?? []
    guard let facts = original.response.metadata?.facts, !facts.known.isSubset(of: known) else { return variant }
    return adding(DecodeMetadata(facts: facts), of: variant)
  }

  /// Returns the original of a variant or of pixels, after recording what the decoder has found about it.
  private func originalDecoded(_ decoded: Decoded, _ decode: ActiveDecode) -> StoredResponse {
    let original = decode.candidate
    let known = original.response.metadata?.notes ?? []
    guard !decoded.notes.isSubset(of: known) else { return original.response }
    return adding(DecodeMetadata(notes: decoded.notes), of: original).response
  }

  // MARK: - Variants

  /// Stores a new variant and serves the loads that wait for it.
  func keep(_ decoded: Decoded, at path: String, of id: DecodeCoalescer.ID, _ decode: ActiveDecode) {
    let original = originalDecoded(decoded, decode)
    var draft = original
    (draft.id, draft.variant, draft.content) = (0, decode.transform?.canonical ?? "", ImageDescription())
    draft.metadata = DecodeMetadata(
      source: original.content,
      placeholder: decoded.placeholder,
      isChecked: original.metadata?.isChecked == true,
      notes: original.metadata?.notes ?? [], facts: original.metadata?.facts ?? .init())
    let waiters = waiters(for: id)
    var tiers: LoadRequest.Tiers = []
    if !decode.candidate.isTransient {
      for waiter in waiters { tiers.formUnion(waiter.load.request.store) }
    }
    // A load that waits for both stages is served once, as for its answer.
    let stages = Dictionary(waiters.map { ($0.load.id, $0.stage) }, uniquingKeysWith: max)
    let served = waiters.filter { stages[$0.load.id] == $0.stage }
    let operation = StoreOperation(
      body: .bytes([]), format: decoded.format, draft: draft, tiers: tiers,
      largestInMemory: cache.largestInMemory, needsSize: true, clearCount: decode.clearCount,
      deliveries: served.map { ($0.load.id, nil, DeliveryPlan($0.load.request, at: $0.stage)) })
    let subscriptions = Set(waiters.map(\.subscription))
    let now = Instant.now
    for waiter in waiters where waiter.stage == .answer { waiter.load.timeline.enter(.deliver, at: now) }
    storage.perform(.keepVariant, { [storage] in operation.storing(fileAt: path, in: storage) }) {
      [weak self] outcome in
      self?.kept(id, outcome, tiers, servedIn: subscriptions)
    }
  }

  /// - Parameter subscriptions: those served by the store operation. Loads that subscribed in the meantime are not
  ///   among them.
  private func kept(
    _ id: DecodeCoalescer.ID, _ outcome: StoreOperation.Outcome, _ tiers: LoadRequest.Tiers,
    servedIn subscriptions: Set<DecodeCoalescer.Subscription>
  ) {
    cache.applyPeerInvalidations()
    guard let decode = decodes[id] else { return }
    switch outcome {
    case .failure(let error): fail(id, error)
    case .success(let stored):
      var variant = Candidate(
        response: stored.response, bytes: stored.bytes, location: stored.response.isOnDisk ? .disk : .memory)
      variant.retention = decode.candidate.retention
      cache.mark(&variant)
      if !tiers.isEmpty, !variant.isTransient, !stored.isOutdated {
        cache.remember(variant.response, tiers.contains(.memory) ? stored.bytes : nil)
      }
      for waiter in end(id) {
        let (load, stage) = (waiter.load, waiter.stage)
        if !stored.isKept, load.request.store.contains(.disk) { load.isKept = false }
        if subscriptions.contains(waiter.subscription), let result = stored.delivered[load.id],
          load.request.processing?.step(for: variant.response) == nil
        {
          client?.complete(load, result.map { image(for: waiter, variant.response, $0) }, at: stage)
        } else if stored.bytes != nil || variant.response.isOnDisk {
          client?.deliver(variant, to: load, as: waiter.status, at: stage)
        } else {
          // The load subscribed while an uncacheable variant was being delivered to the others.
          client?.lostSource(for: load, at: stage)
        }
      }
    }
  }

  private func image(
    for waiter: Waiter, _ response: StoredResponse,
    _ content: DeliveryPlan.DeliveredContent = DeliveryPlan.DeliveredContent()
  ) -> LoadedImage {
    LoadedImage(response, content, for: waiter.load, as: waiter.status, now: storage.now())
  }

  // MARK: - Several files

  /// Delivers the files of a set, and what the decode has found, to the loads that wait for them.
  func deliver(
    _ decoded: Decoded, _ set: RenditionSet, at path: String, of id: DecodeCoalescer.ID, _ decode: ActiveDecode
  ) {
    let found = DecodeMetadata(
      source: decode.candidate.response.metadata?.source, placeholder: decoded.placeholder, isChecked: set.checks,
      notes: decoded.notes, facts: decoded.facts)
    let response = adding(found, of: decode.candidate).response
    let waiters = end(id)
    let deliveries = waiters.map { waiter in
      let commitPoint = CommitPoint()
      waiter.load.commitPoint = commitPoint
      return OutputDelivery(
        orders: waiter.load.request.processing?.outputs ?? [], files: decoded.renditions, path: path,
        original: response.content, commitPoint: commitPoint)
    }
    for waiter in waiters { waiter.load.timeline.enter(.deliver, at: .now) }
    let storage = storage
    storage.perform({
      defer { if !set.renditions.isEmpty { remove(fileAt: path) } }
      return set.renditions.isEmpty ? deliveries.map { _ in .success([]) } : deliveries.map { $0.perform(in: storage) }
    }) { [weak self] (results: [Result<[LoadedImage.Output], LoadError>]) in
      for (waiter, result) in zip(waiters, results) {
        let result = result.map { outputs in
          var image = LoadedImage(
            response, DeliveryPlan.DeliveredContent(), for: waiter.load, as: waiter.status, now: storage.now())
          image.outputs = outputs
          return image
        }
        waiter.load.commitPoint = nil
        self?.client?.complete(waiter.load, result, at: waiter.stage)
      }
    }
  }

  // MARK: - Pixels

  /// Delivers pixels to the load that requested them. From here on the host owns them.
  func handOver(_ decoded: Decoded, at path: String, of id: DecodeCoalescer.ID, _ decode: ActiveDecode) {
    let byteCount = Int64(decoded.width * decoded.height * decoded.channels)
    let response = originalDecoded(decoded, decode)
    guard let waiter = end(id).first else { return storage.discard(.pixels(path)) }
    storage.executor.run { [storage] in
      storage.pixels.assumeIsolated { $0.deliver(path, byteCount: byteCount) }
    }
    var image = image(for: waiter, response)
    image.pixels = LoadedImage.Pixels(
      path: path, width: decoded.width, height: decoded.height, channels: decoded.channels, byteCount: byteCount)
    if decode.transform != nil {
      image.source = response.content
      image.content.header = image.content.format.map {
        ImageHeader($0, width: decoded.width, height: decoded.height)
      }
    }
    if waiter.load.request.processing?.wantsPlaceholder == true {
      image.placeholder = decoded.placeholder
    }
    client?.complete(waiter.load, .success(image), at: .answer)
  }
}
