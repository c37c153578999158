internal import HTTPCaching
internal import HTTPTypes
internal import ImageStore
internal import Text

/// Delivers stored responses to loads.
extension Loader {
  /// Delivers a candidate to a load: at once if its bytes or its file suffice, otherwise through the disk thread.
  func deliver(_ candidate: Candidate, to load: ActiveLoad, as status: CacheStatus, at stage: DeliveryStage = .answer) {
    if let step = load.request.processing?.step(for: candidate.response) {
      // Decode first: a load whose source was evicted while it waited (it must not happen twice), and a `cached` event
      // that a finished answer is waiting for.
      let isUrgent = stage == .answer ? load.hasRestarted : load.showing?.end != nil
      return decodes.process(candidate, for: load, step, as: status, at: stage, isUrgent: isUrgent)
    }
    var delivery = DeliveryPlan(load.request, at: stage)
    if let delivered = deliverAtOnce(candidate.response, candidate.bytes, in: candidate.place, delivery) {
      return complete(load.id, candidate, delivered, as: status, at: stage)
    }
    let source: DeliveryPlan.Source
    if case .scratch(let path) = candidate.place {
      source = .scratch(path: path, bytes: candidate.bytes)
    } else if let tier = storage.tier(of: candidate) {
      source = .stored(candidate.response, in: tier)
      delivery.wantsBytes =
        candidate.place == .disk && candidate.bytes == nil && !candidate.isTransient
        && load.request.store.contains(.memory)
        && candidate.response.byteCount <= memory.largestEntry
    } else {
      source = .bytes(candidate.bytes ?? [], format: candidate.response.format)
    }
    let (id, order, byteCount) = (load.id, delivery, candidate.response.byteCount)
    /// - Parameter tier: the tier that pins the file until it has been read.
    func read(_ tier: DiskTier?) {
      inlineReads.begin(byteCount) { [weak self, storage, inlineReads] in
        let end: @LoadingActor @Sendable () -> Void = {
          inlineReads.end(byteCount)
          if let tier { storage.perform({ tier.assumeIsolated { $0.unpin(candidate.response.id) } }) {} }
        }
        guard let self, self.loads[id] != nil else { return end() }
        self.deliver(candidate, from: source, order, to: id, as: status, at: stage, then: end)
      }
    }
    if !delivery.wantsData || candidate.bytes != nil {
      deliver(candidate, from: source, delivery, to: load.id, as: status, at: stage) {}
    } else if case .stored(let response, let tier) = source, !inlineReads.isOpen(for: byteCount) {
      // The pin keeps the file from a clear that comes later and does not apply to this load.
      storage.perform({ tier.assumeIsolated { $0.pin(response) } }) { isHeld in read(isHeld ? tier : nil) }
    } else {
      read(nil)
    }
  }

  /// - Parameter then: called when the delivery has ended, even if the load has ended before.
  private func deliver(
    _ candidate: Candidate, from source: DeliveryPlan.Source, _ order: DeliveryPlan, to id: LoadID,
    as status: CacheStatus,
    at stage: DeliveryStage, then: @escaping @LoadingActor @Sendable () -> Void
  ) {
    storage.deliver(order, from: source) { [weak self] result in
      defer { then() }
      guard let self, let load = self.loads[id] else { return }
      switch result {
      case .success(let delivered):
        self.applyPeerInvalidations()
        if delivered.isForMemory, let bytes = delivered.bytes, !self.pendingInvalidations.reach(candidate.response) {
          self.memory.promote(candidate.response, bytes: bytes)
          for response in self.pendingRevalidations.values where response.key.hasSameBytes(as: candidate.response.key) {
            self.memory.update(response)
          }
        }
        self.complete(id, candidate, delivered, as: status, at: stage)
      case .failure(.damaged) where candidate.bytes != nil:
        // The file was evicted, but memory still has the bytes.
        self.deliver(self.withoutFile(candidate), to: load, as: status, at: stage)
      case .failure(.damaged):
        _ = self.memory.clear(.key(candidate.response.key), now: self.storage.now())
        load.bypassesCache = true
        self.lostSource(for: load, at: stage)
      case .failure(.failed(let error)):
        self.complete(load, .failure(error), at: stage)
      }
    }
  }

  private func withoutFile(_ candidate: Candidate) -> Candidate {
    memory.recordMissingFile(of: candidate.response)
    var candidate = candidate
    candidate.response.id = 0
    candidate.place = .memory
    return candidate
  }

  /// The content of a delivery that needs no work on the disk thread: an empty one, or one from the memory tier, with a
  /// single check that the file exists.
  func deliverAtOnce(
    _ response: StoredResponse, _ bytes: [UInt8]?, in place: Candidate.Place, _ delivery: DeliveryPlan
  ) -> DeliveryPlan.DeliveredContent? {
    if delivery.isNothing { return DeliveryPlan.DeliveredContent() }
    guard place == .memory, delivery.saveTo == nil else { return nil }
    let tier = storage.tier(of: response, in: place)
    if delivery.wantsPath {
      guard let path = tier?.deliverPath(of: response) else { return nil }
      return DeliveryPlan.DeliveredContent(path: path, bytes: nil)
    }
    tier?.recordUse(of: response)
    return DeliveryPlan.DeliveredContent(path: nil, bytes: bytes)
  }

  private func complete(
    _ id: LoadID, _ candidate: Candidate, _ delivered: DeliveryPlan.DeliveredContent, as status: CacheStatus,
    at stage: DeliveryStage
  ) {
    guard let load = loads[id] else { return }
    let image = LoadedImage(candidate.response, delivered, for: load, as: status, now: storage.now())
    complete(load, .success(image), at: stage)
  }
}
