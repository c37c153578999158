internal import HTTPCaching
internal import HTTPTypes
public import ImageCodec
public import ImageStore
public import Platform
internal import Text

/// Statistics, cache queries, and storing images for a host.
extension Loader {
  public struct Statistics: Sendable {
    public var waiting: PriorityCounts
    public var active: Int
    /// The current limit of concurrent transfers.
    public var window: Int
    public var isPaused: Bool
    public var origins: [OriginState]
    public var originCounts: [OriginState.Health: Int]
    public var counts: LoaderCounts
    public var metrics: LoadMetrics
    /// The failures of loads, of prefetch items and of background revalidations, the most frequent kind first.
    public var failures: [FailureTable.Entry]
    public var memory: MemoryTier.Counts
    /// All 0 with `--disk-limit 0`.
    public var disk: DiskTier.Counts
    public var decoders: DecoderStatistics
    public var pixels: PixelFolder.Counts
  }

  public func statistics(then completion: @escaping @LoadingActor @Sendable (Statistics) -> Void) {
    // Pass through the disk thread: the lookups of earlier loads are then complete.
    let look: @Sendable () -> (DiskTier.Counts, PixelFolder.Counts) = { [storage] in
      (storage.tier?.assumeIsolated { $0.counts } ?? .zero, storage.pixels.assumeIsolated { $0.counts })
    }
    storage.perform(look) { [weak self] disk, pixels in
      guard let self else { return }
      completion(
        Statistics(
          waiting: self.jobs.scheduler.waiting + self.jobs.scheduler.putOff.byPriority + self.jobs.scheduler.reserved,
          active: self.jobs.scheduler.activeCount, window: self.jobs.scheduler.transfers.window.size,
          isPaused: self.isPaused,
          origins: self.jobs.scheduler.originStates(atMost: 100, heldBack: self.heldBack),
          originCounts: self.jobs.scheduler.originCounts, counts: self.counts,
          metrics: self.observation.metrics, failures: self.observation.failures.all,
          memory: self.cache.memory.counts, disk: disk,
          decoders: self.decoder.statistics, pixels: pixels))
    }
  }

  /// The origins whose health has changed since the last call, with the new state (`limited`, `suspended`, `down` or
  /// `healthy`) and the reason.
  public func takeHealthChanges() -> [OriginState] { jobs.scheduler.takeHealthChanges() }

  /// The number of prefetch items by origin that are not loads yet.
  private var heldBack: [Origin: Int] {
    registry.allPrefetches.flatMap(\.heldBack).reduce(into: [:]) { $0[$1.origin, default: 0] += $1.count }
  }

  /// The result of a `query`: what the cache knows about a key.
  public struct CacheReport: Sendable {
    public var isInMemory = false
    public var isOnDisk = false
    public var isFresh = false
    public var path: String?
    public var byteCount: Int64?
    /// Unix seconds.
    public var storedAt: Int?
    public var expiresAt: Int?
    public var entityTag: String?
    /// The cache directory of the file; a read-only one only if the read-write one has no entry.
    public var directory: String?
    /// When the file on disk was last delivered to a host, and how many times since it was stored.
    public var usedAt: Int?
    public var uses: Int?
    /// The number of stored responses that differ in the fields named by their Vary; 0 for none.
    public var variants = 0
    /// The names of the request fields in which they differ. Their values may be secret and are left out.
    public var varyingFields: [String] = []
    /// The canonical transforms whose results are stored.
    public var transforms: [String] = []
    /// The kind of the remembered failure, and until when it is answered with `recentlyFailed`.
    public var failure: LoadError.Kind?
    public var failedUntil: Instant?
    /// The process that holds the lease on the transfer: this one or a peer.
    public var leaseHolder: Int?
    /// A textual explanation of why it is fresh or stale.
    public var reason = "not stored"
  }

  /// Looks up the cache as a load with this request would, without side effects: no transfer, no promotion, no use
  /// counted.
  public func query(_ request: LoadRequest, then completion: @escaping @LoadingActor @Sendable (CacheReport) -> Void) {
    let (key, partition) = (request.key, CachePartition.partition(of: request))
    let variant = request.variant
    applyPeerInvalidations()
    let isHostStoring = cache.pending.isHostStoring(key)
    let before = isHostStoring ? [] : cache.peekMemory(key, partition, [variant])
    let failure = cache.failures.failure(
      of: CacheIdentity(key: key, partition: partition), acceptsAnything: false, maxBytes: 0, now: LoadingActor.now)
    storage.perform({ [storage] in
      // Otherwise a response that was just stored would seem to be in transfer still.
      storage.tier?.assumeIsolated { $0.endLeases() }
      return storage.inspect(key, partition, variant)
    }) { [weak self] onDisk in
      guard let self else { return }
      let inMemory = (isHostStoring ? self.cache.peekMemory(key, partition, [variant]) : before).filter {
        $0.response.variant == variant
      }
      var report = CacheReport()
      report.isInMemory = !inMemory.isEmpty
      report.isOnDisk = !onDisk.candidates.isEmpty
      report.variants = max(onDisk.candidates.count, inMemory.count)
      let all = (inMemory + onDisk.candidates).map(\.response)
      report.varyingFields = Set(all.flatMap { $0.varyingHeaders.lines.map(\.name) }).sorted()
      report.transforms = onDisk.transforms
      if let failure {
        (report.failure, report.failedUntil) = (failure.error.kind, failure.until)
        report.reason = "not stored; failed recently: \(failure.error.message)"
      }
      if let first = inMemory.first ?? onDisk.candidates.first { self.describe(first.response, in: &report) }
      if let first = onDisk.candidates.first, let tier = self.storage.tier(of: first) {
        report.path = tier.absolutePath(of: first.response)
        report.directory = tier.cacheDirectory
        (report.usedAt, report.uses) = (onDisk.usage?.lastUse, onDisk.usage?.count)
      }
      // A peer's lease on a fresh response is about to end: the response is committed.
      if !report.isFresh { report.leaseHolder = self.peers.leaseHolder(of: request, in: partition) }
      completion(report)
    }
  }

  private func describe(_ response: StoredResponse, in report: inout CacheReport) {
    let now = storage.now()
    report.isFresh = cache.policy.isFresh(response.cached, at: now)
    report.byteCount = response.byteCount
    report.storedAt = response.storedAt
    report.expiresAt = max(cache.policy.freshUntil(response.cached), response.storedAt)
    report.entityTag = response.headers["etag"]
    report.reason = cache.policy.explain(response.cached, now: now)
  }

  // MARK: - Host stores

  /// The image that a host supplies.
  public enum Content: Sendable {
    case bytes([UInt8])
    /// An absolute path. The file is copied.
    case file(String)
  }

  /// Stores an image for the host under the key, fresh for `--max-age`. It replaces the stored response, and responses
  /// to earlier requests do not replace it: see `PendingWrites.isSuperseded`.
  public func put(
    _ content: Content, as request: LoadRequest,
    then completion: @escaping @LoadingActor @Sendable (Result<LoadedImage, LoadError>) -> Void
  ) {
    let id = registry.makeID()
    let now = storage.now()
    let draft = StoredResponse(
      key: request.key, partition: CachePartition.partition(of: request), url: request.url,
      headers: StoredResponse.headersOfHost(StoredResponse.mediaType(told: nil), at: now),
      requestTime: now, responseTime: now, storedAt: now, validatedAt: now, expiresAt: now + cache.policy.maxAge,
      mediaType: StoredResponse.mediaType(told: nil))
    let timeline = LoadTimeline(acceptedAt: LoadingActor.now, in: .store)
    let largestInMemory = cache.largestInMemory
    cache.pending.beginHostStore(id, of: request.key)
    storage.perform({ [storage] in
      // Publish it to the peers before the host gets the answer, so that none of them requests it from a server after
      // that.
      defer { storage.tier?.assumeIsolated { $0.listForOthers() } }
      return StoreOperation.put(
        content, as: draft, delivery: DeliveryPlan(request), maxBytes: request.maxBytes,
        largestInMemory: largestInMemory, id: id, in: storage)
    }) { [weak self] outcome in
      guard let self else { return }
      self.registry.releaseID(id)
      switch outcome {
      case .failure(let error):
        self.cache.pending.endHostStore(id, of: request.key, as: nil, now: LoadingActor.now)
        completion(.failure(error))
      case .success(let stored):
        let image = CacheIdentity(key: draft.key, partition: draft.partition)
        self.cache.pending.endHostStore(id, of: request.key, as: image, now: LoadingActor.now)
        let isInMemory = self.cache.remember(stored.response, stored.bytes)
        guard isInMemory || stored.response.isOnDisk || self.cache.isCleared(stored.response) else {
          return completion(.failure(LoadError(.diskFull, "neither disk nor memory has room for the image")))
        }
        guard let delivered = stored.delivered[id] else {
          return completion(.failure(LoadError(.internal, "the image was stored without an answer")))
        }
        completion(
          delivered.map { delivered in
            var image = LoadedImage(
              stored.response, as: stored.response.isOnDisk ? .disk : .memory, path: delivered.path)
            image.isKept = stored.isKept
            image.timeline = timeline
            image.timeline?.end(at: LoadingActor.now)
            return image
          })
      }
    }
  }
}

extension StoredResponse {
  /// The media type that a server or a `data:` URL declares. If it is missing or longer than any media type,
  /// `application/octet-stream`.
  static func mediaType(told text: String?) -> String {
    guard let text, !text.isEmpty, text.utf8.count <= 1000 else { return "application/octet-stream" }
    return text
  }

  /// Header fields for an image that no server sent: fresh for as long as the policy allows.
  static func headersOfHost(_ mediaType: String, at time: Int) -> HeaderFields {
    ["content-type": mediaType, "date": HTTPDate.format(time), "cache-control": "max-age=2147483648"]
  }
}

extension LoadedImage {
  init(
    _ response: borrowing StoredResponse, as status: CacheStatus, path: String? = nil, data: [UInt8]? = nil,
    placeholder: Placeholder? = nil, head: Response? = nil
  ) {
    self.init(
      key: response.key, cache: status, byteCount: response.byteCount, mediaType: response.mediaType,
      format: response.format, width: response.width, height: response.height, frames: response.frames,
      orientation: response.orientation, path: path, data: data,
      source: response.metadata?.source, placeholder: placeholder,
      isDamaged: response.metadata?.isDamaged == true, finalURL: response.finalURL, response: head)
  }
}
