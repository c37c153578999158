internal import HTTPCaching
public import HTTPTransport
internal import HTTPTypes
internal import ImageStore
internal import Text
internal import Threads

/// Loads images: from memory, from disk, or by a transfer shared by all loads that want the same image.
///
/// Runs on the loading thread and makes all decisions there. `Scheduler` determines the next transfer; the transport
/// and the disk have threads of their own and answer through `LoadingActor.run`. Each load ends exactly once, in
/// whatever order cancellation, arrival and failure come: only the call that removes it from `loads` calls its
/// observer.
@LoadingActor
public final class Loader {
  let transport: Transport
  let storage: DiskServices
  let decodes: DecodeCoordinator
  let previews: PreviewCoordinator
  let deliveries: DeliveryCoordinator
  private(set) var settings: LoaderSettings

  var scheduler: Scheduler
  var memory: MemoryTier
  var failures = NegativeCache()
  var partialBodies: PartialBodyBudget
  var index = LoadIndex()
  var loads = SlotMap<LoadID, ActiveLoad>()
  var jobs = SlotMap<JobID, JobRecord>()
  var prefetches: [LoadID: Prefetch] = [:]
  /// The number of loads with a reserved queue place that they have not used yet (`ActiveLoad.place`).
  var placesOfLoads = 0
  var random = SystemRandomNumberGenerator()
  var startRate = StartRateEstimator()
  var peerWaits = PeerWaitList()
  /// The coordination table shared by the workers of the cache directory.
  var peerTable: PeerTable?
  /// The number of clears published in the peer table that this worker has applied.
  var clearCount: UInt64 = 0
  /// The images whose responses are being stored, each with the jobs that wait for that. See PreTransferRecheck.
  var imagesBeingStored: [CacheIdentity: [JobID]] = [:]
  var pendingInvalidations = PendingInvalidations()
  /// Responses updated by a 304 that the disk thread has not written yet, by id. Results that it read before are out of
  /// date.
  var pendingRevalidations: [Int64: StoredResponse] = [:]
  /// The host stores in progress, by key: their number and the latest. The entries that memory has for these keys are
  /// about to be replaced.
  var hostStores: [ExactString: (count: Int, latest: LoadID)] = [:]
  /// The last 1,000 host stores. Responses to older requests must not overwrite them. A request that outlives 1,000
  /// further stores is no longer recognised as older.
  var recentHostStores = ExpiringCache<CacheIdentity, LoadID>(timeToLive: .seconds(1 << 31), capacity: 1000)
  public internal(set) var counts = LoaderCounts()
  /// The IDs of loads, prefetches and host stores.
  private(set) var names = GenerationalIDPool<LoadID>()

  public var decoder: any ImageDecoding { decodes.decoder }

  var policy: CachePolicy { CachePolicy(maxAge: settings.maxAge) }

  /// Whether nobody reads the output: running transfers continue, no transfer starts.
  public var isOutputStuck: Bool {
    get { deliveries.isOutputBlocked }
    set {
      scheduler.isPaused = isPaused || newValue
      deliveries.isOutputBlocked = newValue
    }
  }
  /// Whether the host has paused the start of transfers.
  public var isPaused = false {
    didSet { scheduler.isPaused = isPaused || isOutputStuck }
  }

  public init(transport: Transport, storage: DiskServices, decoder: any ImageDecoding, settings: LoaderSettings) {
    self.transport = transport
    self.storage = storage
    decodes = DecodeCoordinator(decoder: decoder, storage: storage, maxPixels: settings.maxPixels)
    previews = PreviewCoordinator(decodes)
    deliveries = DeliveryCoordinator(storage: storage)
    scheduler = Scheduler(limits: settings.limits)
    memory = MemoryTier(limit: settings.memoryLimit)
    partialBodies = PartialBodyBudget(diskLimit: settings.diskLimit)
    self.settings = settings
    (deliveries.client, deliveries.cache) = (self, self)
    (decodes.client, decodes.cache, previews.client) = (deliveries, self, self)
    apply(settings)
    reattachPeerTable()
  }

  /// Applies settings to everything that starts from now on.
  public func apply(_ settings: LoaderSettings) {
    self.settings = settings
    scheduler.limits = settings.limits
    memory.setLimit(settings.memoryLimit)
    partialBodies.setDiskLimit(settings.diskLimit)
    failures.timeToLive = settings.failedTimeToLive
    decodes.maxPixels = settings.maxPixels
    decodes.corruptTimeToLive = settings.failedTimeToLive
  }

  /// Returns an ID for a load or a prefetch, which must then be submitted. The ID becomes free when its observer has
  /// received the end.
  public func makeID() -> LoadID { names.take() }

  /// Frees an ID, which must no longer be in use.
  func releaseID(_ id: LoadID) { names.giveBack(id) }

  /// Accepts a load. Its observer may be called from within this call.
  public func submit(_ request: LoadRequest, as id: LoadID, for observer: any LoadObserver) {
    submit(request, as: id, for: observer, isInternal: false, place: nil)
  }

  /// - Parameters:
  ///   - isInternal: whether the load is unknown to the host, which therefore cannot select it.
  ///   - place: the priority at which a queue place is reserved for the load.
  func submit(_ request: LoadRequest, as id: LoadID, for observer: any LoadObserver, isInternal: Bool, place: Priority?)
  {
    applyPeerInvalidations()
    let load = ActiveLoad(
      id: id, request: request, partition: CachePartition.partition(of: request), acceptedAt: .now,
      generation: pendingInvalidations.count, observer: observer, isInternal: isInternal)
    load.place = place
    if place != nil { placesOfLoads += 1 }
    clearSlot(for: request)
    loads[id] = load
    index.insert(id, load.labels)
    if !serveFromCache(load, from: lookUpMemory(request.key, load.partition, request.variant)) { join(load) }
  }

  /// Runs the due work: starts transfers and ends overdue loads. Must be called after each batch of work on the loading
  /// thread.
  ///
  /// - Returns: when to call again if nothing happens before.
  public func advance() -> ContinuousClock.Instant? {
    let now = ContinuousClock.now
    let expired = scheduler.expired(at: now)
    for job in expired.jobs { endAtDownOrigin(job) }
    for id in expired.loads {
      var error = LoadError.timeout(.deadline, "the deadline passed")
      error.attempts = scheduler.job(of: id).flatMap { scheduler.job($0)?.attempt } ?? 1
      finish(id, .failure(error))
    }
    failures.forgetOld(now: now)
    reattachPeerTable()
    pollPeerWaits(at: now)
    startTransfers(at: now)
    return [scheduler.nextTimer, sendHeartbeat(at: now), decodes.endOverdue(at: now)]
      .compactMap(\.self).min()
  }

  func startTransfers(at now: ContinuousClock.Instant, needsPlace: Bool = false) {
    scheduler.undecoded = decodes.arrived
    // A job that still waits for the disk has sent no request yet.
    scheduler.findQuiet(at: now) { jobs[$0]?.download?.isAnswered }
    lookUpNames()
    var starts: [JobID]
    repeat {
      starts = scheduler.takeStarts(at: now, needsPlace: needsPlace)
      let own = starts.filter { acquireLease($0, at: now) }
      startRate.note(own.count, at: now)
      for job in own { start(job, at: now) }
      // A job that was deferred to a peer, or needed no transfer, leaves its slot to the next one.
    } while starts.contains { scheduler.job($0)?.phase != .active }
  }

  // MARK: - Ending a load

  /// Cancels a load or a prefetch. Returns false if it has ended already.
  @discardableResult
  public func cancel(_ id: LoadID) -> Bool {
    if let prefetch = prefetches[id] {
      prefetch.cancel()
      return true
    }
    return finish(id, .failure(LoadError(.cancelled, "cancelled")))
  }

  /// Ends a load: removes it and calls its observer. Returns false if it has ended already.
  @discardableResult
  func finish(_ id: LoadID, _ result: Result<LoadedImage, LoadError>) -> Bool {
    guard let load = loads[id] else { return false }
    loads.remove(id)
    index.remove(id, load.labels)
    releasePlace(of: load)
    deliveries.remove(id)
    if load.request.processing != nil { decodes.unsubscribe(id) }
    unsubscribe(load)
    switch result {
    case .success(var image):
      image.timing.total = load.acceptedAt.duration(to: .now)
      if load.observer !== DiscardingObserver.shared { count(image) }
      load.observer.load(id, ended: .success(image))
    case .failure:
      load.observer.load(id, ended: result)
    }
    releaseID(id)
    return true
  }

  /// Removes the load from its job. Abandons the job or its transfer if no other load needs it.
  func unsubscribe(_ load: ActiveLoad) {
    switch scheduler.leave(load.id) {
    case .unknown, .stillNeeded: break
    case .orphanedJob(let job): forget(job)
    case .orphanedTransfer(let job): abortTransfer(of: job)
    }
  }

  func count(_ image: LoadedImage) {
    if image.cache != .miss { counts.bytesSaved += image.byteCount }
    switch image.cache {
    case .miss: counts.misses += 1
    case .memory: counts.memoryHits += 1
    case .disk: counts.diskHits += 1
    case .revalidated: counts.revalidated += 1
    case .stale: counts.stale += 1
    }
  }
}
