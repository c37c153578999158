internal import HTTPCaching
public import HTTPTransport
internal import HTTPTypes
internal import ImageStore
public import Platform
internal import Text
internal import Threads

/// Loads images: from memory, from disk, or by a transfer shared by all loads that want the same image.
///
/// Runs on the loading thread. The components decide: `CacheCoordinator` what is stored, `JobCoordinator` what is
/// transferred, `DecodeCoordinator` what is decoded. The transport and the disk have threads of their own and answer
/// through `LoadingActor.run`. Each load ends exactly once, in whatever order cancellation, arrival and failure come:
/// only the call that removes it from the registry calls its observer.
@LoadingActor
public final class Loader {
  let storage: DiskServices
  let registry = LoadRegistry()
  let cache: CacheCoordinator
  let peers: PeerCoordinator
  let jobs: JobRegistry
  let coordinator: JobCoordinator
  let previews: PreviewCoordinator
  let decodes: DecodeCoordinator
  let deliveries: DeliveryCoordinator
  /// Receives the loads that have ended.
  var observation = LoadObservation()
  private var failureEvent: FailureAlarm.Event?
  /// When memory of released pixels may be deleted; nil if there is none.
  var nextPixelCleanup: Instant?

  /// Records what the loader does, if it is set.
  public var trace: LoaderTrace? {
    didSet { storage.recorder = trace?.recorder }
  }

  /// Whether nobody reads the output: running transfers continue, no transfer starts.
  public var isOutputStuck: Bool {
    get { deliveries.isOutputBlocked }
    set {
      jobs.scheduler.isPaused = isPaused || newValue
      deliveries.isOutputBlocked = newValue
    }
  }
  /// Whether the host has paused the start of transfers.
  public var isPaused = false {
    didSet { jobs.scheduler.isPaused = isPaused || isOutputStuck }
  }

  public init(
    transport: Transport, storage: DiskServices, decoder: any ImageDecoding, settings: LoaderSettings
  ) {
    self.storage = storage
    peers = PeerCoordinator(storage: storage)
    cache = CacheCoordinator(storage: storage, peers: peers, settings: settings)
    decodes = DecodeCoordinator(decoder: decoder, cache: cache, storage: storage, maxPixels: settings.maxPixels)
    deliveries = DeliveryCoordinator(cache: cache, storage: storage)
    jobs = JobRegistry(loads: registry, limits: settings.limits)
    previews = PreviewCoordinator(decodes, jobs)
    coordinator = JobCoordinator(
      jobs: jobs, registry: registry, cache: cache, peers: peers, decodes: decodes, deliveries: deliveries,
      storage: storage, transport: transport, previews: previews, settings: settings)
    (cache.loader, coordinator.loader) = (self, self)
    (decodes.client, deliveries.client) = (deliveries, self)
    apply(settings)
    reattachPeers()
  }

  /// Applies settings to everything that starts from now on.
  public func apply(_ settings: LoaderSettings) {
    cache.apply(settings)
    coordinator.apply(settings)
    decodes.maxPixels = settings.maxPixels
    decodes.corruptTimeToLive = settings.failedTimeToLive
  }

  public var decoder: any ImageDecoding { decodes.decoder }

  // MARK: - Loads

  /// Returns an ID for a load or a prefetch, which must then be submitted. The ID becomes free when its observer has
  /// received the end.
  public func makeID() -> LoadID { registry.makeID() }

  /// Accepts a load. Its observer may be called from within this call.
  public func submit(_ request: LoadRequest, as id: LoadID, for observer: any LoadObserver) {
    submit(request, as: id, for: observer, requester: .host, place: nil)
  }

  /// - Parameters:
  ///   - requester: the source of the load. The host can select only its own.
  ///   - place: the priority at which a queue place is reserved for the load.
  func submit(
    _ request: LoadRequest, as id: LoadID, for observer: any LoadObserver, requester: LoadReport.Requester,
    place: Priority?
  ) {
    applyPeerInvalidations()
    let load = ActiveLoad(
      id: id, request: request, partition: CachePartition.partition(of: request), acceptedAt: .now,
      generation: cache.clearsBegun, observer: observer, requester: requester)
    load.place = place
    jobs.adoptPlace(of: load)
    cancelReplaced(by: request)
    registry.insert(load)
    if let file = request.cachedFile { identify(load, file) } else { lookUp(load) }
  }

  private func lookUp(_ load: ActiveLoad) {
    coordinator.submit(load, with: cache.lookUpMemory(load.request.key, load.partition, load.request.variant))
  }

  /// Learns the version of a load's file on a thread for such files. A variant that was made
  /// from this version serves the load, and no other. Until then it waits in a job of its own, with its deadline.
  private func identify(_ load: ActiveLoad, _ file: HostPlace) {
    _ = jobs.scheduler.subscribe(
      load.id, to: TransferKey(ofOnly: load.id), of: load.request.origin, priority: load.priority,
      needsDecoder: false, deadline: load.deadline)
    storage.perform(onHostFiles: true, { Result { () throws(StoreError) in try file.identified() } }) {
      [weak self] found in
      guard let self, self.registry[load.id] === load else { return }
      self.coordinator.unsubscribe(load)
      switch found {
      case .failure(let error): self.finish(load.id, .failure(LoadError(error)))
      case .success(let file):
        let identified = load.identified(file)
        self.registry.remove(load)
        self.registry.insert(identified)
        self.applyPeerInvalidations()
        self.lookUp(identified)
      }
    }
  }

  /// Cancels the loads in the request's slot if they are for another image.
  func cancelReplaced(by request: LoadRequest) {
    for other in registry.loadsReplaced(by: request) { cancel(other) }
  }

  /// Runs the due work: starts transfers and ends overdue loads. Must be called after each batch of work on the loading
  /// thread.
  ///
  /// - Returns: when to call again if nothing happens before.
  public func advance() -> Instant? {
    let now = Instant.now
    for (id, attempts) in coordinator.expire(at: now) {
      var error = LoadError.timeout(.deadline, "the deadline passed")
      error.attempts = attempts
      finish(id, .failure(error))
    }
    cache.failures.forgetOld(now: now)
    reattachPeers()
    applyPeerInvalidations()
    coordinator.pollPeers(at: now)
    jobs.scheduler.undecoded = decodes.arrived
    coordinator.transfers.start(at: now)
    failureEvent = observation.alarm.check(at: now) ?? failureEvent
    return [
      trace?.sample(figures, at: now), observation.alarm.nextCheck, jobs.scheduler.nextTimer,
      peers.sendHeartbeat(at: now), decodes.endOverdue(at: now), dropFreePixels(at: now),
    ]
    .compactMap(\.self).min()
  }

  // MARK: - Ending a load

  /// Cancels a load or a prefetch. Returns false if it has ended already.
  @discardableResult
  public func cancel(_ id: LoadID) -> Bool {
    if let prefetch = registry.prefetch(id) {
      prefetch.cancel()
      return true
    }
    return finish(id, .failure(LoadError(.cancelled, "cancelled")))
  }

  /// Ends a load: removes it and calls its observer. Returns false if it has ended already.
  @discardableResult
  func finish(_ id: LoadID, _ result: Result<LoadedImage, LoadError>) -> Bool {
    guard let load = registry[id] else { return false }
    // Its outputs are taking their names, and its success follows.
    if case .failure = result, load.commitPoint?.close() == false { return false }
    registry.remove(load)
    deliveries.remove(id)
    jobs.releasePlace(of: load)
    if load.request.processing != nil { decodes.unsubscribe(id) }
    coordinator.unsubscribe(load)
    load.timeline.end(at: .now)
    let report = LoadReport(of: load, result)
    record(report)
    trace?.ended(TracedLoad(report, source: load.request.source, priority: load.priority))
    switch result {
    case .success(var image):
      image.timeline = load.timeline
      load.observer.load(id, ended: .success(image))
    case .failure(var error):
      error.timeline = load.timeline
      load.observer.load(id, ended: .failure(error))
    }
    registry.releaseID(id)
    if case .file = load.request.source { coordinator.lookups.fileEnded(id) }
    return true
  }

  private func record(_ report: LoadReport) { observation.record(report, at: storage.now()) }

  /// Records the failure of a prefetch item that did not become a load.
  func recordFailure(_ error: LoadError, ofItem url: String, at origin: Origin) {
    record(
      LoadReport(
        requester: .prefetch, url: url, origin: origin, outcome: .failure(error), attempts: error.attempts,
        timeline: LoadTimeline(acceptedAt: .now)))
  }

  /// Whether most loads fail, if that has changed since the last call or is to be repeated.
  public func takeFailureEvent() -> FailureAlarm.Event? { failureEvent.take() }
}

extension LoadReport {
  @LoadingActor
  fileprivate init(of load: ActiveLoad, _ result: Result<LoadedImage, LoadError>) {
    let (outcome, attempts): (Outcome, Int) =
      switch result {
      case .success(let image): (.image(image.cache, byteCount: image.content.byteCount), load.attempts)
      case .failure(let error): (.failure(error), error.attempts)
      }
    self.init(
      load: load.id.serial, transfer: load.transfer, requester: load.requester, url: load.request.url,
      origin: load.request.origin, outcome: outcome, attempts: attempts, timeline: load.timeline)
  }
}

/// The loader as its components see it.
extension Loader: DeliveryClient {
  func activeLoad(_ id: LoadID) -> ActiveLoad? { registry[id] }

  /// Submits a load that no host waits for.
  func submitInBackground(_ request: LoadRequest) {
    submit(request, as: makeID(), for: DiscardingObserver.shared, requester: .revalidation, place: nil)
  }

  /// Fails the prefetch items that wait for an origin that is down.
  func originDown(_ origin: Origin, _ error: LoadError) {
    for prefetch in registry.allPrefetches { prefetch.originDown(origin, error) }
  }

  func end(_ load: ActiveLoad, _ result: Result<LoadedImage, LoadError>) { finish(load.id, result) }

  func join(_ load: ActiveLoad) { coordinator.join(load) }

  func transferAgain(_ load: ActiveLoad, mayStart: Bool) -> Bool {
    coordinator.transferAgain(load, mayStart: mayStart)
  }

  func unsubscribe(_ load: ActiveLoad) { coordinator.unsubscribe(load) }

  func process(
    _ candidate: Candidate, for load: ActiveLoad, _ step: DecodePlan.Step, as status: CacheStatus,
    at stage: DeliveryStage, isUrgent: Bool
  ) {
    decodes.process(candidate, for: load, step, as: status, at: stage, isUrgent: isUrgent)
  }

  func boostCachedEvent(of load: ActiveLoad, until limit: Instant) {
    decodes.boostCachedEvent(of: load.id, until: limit)
  }
}
