internal import HTTPCaching
public import HTTPTransport
internal import HTTPTypes
internal import ImageStore
internal import Text
internal import Threads

/// Brings images: from memory, from disk, else by a transfer that all who want the same share.
///
/// Lives on the loading thread and only decides; the scheduler says what is next, the transport and the disk have
/// threads of their own and answer by `LoadingActor.run`. Each load is told its end exactly once, whatever order
/// cancelling, arriving and failing come in: whoever takes it out of `loads` tells it, and nobody can do so twice.
@LoadingActor
public final class Loader {
  let transport: Transport
  let storage: DiskServices
  public let decoder: any ImageDecoding
  private(set) var settings: LoaderSettings

  var scheduler: Scheduler
  var memory: MemoryTier
  var failures = NegativeCache()
  var partialBodies: PartialBodyBudget
  var index = LoadIndex()
  var loads = SlotMap<LoadID, ActiveLoad>()
  var jobs = SlotMap<JobID, JobRecord>()
  var prefetches: [LoadID: Prefetch] = [:]
  /// How many loads have a place reserved that they have not taken yet (`ActiveLoad.place`).
  var placesOfLoads = 0
  // What waits for a decoder. See DecodeCoordinator.
  var decodes = DecodeCoalescer()
  var decodeRecords: [DecodeCoalescer.ID: ActiveDecode] = [:]
  var decodeDeadlines = TimerQueue<LoadID>()
  var waitingBytes = DecodeMemoryBudget()
  var corrupt = ExpiringCache<CorruptDecodeKey, LoadError>(timeToLive: .seconds(60), capacity: CorruptDecodeKey.capacity)
  var random = SystemRandomNumberGenerator()
  var startRate = StartRateEstimator()
  var peerWaits = PeerWaitList()
  /// What the workers of the directory write on.
  var peerTable: PeerTable?
  /// How many of the clears that the board tells of this worker has carried out, too.
  var clearCount: UInt64 = 0
  /// The transfers that all have left and that go on for the cache, and until when. See TransferAbandonment.
  var orphanedTransfers: [JobID: ContinuousClock.Instant] = [:]
  /// The job of each key and partition whose answer is being stored. See PreTransferRecheck.
  var jobsBeingStored: [CacheIdentity: JobID] = [:]
  var pendingInvalidations = PendingInvalidations()
  /// What a 304 has changed and the disk's thread has not written yet, by id: what that thread read before is out of
  /// date.
  var pendingRevalidations: [Int64: StoredResponse] = [:]
  /// The images that hosts are putting in, by their keys: how many, and the latest. What memory has there is about to
  /// be replaced.
  var hostStores: [ExactString: (count: Int, latest: LoadID)] = [:]
  /// The latest that have been put in: what was asked for before is not to replace them. Only their number bounds them,
  /// so who waits while a thousand others are put in may do so after all.
  var recentHostStores = ExpiringCache<CacheIdentity, LoadID>(timeToLive: .seconds(1 << 31), capacity: 1000)
  public internal(set) var counts = LoaderCounts()
  /// The names of loads, of prefetches and of what is put in.
  private(set) var names = GenerationalIDPool<LoadID>()

  var policy: CachePolicy { CachePolicy(maxAge: settings.maxAge) }

  /// Whether nobody reads what is written: running transfers go on, none starts.
  public var isOutputStuck = false {
    didSet {
      scheduler.isPaused = isPaused || isOutputStuck
      inlineReads.isClosed = isOutputStuck
      while !isOutputStuck, let tell = deferredCompletions.popFirst() { tell() }
    }
  }
  /// What comes with data and is told as soon as somebody reads: as lines, many would take much memory.
  private var deferredCompletions = FIFO<@LoadingActor () -> Void>()
  /// For images that are read to be written out.
  let inlineReads = InlineReadLimiter()
  /// Whether the host wants no transfers to start.
  public var isPaused = false {
    didSet { scheduler.isPaused = isPaused || isOutputStuck }
  }

  public init(transport: Transport, storage: DiskServices, decoder: any ImageDecoding, settings: LoaderSettings) {
    self.transport = transport
    self.storage = storage
    self.decoder = decoder
    scheduler = Scheduler(limits: settings.limits)
    memory = MemoryTier(limit: settings.memoryLimit)
    partialBodies = PartialBodyBudget(diskLimit: settings.diskLimit)
    self.settings = settings
    apply(settings)
    reattachPeerTable()
  }

  /// Puts settings in force for all that starts from now on.
  public func apply(_ settings: LoaderSettings) {
    self.settings = settings
    scheduler.limits = settings.limits
    memory.setLimit(settings.memoryLimit)
    partialBodies.setDiskLimit(settings.diskLimit)
    failures.timeToLive = settings.failedTimeToLive
    corrupt.timeToLive = settings.failedTimeToLive
  }

  /// A name for a load or a prefetch to come, which has to come. It is free again when its observer has heard the end.
  public func makeID() -> LoadID { names.take() }

  /// Sets a name free. Nothing is known under it any more.
  func releaseID(_ id: LoadID) { names.giveBack(id) }

  /// Accepts a load. Its observer hears of it from within this call on.
  public func submit(_ request: LoadRequest, as id: LoadID, for observer: any LoadObserver) {
    submit(request, as: id, for: observer, isInternal: false, place: nil)
  }

  /// - Parameters:
  ///   - isInternal: whether the host knows nothing of the load, so that it cannot name it.
  ///   - place: the priority at which a place in the queue is reserved for it.
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
    if !serveFromCache(load, from: remembered(request.key, load.partition, request.variant)) { join(load) }
  }

  /// Does what is due: starts transfers, ends what is late. To be called after each batch of work on the loading
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
    return [scheduler.nextTimer, abortOverdue(at: now), sendHeartbeat(at: now), endOverdueDecodes(at: now)]
      .compactMap(\.self).min()
  }

  func startTransfers(at now: ContinuousClock.Instant, needsPlace: Bool = false) {
    scheduler.undecoded = decodes.arrived
    // What waits for the disk has sent nothing yet.
    scheduler.findQuiet(at: now) { jobs[$0]?.download?.isAnswered }
    lookUpNames()
    var starts: [JobID]
    repeat {
      starts = scheduler.takeStarts(at: now, needsPlace: needsPlace)
      let own = starts.filter { acquireLease($0, at: now) }
      startRate.note(own.count, at: now)
      for job in own { start(job, at: now) }
      // What another worker transfers, or what turned out to need no transfer, leaves its slot to the next.
    } while starts.contains { scheduler.job($0)?.phase != .active }
  }

  // MARK: - The end of a load

  /// Cancels a load or a prefetch. False when it is answered already.
  @discardableResult
  public func cancel(_ id: LoadID) -> Bool {
    if let prefetch = prefetches[id] {
      prefetch.cancel()
      return true
    }
    return finish(id, .failure(LoadError(.cancelled, "cancelled")))
  }

  /// Tells a load its end, if nobody has before.
  @discardableResult
  func finish(_ id: LoadID, _ result: Result<LoadedImage, LoadError>) -> Bool {
    guard let load = loads[id] else { return false }
    if isOutputStuck, case .success(let image) = result, image.data != nil {
      unsubscribe(load)
      deferCompletion(load) { $0.finish(id, result) }
      return true
    }
    loads.remove(id)
    index.remove(id, load.labels)
    releasePlace(of: load)
    if load.request.processing != nil { unsubscribeFromDecodes(id) }
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

  /// Has `tell` called when the output is read again, unless the load has been told its end by then.
  func deferCompletion(_ load: ActiveLoad, _ tell: @escaping @LoadingActor (Loader) -> Void) {
    deferredCompletions.append { [weak self] in
      if let self, self.loads[load.id] === load { tell(self) }
    }
  }

  /// The load waits for no transfer any more.
  func unsubscribe(_ load: ActiveLoad) {
    switch scheduler.leave(load.id) {
    case .unknown, .stillNeeded: break
    case .orphanedJob(let job): forget(job)
    case .orphanedTransfer(let job): abandonTransfer(of: job, leftBy: load)
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
