internal import ImageCodec
internal import ImageStore
internal import Threads

/// Handles the output of a decoder.
extension Loader {
  /// Merges the result of a check or a placeholder into the cached metadata and continues the loads.
  func note(_ decoded: Decoded, of id: DecodeCoalescer.ID, _ record: ActiveDecode) {
    let source = record.candidate.response.metadata?.source
    let found = DecodeMetadata(
      source: source, placeholder: decoded.placeholder.map(DecodeMetadata.Placeholder.init),
      isChecked: record.step == .check,
      isDamaged: decoded.isDamaged)
    let candidate = noted(found, of: record.candidate)
    record.keepFile()
    goOn(id, with: candidate)
  }

  /// Merges metadata into that of a stored image, in the candidate and in both tiers.
  private func noted(_ found: DecodeMetadata, of candidate: Candidate) -> Candidate {
    var candidate = candidate
    candidate.response.metadata = candidate.response.metadata?.adding(found) ?? found
    if !candidate.isTransient {
      memory.note(findingsOf: candidate.response)
      if let tier = storage.tier(of: candidate) {
        let response = candidate.response
        storage.executor.run { tier.assumeIsolated { $0.note(findingsOf: response) } }
      }
    }
    return candidate
  }

  /// Returns the original of a variant or of pixels, after recording damage that the decoder reported.
  private func originalDecoded(_ decoded: Decoded, _ record: ActiveDecode) -> StoredResponse {
    let original = record.candidate
    guard decoded.isDamaged, original.response.metadata?.isDamaged != true else { return original.response }
    return noted(DecodeMetadata(isDamaged: true), of: original).response
  }

  // MARK: - Variants

  /// Stores a new variant and serves the loads that wait for it.
  func keep(_ decoded: Decoded, at path: String, of id: DecodeCoalescer.ID, _ record: ActiveDecode) {
    let original = originalDecoded(decoded, record)
    var draft = original
    draft.id = 0
    draft.variant = record.transform?.canonical ?? ""
    draft.digest = []
    draft.orientation = 1
    draft.metadata = DecodeMetadata(
      source: DecodeMetadata.Source(
        digest: original.digest, byteCount: original.byteCount, format: original.format ?? "", width: original.width,
        height: original.height),
      placeholder: decoded.placeholder.map(DecodeMetadata.Placeholder.init),
      isChecked: original.metadata?.isChecked == true,
      isDamaged: original.metadata?.isDamaged == true)
    let subscribers = decodes.subscribers(of: id)
    var places: LoadRequest.Places = []
    if !record.candidate.isTransient {
      for (subscription, _) in subscribers { places.formUnion(loads[subscription.load]?.request.store ?? []) }
    }
    let served = Dictionary(grouping: subscribers.map(\.subscription), by: \.load).compactMap { id, subscriptions in
      loads[id].map { ($0, isFinal: subscriptions.contains(where: \.isFinal)) }
    }
    let operation = StoreOperation(
      body: .bytes([]), format: decoded.format, draft: draft, places: places, largestInMemory: memory.largestEntry,
      needsSize: true, clearCount: record.clearCount,
      deliveries: served.map { ($0.id, nil, DeliveryPlan($0.request, isFinal: $1)) })
    let subscriptions = Set(subscribers.map(\.subscription))
    storage.perform({ [storage] in operation.storing(fileAt: path, in: storage) }) { [weak self] outcome in
      self?.kept(id, outcome, places, servedIn: subscriptions)
    }
  }

  /// - Parameter subscriptions: those served by the store operation. Loads that subscribed in the meantime are not
  ///   among them.
  private func kept(
    _ id: DecodeCoalescer.ID, _ outcome: StoreOperation.Outcome, _ places: LoadRequest.Places,
    servedIn subscriptions: Set<DecodeCoalescer.Subscription>
  ) {
    applyPeerInvalidations()
    guard let record = decodeRecords[id] else { return }
    switch outcome {
    case .failure(let error): failDecode(id, error)
    case .success(let stored):
      var variant = Candidate(
        response: stored.response, bytes: stored.bytes, place: stored.response.isOnDisk ? .disk : .memory)
      variant.retention = record.candidate.retention
      pendingInvalidations.mark(&variant)
      if !places.isEmpty, !variant.isTransient, !stored.isOutdated {
        remember(variant.response, places.contains(.memory) ? stored.bytes : nil)
      }
      for (load, subscriber, isFinal) in endDecode(id) {
        let isServed = subscriptions.contains(DecodeCoalescer.Subscription(load: load.id, isFinal: isFinal))
        if isServed, let result = stored.delivered[load.id],
          load.request.processing?.step(for: variant.response) == nil
        {
          complete(
            load, result.map { image(for: load, variant.response, $0, as: subscriber.status) }, isFinal: isFinal)
        } else if stored.bytes != nil || variant.response.isOnDisk {
          deliver(variant, to: load, as: subscriber.status, isFinal: isFinal)
        } else if isFinal {
          // The load subscribed while an uncacheable variant was being delivered to the others.
          join(load)
        } else {
          endShowing(of: load)
        }
      }
    }
  }

  // MARK: - Pixels

  /// Delivers pixels to the load that requested them. From here on the host owns them.
  func handOver(_ decoded: Decoded, at path: String, of id: DecodeCoalescer.ID, _ record: ActiveDecode) {
    let byteCount = Int64(decoded.width * decoded.height * decoded.channels)
    let response = originalDecoded(decoded, record)
    let subscribers = endDecode(id)
    guard let (load, subscriber, _) = subscribers.first else { return storage.discard(.pixels(path)) }
    storage.executor.run { [storage] in
      storage.pixels.assumeIsolated { $0.deliver(path, byteCount: byteCount) }
    }
    var image = image(for: load, response, DeliveryPlan.DeliveredContent(), as: subscriber.status)
    image.pixels = LoadedImage.Pixels(
      path: path, width: decoded.width, height: decoded.height, channels: decoded.channels, byteCount: byteCount)
    if record.transform != nil {
      image.source = LoadedImage.Source(response)
      (image.width, image.height, image.frames, image.orientation) = (decoded.width, decoded.height, 1, 1)
    }
    if load.request.processing?.wantsPlaceholder == true {
      image.placeholder = decoded.placeholder.map(DecodeMetadata.Placeholder.init)
    }
    answer(load.id, .success(image))
  }
}

extension DecodeMetadata.Placeholder {
  init(_ placeholder: ImageCodec.Placeholder) {
    self.init(thumbHash: placeholder.thumbHash, color: placeholder.color)
  }
}
