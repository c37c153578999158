internal import ImageCodec
internal import ImageStore
internal import Platform
internal import Text
internal import Threads
internal import Tracing

/// Decodes images that a load needs decoded before it can be answered: one decode for all loads that need the same.
///
/// A decode is prepared on the disk thread, performed by a decoder, and completed as its output requires
/// (DecodeCompletion). It is abandoned when its last load leaves.
@LoadingActor
final class DecodeCoordinator {
  let decoder: any ImageDecoding
  let cache: CacheCoordinator
  let storage: DiskServices
  /// The budget for sources that wait for a decoder in memory.
  let memory = DecodeMemoryBudget()
  weak var client: (any DecodeClient)?
  /// The maximum width x height x frames that is decoded or written.
  var maxPixels: Int

  private var coalescer = DecodeCoalescer()
  private(set) var decodes: [DecodeCoalescer.ID: ActiveDecode] = [:]
  /// The decodes prepared for the loads that `serve` serves.
  private var prepared = PreparedDecodes()
  /// The deadlines of loads that wait for a decode. Those of loads that no longer do are removed later.
  private var deadlines = TimerQueue<LoadID>()
  private var corrupt = ExpiringCache<CorruptDecodeKey, LoadError>(
    timeToLive: .seconds(60), capacity: CorruptDecodeKey.capacity)
  /// The images that were transferred although a stored original was `corrupt`, or that were `corrupt` when they
  /// arrived: another transfer would bring the same.
  private var transferredAgain = ExpiringCache<CacheIdentity, Bool>(
    timeToLive: .seconds(60), capacity: CorruptDecodeKey.capacity)

  init(decoder: any ImageDecoding, cache: CacheCoordinator, storage: DiskServices, maxPixels: Int) {
    (self.decoder, self.cache, self.storage, self.maxPixels) = (decoder, cache, storage, maxPixels)
  }

  /// Whether no load waits for a decode.
  var isEmpty: Bool { coalescer.isEmpty && decodes.isEmpty }

  /// The number of decodes by priority whose source has just been transferred.
  var arrived: PriorityCounts { coalescer.arrived }

  var deadlineCount: Int { deadlines.count }

  /// The time for which a `corrupt` failure is remembered.
  var corruptTimeToLive: Duration {
    get { corrupt.timeToLive }
    set { (corrupt.timeToLive, transferredAgain.timeToLive) = (newValue, newValue) }
  }

  /// Forgets the `corrupt` failures and returns their number.
  func forgetFailures() -> Int {
    _ = transferredAgain.forgetAll()
    return corrupt.forgetAll()
  }

  // MARK: - Decodes

  /// Starts the next decode step of the load, or joins an equal one that is under way.
  ///
  /// - Parameter isUrgent: whether the decode precedes all others, whatever the priority of the load.
  func process(
    _ candidate: Candidate, for load: ActiveLoad, _ step: DecodePlan.Step, as status: CacheStatus,
    at stage: DeliveryStage, isUrgent: Bool
  ) {
    let response = candidate.response
    if step == .encode, let variant = cache.variantInMemory(of: candidate, named: load.request.variant) {
      client?.deliver(withFacts(of: candidate, variant), to: load, as: status, at: stage)
      return
    }
    let transform = step == .encode || step == .pixels ? load.request.processing?.transform : nil
    let subject = CorruptDecodeKey(response, step, to: transform?.canonical ?? "")
    if !load.request.retriesFailed, let error = corrupt.value(of: subject, now: .now) {
      // Later, because the caller may still have to remove the load from its job.
      return LoadingActor.run { [weak self] in self?.sourceIsCorrupt(response, for: load, status, stage, error) }
    }
    let work = DecodeCoalescer.Work(
      key: ExactString(response.key), partition: response.partition, varyKey: response.varyKey,
      original: response.originalDigest, from: response.variant, to: subject.to, step: step,
      facts: step == .encode ? load.request.processing?.facts ?? [] : [], retention: candidate.retention,
      isolation: load.request.processing?.isolation, owner: step == .pixels ? load.id : nil)
    let subscription = DecodeCoalescer.Subscription(load: load.id, stage: stage)
    let subscriber = DecodeCoalescer.Subscriber(priority: load.priority, status: status, isUrgent: isUrgent)
    switch coalescer.take(subscription, as: subscriber, for: work) {
    case .joined(let id, let raised):
      if storage.tier(of: candidate) != nil { decodes[id]?.adopt(storage.withoutBytes(candidate)) }
      if let raised, let ticket = decodes[id]?.ticket { decoder.reprioritize(ticket, to: raised.rawValue) }
    case .created(let id):
      let decode = ActiveDecode(
        storage.withoutBytes(candidate), step, transform, subject, clearCount: cache.clearCount)
      prepare(id, for: load, candidate, decode)
    }
    if stage == .answer { load.timeline.enter(.decodeWait, at: .now) }
    addDeadline(of: load)
  }

  /// Calls `serve`, which serves the loads of an image that has just been stored. Their decodes begin as they were
  /// prepared in the store.
  func begin(_ prepared: PreparedDecodes, _ serve: () -> Void) {
    self.prepared = prepared
    serve()
    self.prepared.discard(in: storage)
  }

  /// Prepares a decode on the disk thread, unless that was done when its source was stored.
  private func prepare(_ id: DecodeCoalescer.ID, for load: ActiveLoad, _ candidate: Candidate, _ decode: ActiveDecode) {
    var order = DecodePreparation(decode.candidate, decode.step, load.request.processing, maxPixels: maxPixels)
    if let bytes = candidate.bytes, storage.tier(of: candidate) == nil {
      order.candidate.bytes = bytes
      order.mayHoldBytes = memory.take(bytes.count)
      if order.mayHoldBytes { decode.hold(bytes) }
    }
    decodes[id] = decode
    if let ready = prepared.take(order) { return begin(id, ready) }
    storage.perform(.prepareDecode, { [storage, order] in order.prepare(in: storage) }) { [weak self] in
      self?.begin(id, $0)
    }
  }

  private func begin(_ id: DecodeCoalescer.ID, _ readiness: DecodePreparation.PreparedDecode) {
    guard let decode = decodes[id], let priority = coalescer.priority(of: id) else {
      if case .ready(let task, let file) = readiness {
        storage.discard(task.output)
        if let file { storage.removeReader(of: file) }
      }
      return
    }
    switch readiness {
    case .lost: restartAfterSourceLoss(id, decode)
    case .failed(let error): fail(id, error)
    case .found(var variant):
      variant.retention = decode.candidate.retention
      cache.mark(&variant)
      proceed(id, with: withFacts(of: decode.candidate, variant))
    case .ready(let task, let file):
      if let file { decode.wait(with: file) }
      decode.ticket = decoder.submit(task, priority: priority.rawValue) { result, start in
        LoadingActor.run { [weak self] in self?.decoded(id, task, result, since: start) }
      }
    }
  }

  /// - Parameter start: the time at which a decoder got the task; nil if none did.
  private func decoded(
    _ id: DecodeCoalescer.ID, _ task: DecodeTask, _ result: Result<Decoded, DecodeError>,
    since start: Instant?
  ) {
    guard let decode = decodes[id] else { return storage.discard(task.output) }
    decode.ticket = nil
    let end = Instant.now
    for waiter in waiters(for: id) where waiter.stage == .answer { waiter.load.timeline.decoded(from: start, to: end) }
    switch (result, task.output) {
    case (.failure(let error), _):
      storage.discard(task.output)
      if case .io = error, case .file = task.source { return restartAfterSourceLoss(id, decode) }
      var failure = LoadError(error)
      // A decoder that lacks memory does not tell the size of the image.
      if case .outOfMemory = error, let (width, height) = task.header.upright {
        failure.figures = ErrorFigures(width: width, height: height)
      }
      if case .ofRendition(let index, _) = error { return fail(id, failure, ofOutput: index) }
      guard case .corrupt = error else { return fail(id, failure) }
      let (response, waiters) = (decode.candidate.response, self.end(id))
      // For a file of the host, the subject has its digest.
      if response.isOnDisk || waiters.contains(where: { $0.status == .file }) {
        corrupt.remember(failure, of: decode.subject, now: .now)
      }
      if waiters.contains(where: { $0.status == .miss }) { rememberTransfer(of: response) }
      for waiter in waiters { sourceIsCorrupt(response, for: waiter.load, waiter.status, waiter.stage, failure) }
    case (.success(let decoded), .encoded(let path)): keep(decoded, at: path, of: id, decode)
    case (.success(let decoded), .pixels(let path)): handOver(decoded, at: path, of: id, decode)
    case (.success(let decoded), .renditions(let set, let path)): deliver(decoded, set, at: path, of: id, decode)
    case (.success(let decoded), _): merge(decoded, of: id, decode)
    }
  }

  /// Restarts the loads of a decode whose source file was evicted before its turn, or is damaged. Each load looks into
  /// the cache once more and may find the image in memory.
  private func restartAfterSourceLoss(_ id: DecodeCoalescer.ID, _ decode: ActiveDecode) {
    cache.removeFile(of: decode.candidate.response)
    for waiter in end(id) {
      guard waiter.stage == .answer, !waiter.load.hasRestarted else {
        let error = LoadError(.io, "the image was removed before it could be decoded")
        client?.complete(waiter.load, .failure(error), at: waiter.stage)
        continue
      }
      waiter.load.hasRestarted = true
      client?.lostSource(for: waiter.load, at: waiter.stage)
    }
  }

  /// Fails a load whose source does not decode. A load that the cache answers has the original transferred again
  /// instead, once within `corruptTimeToLive`.
  private func sourceIsCorrupt(
    _ response: StoredResponse, for load: ActiveLoad, _ status: CacheStatus, _ stage: DeliveryStage, _ error: LoadError
  ) {
    guard let client, client.activeLoad(load.id) === load else { return }
    let image = CacheIdentity(key: response.key, partition: response.partition)
    let mayStart = load.request.retriesFailed || transferredAgain.value(of: image, now: .now) == nil
    if stage == .answer, status != .miss, response.variant.isEmpty, !response.isOfHost,
      client.transferAgain(load, mayStart: mayStart)
    {
      return rememberTransfer(of: response)
    }
    client.complete(load, .failure(error), at: stage)
  }

  private func rememberTransfer(of response: StoredResponse) {
    let image = CacheIdentity(key: response.key, partition: response.partition)
    transferredAgain.remember(true, of: image, now: .now)
  }

  // MARK: - The end of a decode

  /// A load that waits for a decode.
  struct Waiter {
    let load: ActiveLoad
    let stage: DeliveryStage
    /// The `cache` status that the load's result will report.
    let status: CacheStatus

    var subscription: DecodeCoalescer.Subscription { DecodeCoalescer.Subscription(load: load.id, stage: stage) }
  }

  func waiters(for id: DecodeCoalescer.ID) -> [Waiter] { waiters(coalescer.subscribers(of: id)) }

  /// Ends a decode.
  ///
  /// - Returns: the loads that waited for it, in the order in which they were submitted.
  func end(_ id: DecodeCoalescer.ID) -> [Waiter] {
    _ = remove(id)
    return waiters(coalescer.end(id))
  }

  /// Ends a decode and delivers the candidate to its loads.
  func proceed(_ id: DecodeCoalescer.ID, with candidate: Candidate) {
    for waiter in end(id) { client?.deliver(candidate, to: waiter.load, as: waiter.status, at: waiter.stage) }
  }

  /// Ends a decode and its loads with an error.
  ///
  /// - Parameter output: the position of the output at fault.
  func fail(_ id: DecodeCoalescer.ID, _ error: LoadError, ofOutput output: Int? = nil) {
    for waiter in end(id) {
      var error = error
      let outputs = waiter.load.request.processing?.outputs ?? []
      error.output = output.flatMap { outputs.indices.contains($0) ? outputs[$0].name : nil }
      if let name = error.output, let member = error.member { error.member = "outputs.\(name).\(member)" }
      client?.complete(waiter.load, .failure(error), at: waiter.stage)
    }
  }

  private func waiters(
    _ subscribers: [(subscription: DecodeCoalescer.Subscription, subscriber: DecodeCoalescer.Subscriber)]
  ) -> [Waiter] {
    subscribers.compactMap { subscription, subscriber in
      client?.activeLoad(subscription.load).map { load in
        Waiter(load: load, stage: subscription.stage, status: subscriber.status)
      }
    }
  }

  /// Removes a decode and releases the memory and the file that it held.
  private func remove(_ id: DecodeCoalescer.ID) -> ActiveDecode? {
    guard let decode = decodes.removeValue(forKey: id) else {
      assertionFailure("a decode must end once")
      return nil
    }
    memory.giveBack(decode.waitingBytes)
    if let file = decode.file { storage.removeReader(of: file) }
    return decode
  }

  // MARK: - The loads

  /// Removes a load that has ended from its decodes.
  func unsubscribe(_ load: LoadID) { apply(coalescer.leave(load)) }

  /// Returns false if the load waits for no decode, or already has that priority.
  func setPriority(_ priority: Priority, of load: LoadID) -> Bool {
    guard let changes = coalescer.setPriority(priority, of: load) else { return false }
    apply(changes)
    return true
  }

  /// Makes the decode for the load's `cached` event urgent, and limits the wait for it.
  func boostCachedEvent(of load: LoadID, until limit: Instant) {
    deadlines.add(load, at: limit)
    if let change = coalescer.boostCachedEvent(of: load) { apply([change]) }
  }

  private func apply(_ changes: [DecodeCoalescer.Change]) {
    for change in changes {
      switch change {
      case .priority(let id, let priority):
        if let ticket = decodes[id]?.ticket { decoder.reprioritize(ticket, to: priority.rawValue) }
      case .abandoned(let id):
        if let ticket = remove(id)?.ticket { decoder.cancel(ticket) }
      }
    }
  }

  private func addDeadline(of load: ActiveLoad) {
    guard let deadline = load.deadline else { return }
    deadlines.add(load.id, at: deadline)
    // Most loads end long before their deadline: drop the timers of those that have ended.
    guard deadlines.count > 4 * coalescer.subscriptionCount + 64 else { return }
    var known: [LoadID: Set<Instant>] = [:]
    deadlines = deadlines.filter { coalescer.contains($1) && known[$1, default: []].insert($0).inserted }
  }

  /// Ends the loads whose deadline has passed while they wait for a decode.
  ///
  /// - Returns: when the next deadline is due.
  func endOverdue(at now: Instant) -> Instant? {
    while let (_, id) = deadlines.take(dueAt: now) {
      if coalescer.contains(id), let load = client?.activeLoad(id) { client?.deadlinePassed(for: load) }
    }
    return deadlines.next
  }

  /// Closes the decodes that a clear matches to further loads. Their results are delivered, but not cached.
  func detach(_ clear: Clear) {
    for (id, decode) in decodes where clear.matches(decode.candidate.response) {
      decode.mark(clear)
      coalescer.detach(id)
    }
  }
}
