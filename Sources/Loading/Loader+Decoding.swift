internal import ImageCodec
internal import ImageStore
internal import Threads

/// A decode that somebody waits for.
@LoadingActor
final class DecodeRecord {
  /// What is decoded, as the cache or a transfer brought it.
  var candidate: Candidate
  let step: Processing.Step
  let transform: Transform?
  /// Where it is in the pool.
  var ticket: DecodeTicket?
  /// False once the cache was cleared: the result is delivered, but not kept.
  var mayKeep = true

  init(_ candidate: Candidate, _ step: Processing.Step, _ transform: Transform?) {
    self.candidate = candidate
    self.step = step
    self.transform = transform
  }
}

/// What has to be decoded before a load can be answered.
extension Loader {
  /// Has the next thing done that a load needs done with what is there of its image, once for all that need the same.
  ///
  /// - Parameter isFinal: false for the `cached` event of `refresh`.
  func process(
    _ candidate: Candidate, for load: Load, _ step: Processing.Step, as status: CacheStatus, isFinal: Bool
  ) {
    // Nobody would release what an event has shown.
    if step == .pixels, !isFinal { return }
    let response = candidate.response
    if step == .encode, let variant = variantInMemory(of: candidate, named: load.request.variant) {
      return deliver(variant, to: load, as: status, isFinal: isFinal)
    }
    let transform = step == .encode || step == .pixels ? load.request.processing?.transform : nil
    let work = DecodeSharing.Work(
      key: response.key, partition: response.partition, selection: response.selection,
      original: response.originalDigest, from: response.variant, to: transform?.canonical ?? "", step: step,
      isTransient: candidate.isTransient, owner: step == .pixels ? load.id : nil)
    let seat = DecodeSharing.Seat(load: load.id, isFinal: isFinal)
    switch decodes.take(seat, as: .init(priority: load.priority, status: status), for: work) {
    case .joined(let id, let raised):
      if let raised, let ticket = decodeRecords[id]?.ticket { decoder.reprioritize(ticket, to: raised.rawValue) }
    case .created(let id):
      var candidate = candidate
      // Many may wait: what has a file takes no memory meanwhile.
      if storage.tier(of: candidate) != nil {
        candidate.bytes = nil
        if candidate.place == .memory { candidate.place = .disk }
      }
      decodeRecords[id] = DecodeRecord(candidate, step, transform)
      let order = DecodeOrder(
        candidate: candidate, step: step, transform: transform,
        wantsPlaceholder: load.request.processing?.wantsPlaceholder == true && step != .check, maxPixels: maxPixels)
      storage.perform({ [storage] in order.getReady(in: storage) }) { [weak self] in self?.begin(id, $0) }
    }
    if let deadline = load.request.deadline {
      decodeDeadlines.add(load.id, at: Moment(load.acceptedAt.advanced(by: deadline)))
    }
  }

  /// The variant, of this very original, if it has been made before.
  private func variantInMemory(of original: Candidate, named name: String) -> Candidate? {
    guard !original.isTransient else { return nil }
    let response = original.response
    return memory.peek(at: response.key, partition: response.partition, variant: name)
      .first { $0.response.sharesOriginal(with: response) }.map(Candidate.init(inMemory:))
  }

  private func begin(_ id: DecodeSharing.ID, _ readiness: DecodeOrder.Readiness) {
    guard let record = decodeRecords[id] else {
      if case .ready(let task) = readiness { storage.discard(task.output) }
      return
    }
    switch readiness {
    case .lost: startOver(id)
    case .failed(let error): failDecode(id, error)
    case .found(let variant): goOn(id, with: variant)
    case .ready(let task):
      let priority = decodes.priority(of: id)?.rawValue ?? Priority.lowest.rawValue
      let ticket = decoder.submit(task, priority: priority) { result in
        LoadingActor.run { [weak self] in self?.decoded(id, task, result) }
      }
      record.ticket = ticket
    }
  }

  private func decoded(_ id: DecodeSharing.ID, _ task: DecodeTask, _ result: Result<Decoded, DecodeError>) {
    guard let record = decodeRecords[id] else { return storage.discard(task.output) }
    record.ticket = nil
    switch (result, task.output) {
    case (.failure(let error), _):
      storage.discard(task.output)
      if case .io = error, case .file = task.source { return startOver(id) }
      failDecode(id, LoadError(error))
    case (.success(let decoded), .encoded(let path)): keep(decoded, at: path, of: id, record)
    case (.success(let decoded), .pixels(let path)): handOver(decoded, at: path, of: id, record)
    case (.success(let decoded), _): note(decoded, of: id, record)
    }
  }

  /// The loads that waited get what there is now.
  func goOn(_ id: DecodeSharing.ID, with candidate: Candidate) {
    for (load, guest, isFinal) in endDecode(id) {
      deliver(candidate, to: load, as: guest.status, isFinal: isFinal)
    }
  }

  /// What was to be decoded is gone: evicted before its turn came. The loads look for it once more.
  private func startOver(_ id: DecodeSharing.ID) {
    for (load, _, isFinal) in endDecode(id) where isFinal {
      guard !load.hasStartedOver else {
        finish(load.id, .failure(LoadError(.io, "the image was gone before it could be decoded")))
        continue
      }
      load.hasStartedOver = true
      join(load)
    }
  }

  func failDecode(_ id: DecodeSharing.ID, _ error: LoadError) {
    for (load, _, isFinal) in endDecode(id) where isFinal { finish(load.id, .failure(error)) }
  }

  func endDecode(_ id: DecodeSharing.ID) -> [(load: Load, guest: DecodeSharing.Guest, isFinal: Bool)] {
    decodeRecords[id] = nil
    return decodes.end(id).compactMap { seat, guest in loads[seat.load].map { ($0, guest, seat.isFinal) } }
  }

  // MARK: - Leaving

  /// The load waits for no decode any more.
  func leaveDecodes(_ id: LoadID) { carryOut(decodes.leave(id)) }

  /// False when the load waits for none, or has that priority.
  func setDecodePriority(_ priority: Priority, of id: LoadID) -> Bool {
    guard let changes = decodes.setPriority(priority, of: id) else { return false }
    carryOut(changes)
    return true
  }

  private func carryOut(_ changes: [DecodeSharing.Change]) {
    for change in changes {
      switch change {
      case .priority(let id, let priority):
        if let ticket = decodeRecords[id]?.ticket { decoder.reprioritize(ticket, to: priority.rawValue) }
      case .abandoned(let id):
        if let ticket = decodeRecords.removeValue(forKey: id)?.ticket { decoder.cancel(ticket) }
      }
    }
  }

  /// Ends the loads whose deadline has passed while they wait for a decode.
  ///
  /// - Returns: when the next one is due.
  func endOverdueDecodes(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    let moment = Moment(now)
    while let (_, id) = decodeDeadlines.take(dueAt: moment) {
      guard decodes.contains(id) else { continue }
      finish(id, .failure(LoadError.timeout(.deadline, "the deadline passed")))
    }
    return decodeDeadlines.next?.instant
  }

  /// What was sent before a `clear` is not kept, and nobody joins it.
  func detachDecodes(where matches: (StoredResponse) -> Bool) {
    for (id, record) in decodeRecords where matches(record.candidate.response) {
      record.mayKeep = false
      decodes.detach(id)
    }
  }
}
