internal import ImageStore
internal import Platform
internal import Threads

/// Delivers stored responses to loads, from memory at once or through the disk thread: a `cached` event first, then the
/// answer.
///
/// While nobody reads the output, results with image data wait, and no file is read for one.
@LoadingActor
final class DeliveryCoordinator: DecodeClient {
  /// The maximum wait of an answer for the `cached` event. Shorter than the lifetime of the answer's file before it is
  /// delivered.
  private static let longestWait = Duration.seconds(30)

  weak var client: (any DeliveryClient)?
  private let cache: CacheCoordinator
  private let storage: DiskServices
  private var cachedEvents = CachedEventOrder()
  /// The limit on images that are read to be written to the output.
  private let inlineReads = InlineReadLimiter()
  /// Results with image data that wait until the output is read again. They wait as closures because their lines would
  /// take much more memory.
  private var deferredCompletions = FIFO<@LoadingActor () -> Void>()

  init(cache: CacheCoordinator, storage: DiskServices) { (self.cache, self.storage) = (cache, storage) }

  /// Whether nobody reads the output.
  var isOutputBlocked = false {
    didSet {
      inlineReads.isClosed = isOutputBlocked
      while !isOutputBlocked, let tell = deferredCompletions.popFirst() { tell() }
    }
  }

  /// Whether no load has a `cached` event.
  var isEmpty: Bool { cachedEvents.isEmpty }

  func activeLoad(_ id: LoadID) -> ActiveLoad? { client?.activeLoad(id) }

  private func isActive(_ load: ActiveLoad) -> Bool { client?.activeLoad(load.id) === load }

  // MARK: - Content

  /// A delivery through the disk thread.
  private struct Delivery: Sendable {
    let candidate: Candidate
    let load: ActiveLoad
    let status: CacheStatus
    let stage: DeliveryStage
    var plan: DeliveryPlan
    var source: DeliveryPlan.Source
  }

  /// Delivers a candidate to a load: at once if its bytes or its file suffice, otherwise through the disk thread. Has
  /// it decoded first if the load needs that.
  func deliver(_ candidate: Candidate, to load: ActiveLoad, as status: CacheStatus, at stage: DeliveryStage) {
    guard isActive(load) else { return }
    if let refusal = load.request.refusal(of: candidate.response) {
      return complete(load, .failure(refusal), at: stage)
    }
    if let step = load.request.processing?.step(for: candidate.response) {
      // Decode first: a load whose source was evicted while it waited (it must not happen twice), and a `cached` event
      // that a finished answer is waiting for.
      let isUrgent = stage == .answer ? load.hasRestarted : cachedEvents.holdsAnswer(of: load.id)
      client?.process(candidate, for: load, step, as: status, at: stage, isUrgent: isUrgent)
      return
    }
    if stage == .answer { load.timeline.enter(.deliver, at: .now) }
    var plan = DeliveryPlan(load.request, at: stage)
    if let content = deliverAtOnce(candidate.response, candidate.bytes, in: candidate.location, plan) {
      return complete(load, candidate, content, as: status, at: stage)
    }
    let source: DeliveryPlan.Source
    if case .scratch(let path) = candidate.location {
      source = .scratch(path: path, bytes: candidate.bytes)
    } else if let tier = storage.tier(of: candidate) {
      source = .stored(candidate.response, in: tier)
      plan.wantsBytes =
        candidate.location == .disk && candidate.bytes == nil && !candidate.isTransient
        && load.request.store.contains(.memory)
        && candidate.response.content.byteCount <= cache.largestInMemory
    } else {
      source = .bytes(candidate.bytes ?? [], format: candidate.response.content.format)
    }
    let delivery = Delivery(candidate: candidate, load: load, status: status, stage: stage, plan: plan, source: source)
    if !plan.wantsData || candidate.bytes != nil {
      perform(delivery) {}
    } else if case .stored(let response, let tier) = source, !inlineReads.isOpen(for: response.content.byteCount) {
      // The reader keeps the file from a clear that comes later and does not apply to this load.
      storage.perform({ tier.assumeIsolated { $0.addReader(of: response) } }) {
        self.read(delivery, keptIn: $0 ? tier : nil)
      }
    } else {
      read(delivery, keptIn: nil)
    }
  }

  /// Performs a delivery that reads a file into memory, when the output can take it.
  ///
  /// - Parameter tier: the tier that keeps the file until it has been read.
  private func read(_ delivery: Delivery, keptIn tier: DiskTier?) {
    let response = delivery.candidate.response
    inlineReads.begin(response.content.byteCount) { [weak self, storage, inlineReads] in
      let end: @LoadingActor @Sendable () -> Void = {
        inlineReads.end(response.content.byteCount)
        if let tier { storage.perform({ tier.assumeIsolated { $0.removeReader(of: response.id) } }) {} }
      }
      guard let self, self.isActive(delivery.load) else { return end() }
      self.perform(delivery, then: end)
    }
  }

  /// - Parameter then: called when the delivery has ended, even if the load has ended before.
  private func perform(_ delivery: Delivery, then: @escaping @LoadingActor @Sendable () -> Void) {
    storage.deliver(delivery.plan, from: delivery.source) { [weak self] result in
      self?.performed(delivery, result)
      then()
    }
  }

  private func performed(_ delivery: Delivery, _ result: Result<DeliveryPlan.DeliveredContent, DeliveryPlan.Failure>) {
    let (load, stage) = (delivery.load, delivery.stage)
    guard isActive(load) else { return }
    var candidate = delivery.candidate
    switch result {
    case .success(let content):
      if content.isForMemory, let bytes = content.bytes { cache.promote(candidate.response, bytes: bytes) }
      complete(load, candidate, content, as: delivery.status, at: stage)
    case .failure(.damaged) where candidate.bytes != nil:
      // The file was evicted, but memory still has the bytes.
      cache.removeFile(of: candidate.response)
      (candidate.response.id, candidate.location) = (0, .memory)
      deliver(candidate, to: load, as: delivery.status, at: stage)
    case .failure(.damaged):
      cache.removeFromMemory(candidate.response.key)
      load.bypassesCache = true
      lostSource(for: load, at: stage)
    case .failure(.failed(let error)): complete(load, .failure(error), at: stage)
    }
  }

  /// The content of a delivery that needs no work on the disk thread: an empty one, or one from the memory tier, with a
  /// single check that the file exists.
  func deliverAtOnce(
    _ response: StoredResponse, _ bytes: [UInt8]?, in location: Candidate.Location, _ plan: DeliveryPlan
  ) -> DeliveryPlan.DeliveredContent? {
    if plan.isNothing { return DeliveryPlan.DeliveredContent() }
    guard location == .memory, plan.saveTo == nil else { return nil }
    let tier = storage.tier(of: response, in: location)
    if plan.wantsPath {
      guard let path = tier?.deliverPath(of: response) else { return nil }
      return DeliveryPlan.DeliveredContent(path: path, bytes: nil)
    }
    tier?.recordUse(of: response)
    return DeliveryPlan.DeliveredContent(path: nil, bytes: bytes)
  }

  private func complete(
    _ load: ActiveLoad, _ candidate: Candidate, _ content: DeliveryPlan.DeliveredContent, as status: CacheStatus,
    at stage: DeliveryStage
  ) {
    let image = LoadedImage(candidate.response, content, for: load, as: status, now: storage.now())
    complete(load, .success(image), at: stage)
  }

  // MARK: - The cached event and the answer

  /// Sends the `cached` event, once per load, from the tier that is found first.
  ///
  /// The event is dropped if the cached image turns out to be missing or damaged, if it takes too long, if the deadline
  /// passes, or if it would consist of pixels, which no one would release, or of several files.
  func show(_ candidate: Candidate, to load: ActiveLoad, as status: CacheStatus) {
    let isDropped = load.request.processing.map { $0.deliversPixels || $0.outputs != nil } ?? false
    guard cachedEvents.begin(load.id, isDropped: isDropped) else { return }
    deliver(candidate, to: load, as: status, at: .cachedEvent)
  }

  /// Gives a load its answer, which ends it, or its `cached` event. A failure drops the event.
  ///
  /// An answer waits for a pending event, which becomes urgent. The load takes no part in anything else from then on.
  func complete(_ load: ActiveLoad, _ result: Result<LoadedImage, LoadError>, at stage: DeliveryStage) {
    guard isActive(load) else { return }
    switch stage {
    case .answer:
      if case .success = result { load.timeline.enter(.deliver, at: .now) }
      guard cachedEvents.hold(result, of: load.id) else { return finish(load, result) }
      client?.unsubscribe(load)
      client?.boostCachedEvent(of: load, until: Instant.now + Self.longestWait)
    case .cachedEvent:
      if case .success(let image) = result {
        if isOutputBlocked, image.hasData {
          return deferCompletion(load) { $0.complete(load, result, at: .cachedEvent) }
        }
        var shown = image
        shown.timeline = load.timeline
        shown.timeline?.end(at: .now)
        load.emit(.cached(shown))
      }
      endCachedEvent(of: load)
    }
  }

  func lostSource(for load: ActiveLoad, at stage: DeliveryStage) {
    switch stage {
    case .answer: client?.join(load)
    case .cachedEvent: endCachedEvent(of: load)
    }
  }

  func transferAgain(_ load: ActiveLoad, mayStart: Bool) -> Bool {
    client?.transferAgain(load, mayStart: mayStart) ?? false
  }

  /// Ends the wait for the `cached` event, and with it the load if its answer is ready.
  private func endCachedEvent(of load: ActiveLoad) {
    guard let answer = cachedEvents.end(load.id) else { return }
    // The host receives the path only now.
    if case .success(let image) = answer, let path = image.path { storage.markDelivered(path) }
    finish(load, answer)
  }

  /// Ends a load at its deadline, with its answer if that waits for the `cached` event.
  func deadlinePassed(for load: ActiveLoad) {
    if cachedEvents.holdsAnswer(of: load.id) { return endCachedEvent(of: load) }
    client?.end(load, .failure(LoadError.timeout(.deadline, "the deadline passed")))
  }

  /// Forgets a load that has ended.
  func remove(_ load: LoadID) { cachedEvents.remove(load) }

  // MARK: - The output

  private func finish(_ load: ActiveLoad, _ result: Result<LoadedImage, LoadError>) {
    if isOutputBlocked, case .success(let image) = result, image.hasData {
      client?.unsubscribe(load)
      return deferCompletion(load) { $0.finish(load, result) }
    }
    client?.end(load, result)
  }

  /// Calls `tell` when the output is read again, unless the load has ended by then.
  private func deferCompletion(_ load: ActiveLoad, _ tell: @escaping @LoadingActor (DeliveryCoordinator) -> Void) {
    deferredCompletions.append { [weak self] in
      if let self, self.isActive(load) { tell(self) }
    }
  }
}

/// The loads that get results, as `DeliveryCoordinator` sees them.
@LoadingActor
protocol DeliveryClient: AnyObject {
  /// The load with this ID; nil if it has ended.
  func activeLoad(_ id: LoadID) -> ActiveLoad?
  /// Ends the load.
  func end(_ load: ActiveLoad, _ result: Result<LoadedImage, LoadError>)
  /// Removes a load that is about to end from its job.
  func unsubscribe(_ load: ActiveLoad)
  /// Looks for the image once more, in the cache and then by a transfer.
  func join(_ load: ActiveLoad)
  /// Has a damaged image transferred again: see `DecodeClient`.
  func transferAgain(_ load: ActiveLoad, mayStart: Bool) -> Bool
  /// Has a response decoded that cannot be delivered as it is.
  func process(
    _ candidate: Candidate, for load: ActiveLoad, _ step: DecodePlan.Step, as status: CacheStatus,
    at stage: DeliveryStage, isUrgent: Bool)
  /// Hurries a `cached` event for which an answer waits, and reports the deadline of the load at the limit.
  func boostCachedEvent(of load: ActiveLoad, until limit: Instant)
}
