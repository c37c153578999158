internal import HTTPCaching
internal import HTTPTypes
public import ImageCodec
public import ImageStore
internal import Text

/// What the loader tells of itself and of the cache, and what a host puts into the cache.
extension Loader {
  public struct Statistics: Sendable {
    public var waiting: PriorityCounts
    public var active: Int
    /// How many transfers there may be at once.
    public var window: Int
    public var isPaused: Bool
    public var origins: [OriginState]
    public var counts: LoaderCounts
    public var memory: MemoryTier.Counts
    /// All 0 with `--disk-limit 0`.
    public var disk: DiskTier.Counts
    public var decoders: DecoderStatistics
    public var pixels: PixelFolder.Counts
  }

  public func statistics(then completion: @escaping @LoadingActor @Sendable (Statistics) -> Void) {
    // By way of the disk's thread: the loads before this call have been looked up when the answer comes back.
    let look: @Sendable () -> (DiskTier.Counts, PixelFolder.Counts) = { [storage] in
      (storage.tier?.assumeIsolated { $0.counts } ?? DiskTier.Counts(), storage.pixels.assumeIsolated { $0.counts })
    }
    storage.perform(look) { [weak self] disk, pixels in
      guard let self else { return }
      completion(
        Statistics(
          waiting: self.scheduler.waiting + self.scheduler.putOff.byPriority + self.scheduler.reserved,
          active: self.scheduler.activeCount,
          window: self.scheduler.window.size,
          isPaused: self.isPaused,
          origins: self.scheduler.originStates(atMost: 100, heldBack: self.heldBack), counts: self.counts,
          memory: self.memory.counts,
          disk: disk, decoders: self.decoder.statistics, pixels: pixels))
    }
  }

  /// The origins whose health has changed since the last call: to `limited`, `suspended` or `down`, with the reason, or
  /// to `healthy` again.
  public func takeHealthChanges() -> [OriginState] { scheduler.takeHealthChanges() }

  /// The items of prefetches that are not loads yet, by origin.
  private var heldBack: [Origin: Int] {
    prefetches.values.flatMap(\.heldBack).reduce(into: [:]) { $0[$1.origin, default: 0] += $1.count }
  }

  /// What the cache knows of a key.
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
    /// The cache directory that it lies in: a read-only one only where the other has nothing.
    public var directory: String?
    /// Of what lies on disk: when it was last given to a host, and how many times since it was stored.
    public var usedAt: Int?
    public var uses: Int?
    /// How many responses are stored that differ by what their Vary names; 0 for none.
    public var variants = 0
    /// The request fields by which they differ, without their values, which may be secrets.
    public var varyingFields: [String] = []
    /// The canonical transforms of which results are stored.
    public var transforms: [String] = []
    /// Why it failed a short while ago, and until when it is answered `recentlyFailed`.
    public var failure: LoadError.Kind?
    public var failedUntil: ContinuousClock.Instant?
    /// The process that transfers it now, for all workers of the directory: this one, or another.
    public var leaseHolder: Int?
    /// Why it is fresh or stale, in words.
    public var reason = "not stored"
  }

  /// Looks into the cache as a load like this would, without using or changing it: no transfer, no promotion.
  public func query(
    _ request: LoadRequest, then completion: @escaping @LoadingActor @Sendable (CacheReport) -> Void
  ) {
    let (key, partition) = (request.key, CachePartition.partition(of: request))
    let variant = request.variant
    applyPeerInvalidations()
    let isBeingPut = isBeingPut(key)
    let before = isBeingPut ? [] : peekMemory(key, partition, variant)
    let failure = failures.failure(
      of: CacheIdentity(key: key, partition: partition), acceptsAnything: false, maxBytes: 0, now: .now)
    storage.perform({ [storage] in
      // Else what has just come would seem to be transferred still.
      storage.tier?.assumeIsolated { $0.endLeases() }
      return storage.inspect(key, partition, variant)
    }) { [weak self] onDisk in
      guard let self else { return }
      let remembered = (isBeingPut ? self.peekMemory(key, partition, variant) : before).filter {
        $0.response.variant == variant
      }
      var report = CacheReport()
      report.isInMemory = !remembered.isEmpty
      report.isOnDisk = !onDisk.candidates.isEmpty
      report.variants = max(onDisk.candidates.count, remembered.count)
      let all = (remembered + onDisk.candidates).map(\.response)
      report.varyingFields = Set(all.flatMap { $0.varyingHeaders.lines.map(\.name) }).sorted()
      report.transforms = onDisk.transforms
      report.failure = failure?.error.kind
      report.failedUntil = failure?.until
      if let failure { report.reason = "not stored; failed a short while ago: \(failure.error.message)" }
      if let first = remembered.first ?? onDisk.candidates.first { self.describe(first.response, in: &report) }
      if let first = onDisk.candidates.first, let tier = self.storage.tier(of: first) {
        report.path = tier.absolutePath(of: first.response)
        report.directory = tier.cacheDirectory
        report.usedAt = onDisk.usage?.lastUse
        report.uses = onDisk.usage?.count
      }
      // A lease of another worker on what is fresh is not for a transfer any more: it ends with the commit.
      if !report.isFresh {
        report.leaseHolder = self.peerTable.flatMap { $0.holder(of: $0.leaseRequest(request.sharedHash(in: partition))) }
      }
      completion(report)
    }
  }

  private func describe(_ response: StoredResponse, in report: inout CacheReport) {
    let now = storage.now()
    report.isFresh = policy.isFresh(response.cached, at: now)
    report.byteCount = response.byteCount
    report.storedAt = response.storedAt
    report.expiresAt = max(policy.freshUntil(response.cached), response.storedAt)
    report.entityTag = response.headers["etag"]
    report.reason = policy.explain(response.cached, now: now)
  }

  // MARK: - Putting in

  /// What a host has and wants to have in the cache.
  public enum Content: Sendable {
    case bytes([UInt8])
    /// An absolute path. The file is copied.
    case file(String)
  }

  /// Keeps an image that the host brings, under the key: fresh until `--max-age`. What was stored there is replaced,
  /// and what was asked for before does not replace it in turn: see `isSupersededByHostStore`.
  public func put(
    _ content: Content, as request: LoadRequest,
    then completion: @escaping @LoadingActor @Sendable (Result<LoadedImage, LoadError>) -> Void
  ) {
    let id = makeID()
    let now = storage.now()
    let draft = StoredResponse(
      key: request.key, partition: CachePartition.partition(of: request), url: request.url,
      headers: StoredResponse.headersOfHost(StoredResponse.mediaType(told: nil), at: now),
      requestTime: now, responseTime: now, storedAt: now, validatedAt: now, expiresAt: now + policy.maxAge,
      mediaType: StoredResponse.mediaType(told: nil))
    let began = ContinuousClock.now
    let largestInMemory = memory.largestEntry
    let key = ExactString(request.key)
    hostStores[key] = ((hostStores[key]?.count ?? 0) + 1, id)
    storage.perform({ [storage] in
      // Nobody is to ask a server for it once the host knows that it is there.
      defer { storage.tier?.assumeIsolated { $0.listForOthers() } }
      return StoreOperation.put(
        content, as: draft, delivery: DeliveryPlan(request), maxBytes: request.maxBytes, largestInMemory: largestInMemory,
        id: id, in: storage)
    }) { [weak self] outcome in
      guard let self else { return }
      self.releaseID(id)
      self.hostStores[key] = self.hostStores[key].flatMap { $0.count > 1 ? ($0.count - 1, $0.latest) : nil }
      switch outcome {
      case .failure(let error):
        completion(.failure(error))
      case .success(let stored):
        let image = CacheIdentity(key: draft.key, partition: draft.partition)
        self.recentHostStores.remember(id, of: image, now: .now)
        let isInMemory = self.remember(stored.response, stored.bytes)
        guard isInMemory || stored.response.isOnDisk || self.pendingInvalidations.reach(stored.response) else {
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
            image.timing.total = began.duration(to: .now)
            image.timing.firstByte = image.timing.total
            return image
          })
      }
    }
  }
}

extension StoredResponse {
  /// What a server or a `data:` URL says it is, unless it says nothing, or more than a media type ever is.
  static func mediaType(told text: String?) -> String {
    guard let text, !text.isEmpty, text.utf8.count <= 1000 else { return "application/octet-stream" }
    return text
  }

  /// Header fields of what no server sent: fresh for as long as the policy lets anything be.
  static func headersOfHost(_ mediaType: String, at time: Int) -> HeaderFields {
    ["content-type": mediaType, "date": HTTPDate.format(time), "cache-control": "max-age=2147483648"]
  }
}

extension LoadedImage {
  init(
    _ response: StoredResponse, as status: CacheStatus, path: String? = nil, data: [UInt8]? = nil,
    placeholder: Placeholder? = nil, head: Response? = nil
  ) {
    self.init(
      key: response.key, cache: status, byteCount: response.byteCount, mediaType: response.mediaType,
      format: response.format, width: response.width, height: response.height, frames: response.frames,
      orientation: response.orientation, path: path, data: data,
      source: response.metadata?.source.map(Source.init), placeholder: placeholder,
      isDamaged: response.metadata?.isDamaged == true, finalURL: response.finalURL, response: head)
  }
}
