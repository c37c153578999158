internal import HTTPCaching
internal import HTTPTypes
internal import ImageStore
internal import Text

/// Delivers stored responses to loads.
extension Loader {
  /// Delivers a candidate to a load: at once if its bytes or its file suffice, otherwise through the disk thread.
  ///
  /// - Parameter isFinal: false for the `cached` event of `refresh`.
  func deliver(_ candidate: Candidate, to load: ActiveLoad, as status: CacheStatus, isFinal: Bool = true) {
    if let step = load.request.processing?.step(for: candidate.response) {
      return process(candidate, for: load, step, as: status, isFinal: isFinal)
    }
    var delivery = DeliveryPlan(load.request, isFinal: isFinal)
    if let delivered = deliverAtOnce(candidate.response, candidate.bytes, in: candidate.place, delivery) {
      return complete(load.id, candidate, delivered, as: status, isFinal: isFinal)
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
        self.deliver(candidate, from: source, order, to: id, as: status, isFinal: isFinal, then: end)
      }
    }
    if !delivery.wantsData || candidate.bytes != nil {
      deliver(candidate, from: source, delivery, to: load.id, as: status, isFinal: isFinal) {}
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
    isFinal: Bool, then: @escaping @LoadingActor @Sendable () -> Void
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
        self.complete(id, candidate, delivered, as: status, isFinal: isFinal)
      case .failure(.damaged) where candidate.bytes != nil:
        // The file was evicted, but memory still has the bytes.
        self.deliver(self.withoutFile(candidate), to: load, as: status, isFinal: isFinal)
      case .failure(.damaged):
        _ = self.memory.clear(.key(candidate.response.key), now: self.storage.now())
        load.bypassesCache = true
        if isFinal { self.join(load) } else { self.endShowing(of: load) }
      case .failure(.failed(let error)):
        self.complete(load, .failure(error), isFinal: isFinal)
      }
    }
  }

  private func withoutFile(_ candidate: Candidate) -> Candidate {
    memory.forgetFile(of: candidate.response)
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
      guard let path = tier?.pin(response) else { return nil }
      return DeliveryPlan.DeliveredContent(path: path, bytes: nil)
    }
    tier?.noteUse(of: response)
    return DeliveryPlan.DeliveredContent(path: nil, bytes: bytes)
  }

  private func complete(
    _ id: LoadID, _ candidate: Candidate, _ delivered: DeliveryPlan.DeliveredContent, as status: CacheStatus,
    isFinal: Bool
  ) {
    guard let load = loads[id] else { return }
    complete(load, .success(image(for: load, candidate.response, delivered, as: status)), isFinal: isFinal)
  }

  /// The result of a load, with its timing.
  func image(
    for load: ActiveLoad, _ response: StoredResponse, _ delivered: DeliveryPlan.DeliveredContent, as status: CacheStatus
  ) -> LoadedImage {
    var image = image(for: load.request, response, delivered, as: status)
    image.isKept = load.isKept
    image.timing.total = load.acceptedAt.duration(to: .now)
    image.timing.firstByte = load.transfer?.firstByte ?? image.timing.total
    if let transfer = load.transfer {
      image.attempts = transfer.attempts
      image.timing.queued = transfer.queued
      image.timing.name = transfer.name
      image.timing.connect = transfer.connect
      image.timing.tls = transfer.tls
    }
    return image
  }

  /// The result of a request, without timing.
  func image(
    for request: LoadRequest, _ response: StoredResponse, _ delivered: DeliveryPlan.DeliveredContent,
    as status: CacheStatus
  ) -> LoadedImage {
    LoadedImage(
      response, as: status, path: request.delivery == .path ? delivered.path : nil,
      data: request.delivery == .data ? delivered.bytes : nil,
      placeholder: request.processing?.wantsPlaceholder == true ? response.metadata?.placeholder : nil,
      head: request.wantsResponse || request.validation == .none ? head(of: response, as: status) : nil)
  }

  private func head(of response: StoredResponse, as status: CacheStatus) -> LoadedImage.Response {
    let headers =
      status == .miss || status == .revalidated
      ? response.headers : Storing.fieldsToServe(response.cached, now: storage.now())
    return LoadedImage.Response(status: response.status, headers: headers)
  }
}
