internal import ImageCodec
internal import ImageStore
internal import Text
internal import Threads

/// What has to be decoded before a load can be answered.
extension Loader {
  /// Has the next thing done that a load needs done with what is there of its image, once for all that need the same.
  ///
  /// - Parameter isFinal: false for the `cached` event of `refresh`.
  func process(
    _ candidate: Candidate, for load: ActiveLoad, _ step: DecodePlan.Step, as status: CacheStatus, isFinal: Bool
  ) {
    let response = candidate.response
    if step == .encode, let variant = variantInMemory(of: candidate, named: load.request.variant) {
      return deliver(variant, to: load, as: status, isFinal: isFinal)
    }
    let transform = step == .encode || step == .pixels ? load.request.processing?.transform : nil
    let subject = CorruptDecodeKey(response, step, to: transform?.canonical ?? "")
    if !load.request.retriesFailed, let error = corrupt.serveFromMemory(subject, now: .now) {
      return conclude(load, .failure(error), isFinal: isFinal)
    }
    let work = DecodeCoalescer.Work(
      key: ExactString(response.key), partition: response.partition, varyKey: response.varyKey,
      original: response.originalDigest, from: response.variant, to: subject.to, step: step,
      keeping: candidate.keeping, owner: step == .pixels ? load.id : nil)
    let subscription = DecodeCoalescer.Subscription(load: load.id, isFinal: isFinal)
    // What was evicted before its turn came is not to be so again, and no answer is to wait long for what is shown
    // before.
    let isUrgent = isFinal ? load.hasRestarted : load.showing?.end != nil
    let subscriber = DecodeCoalescer.Subscriber(priority: load.priority, status: status, isUrgent: isUrgent)
    switch decodes.take(subscription, as: subscriber, for: work) {
    case .joined(let id, let raised):
      if storage.tier(of: candidate) != nil { decodeRecords[id]?.adopt(withoutBytes(candidate)) }
      if let raised, let ticket = decodeRecords[id]?.ticket { decoder.reprioritize(ticket, to: raised.rawValue) }
    case .created(let id):
      let record = ActiveDecode(withoutBytes(candidate), step, transform, subject, clearCount: clearCount)
      prepare(id, for: load, candidate, record)
    }
    noteDeadline(of: load)
  }

  /// Has a decode prepared on the disk's thread.
  private func prepare(_ id: DecodeCoalescer.ID, for load: ActiveLoad, _ candidate: Candidate, _ record: ActiveDecode) {
    var order = DecodePreparation(
      candidate: record.candidate, step: record.step, transform: record.transform,
      wantsPlaceholder: load.request.processing?.wantsPlaceholder == true && record.step != .check,
      maxPixels: settings.maxPixels)
    if let bytes = candidate.bytes, storage.tier(of: candidate) == nil {
      order.candidate.bytes = bytes
      order.mayHoldBytes = waitingBytes.take(bytes.count)
      if order.mayHoldBytes { record.hold(bytes) }
    }
    decodeRecords[id] = record
    storage.perform({ [storage, order] in order.prepare(in: storage) }) { [weak self] in self?.begin(id, $0) }
  }

  /// Many may wait: what they wait with takes no memory, unless the loader says so.
  func withoutBytes(_ candidate: Candidate) -> Candidate {
    var candidate = candidate
    candidate.bytes = nil
    if candidate.place == .memory, candidate.response.isOnDisk, storage.tier != nil { candidate.place = .disk }
    return candidate
  }

  /// The variant, of this very original, if it has been made before.
  private func variantInMemory(of original: Candidate, named name: String) -> Candidate? {
    guard !original.isTransient else { return nil }
    let response = original.response
    return memory.peek(at: response.key, partition: response.partition, variant: name)
      .first { $0.response.sharesOriginal(with: response) }.map(Candidate.init(inMemory:))
  }

  private func begin(_ id: DecodeCoalescer.ID, _ readiness: DecodePreparation.PreparedDecode) {
    guard let record = decodeRecords[id] else {
      if case .ready(let task, let file) = readiness {
        storage.discard(task.output)
        if let file { storage.unpin(file) }
      }
      return
    }
    switch readiness {
    case .lost: restartAfterSourceLoss(id)
    case .failed(let error): failDecode(id, error)
    case .found(var variant):
      variant.keeping = record.candidate.keeping
      pendingInvalidations.mark(&variant)
      goOn(id, with: variant)
    case .ready(let task, let file):
      if let file { record.wait(with: file) }
      let priority = decodes.priority(of: id)?.rawValue ?? Priority.lowest.rawValue
      let ticket = decoder.submit(task, priority: priority) { result in
        LoadingActor.run { [weak self] in self?.decoded(id, task, result) }
      }
      record.ticket = ticket
    }
  }

  private func decoded(_ id: DecodeCoalescer.ID, _ task: DecodeTask, _ result: Result<Decoded, DecodeError>) {
    guard let record = decodeRecords[id] else { return storage.discard(task.output) }
    record.ticket = nil
    switch (result, task.output) {
    case (.failure(let error), _):
      storage.discard(task.output)
      if case .io = error, case .file = task.source { return restartAfterSourceLoss(id) }
      let failure = LoadError(error)
      if case .corrupt = error, record.candidate.response.isOnDisk {
        corrupt.remember(failure, of: record.subject, now: .now)
      }
      failDecode(id, failure)
    case (.success(let decoded), .encoded(let path)): keep(decoded, at: path, of: id, record)
    case (.success(let decoded), .pixels(let path)): handOver(decoded, at: path, of: id, record)
    case (.success(let decoded), _): note(decoded, of: id, record)
    }
  }

  /// The loads that waited get what there is now.
  func goOn(_ id: DecodeCoalescer.ID, with candidate: Candidate) {
    for (load, subscriber, isFinal) in endDecode(id) {
      deliver(candidate, to: load, as: subscriber.status, isFinal: isFinal)
    }
  }

  /// The file that was to be decoded is gone, evicted before its turn came, or damaged. The loads look for the image
  /// once more, and may find it in memory.
  private func restartAfterSourceLoss(_ id: DecodeCoalescer.ID) {
    if let record = decodeRecords[id] { memory.forgetFile(of: record.candidate.response) }
    for (load, _, isFinal) in endDecode(id) {
      guard isFinal, !load.hasRestarted else {
        let error = LoadError(.io, "the image was gone before it could be decoded")
        conclude(load, .failure(error), isFinal: isFinal)
        continue
      }
      load.hasRestarted = true
      join(load)
    }
  }

  func failDecode(_ id: DecodeCoalescer.ID, _ error: LoadError) {
    for (load, _, isFinal) in endDecode(id) { conclude(load, .failure(error), isFinal: isFinal) }
  }

  func endDecode(_ id: DecodeCoalescer.ID) -> [(load: ActiveLoad, subscriber: DecodeCoalescer.Subscriber, isFinal: Bool)] {
    _ = removeRecord(id)
    return decodes.end(id).compactMap { subscription, subscriber in loads[subscription.load].map { ($0, subscriber, subscription.isFinal) } }
  }

  /// What has waited with the decode goes.
  private func removeRecord(_ id: DecodeCoalescer.ID) -> ActiveDecode? {
    guard let record = decodeRecords.removeValue(forKey: id) else { return nil }
    waitingBytes.giveBack(record.waitingBytes)
    if let file = record.file { storage.unpin(file) }
    return record
  }

  // MARK: - Leaving

  /// The load waits for no decode any more.
  func unsubscribeFromDecodes(_ id: LoadID) { apply(decodes.leave(id)) }

  /// False when the load waits for none, or has that priority.
  func setDecodePriority(_ priority: Priority, of id: LoadID) -> Bool {
    guard let changes = decodes.setPriority(priority, of: id) else { return false }
    apply(changes)
    return true
  }

  func apply(_ changes: [DecodeCoalescer.Change]) {
    for change in changes {
      switch change {
      case .priority(let id, let priority):
        if let ticket = decodeRecords[id]?.ticket { decoder.reprioritize(ticket, to: priority.rawValue) }
      case .abandoned(let id):
        if let ticket = removeRecord(id)?.ticket { decoder.cancel(ticket) }
      }
    }
  }

  private func noteDeadline(of load: ActiveLoad) {
    guard let deadline = load.request.deadline else { return }
    decodeDeadlines.add(load.id, at: CompactInstant(load.acceptedAt.advanced(by: deadline)))
    // Loads end long before their deadlines: those of the ended are not to pile up.
    guard decodeDeadlines.count > 4 * decodes.seatCount + 64 else { return }
    var known: [LoadID: Set<CompactInstant>] = [:]
    decodeDeadlines = decodeDeadlines.filter { decodes.contains($1) && known[$1, default: []].insert($0).inserted }
  }

  /// Ends the loads whose deadline has passed while they wait for a decode.
  ///
  /// - Returns: when the next one is due.
  func endOverdueDecodes(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    let moment = CompactInstant(now)
    while let (_, id) = decodeDeadlines.take(dueAt: moment) {
      guard decodes.contains(id) else { continue }
      if let load = loads[id], load.showing?.end != nil {
        endShowing(of: load)
      } else {
        finish(id, .failure(LoadError.timeout(.deadline, "the deadline passed")))
      }
    }
    return decodeDeadlines.next?.instant
  }

  /// What was sent before a `clear` is not kept, and nobody joins it.
  func detachDecodes(_ clear: Clear) {
    for (id, record) in decodeRecords where clear.matches(record.candidate.response) {
      record.mark(clear)
      decodes.detach(id)
    }
  }
}
