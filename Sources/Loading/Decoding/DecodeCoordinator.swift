internal import ImageCodec
internal import ImageStore
internal import Text
internal import Threads

/// Decodes images that a load needs decoded before it can be answered.
extension Loader {
  /// Starts the next decode step of the load, or joins an equal one that is under way.
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
    if !load.request.retriesFailed, let error = corrupt.value(of: subject, now: .now) {
      return complete(load, .failure(error), isFinal: isFinal)
    }
    let work = DecodeCoalescer.Work(
      key: ExactString(response.key), partition: response.partition, varyKey: response.varyKey,
      original: response.originalDigest, from: response.variant, to: subject.to, step: step,
      retention: candidate.retention, owner: step == .pixels ? load.id : nil)
    let subscription = DecodeCoalescer.Subscription(load: load.id, isFinal: isFinal)
    // Decode first: a load whose source was evicted while it waited (it must not happen twice), and a `cached` event
    // that a finished answer is waiting for.
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

  /// Prepares a decode on the disk thread.
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

  /// Drops the candidate's bytes, since many decodes may wait. `prepare` puts them back if the memory budget allows.
  func withoutBytes(_ candidate: Candidate) -> Candidate {
    var candidate = candidate
    candidate.bytes = nil
    if candidate.place == .memory, candidate.response.isOnDisk, storage.tier != nil { candidate.place = .disk }
    return candidate
  }

  /// The variant in memory, if it was made from this original.
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
      variant.retention = record.candidate.retention
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

  /// Ends the decode and delivers the candidate to its subscribers.
  func goOn(_ id: DecodeCoalescer.ID, with candidate: Candidate) {
    for (load, subscriber, isFinal) in endDecode(id) {
      deliver(candidate, to: load, as: subscriber.status, isFinal: isFinal)
    }
  }

  /// Restarts the loads of a decode whose source file was evicted before its turn, or is damaged. Each load looks into
  /// the cache once more and may find the image in memory.
  private func restartAfterSourceLoss(_ id: DecodeCoalescer.ID) {
    if let record = decodeRecords[id] { memory.forgetFile(of: record.candidate.response) }
    for (load, _, isFinal) in endDecode(id) {
      guard isFinal, !load.hasRestarted else {
        let error = LoadError(.io, "the image was removed before it could be decoded")
        complete(load, .failure(error), isFinal: isFinal)
        continue
      }
      load.hasRestarted = true
      join(load)
    }
  }

  func failDecode(_ id: DecodeCoalescer.ID, _ error: LoadError) {
    for (load, _, isFinal) in endDecode(id) { complete(load, .failure(error), isFinal: isFinal) }
  }

  func endDecode(_ id: DecodeCoalescer.ID) -> [(
    load: ActiveLoad, subscriber: DecodeCoalescer.Subscriber, isFinal: Bool
  )] {
    _ = removeRecord(id)
    return decodes.end(id).compactMap { subscription, subscriber in
      loads[subscription.load].map { ($0, subscriber, subscription.isFinal) }
    }
  }

  /// Removes the record and releases the memory and the file that it held.
  private func removeRecord(_ id: DecodeCoalescer.ID) -> ActiveDecode? {
    guard let record = decodeRecords.removeValue(forKey: id) else { return nil }
    waitingBytes.giveBack(record.waitingBytes)
    if let file = record.file { storage.unpin(file) }
    return record
  }

  // MARK: - Subscriptions

  /// Removes the load's subscriptions to decodes.
  func unsubscribeFromDecodes(_ id: LoadID) { apply(decodes.leave(id)) }

  /// Returns false if the load waits for no decode, or already has that priority.
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
    // Most loads end long before their deadline: drop the timers of those that have ended.
    guard decodeDeadlines.count > 4 * decodes.subscriptionCount + 64 else { return }
    var known: [LoadID: Set<CompactInstant>] = [:]
    decodeDeadlines = decodeDeadlines.filter { decodes.contains($1) && known[$1, default: []].insert($0).inserted }
  }

  /// Ends the loads whose deadline has passed while they wait for a decode.
  ///
  /// - Returns: when the next deadline is due.
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

  /// Closes the matching decodes to further loads. Their results are delivered, but not cached.
  func detachDecodes(_ clear: Clear) {
    for (id, record) in decodeRecords where clear.matches(record.candidate.response) {
      record.mark(clear)
      decodes.detach(id)
    }
  }
}
