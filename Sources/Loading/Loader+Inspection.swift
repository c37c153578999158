internal import HTTPCaching
internal import HTTPTypes
public import ImageCodec
public import ImageStore

/// What the loader tells of itself and of the cache, and what a host puts into the cache.
extension Loader {
  public struct Statistics: Sendable {
    public var waiting: PriorityCounts
    public var active: Int
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
          waiting: self.scheduler.waiting + self.scheduler.backingOff.byPriority + self.scheduler.reserved,
          active: self.scheduler.activeCount,
          isPaused: self.isPaused,
          origins: self.scheduler.originStates(atMost: 100, heldBack: self.heldBack), counts: self.counts,
          memory: self.memory.counts,
          disk: disk, decoders: self.decoder.statistics, pixels: pixels))
    }
  }

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
    /// How many responses are stored that differ by what their Vary names; 0 for none.
    public var variants = 0
    /// Why it is fresh or stale, in words.
    public var reason = "not stored"
  }

  /// Looks into the cache as a load like this would, without using or changing it: no transfer, no promotion.
  public func query(
    _ request: LoadRequest, then completion: @escaping @LoadingActor @Sendable (CacheReport) -> Void
  ) {
    let (key, partition) = (request.key, Credentials.partition(of: request))
    let variant = request.variant
    let remembered = glimpsed(key, partition, variant).filter { $0.response.variant == variant }
    let failure = failures.failure(
      of: FailureMemory.Subject(key: key, partition: partition), acceptsAnything: false, maxBytes: 0, now: .now)
    storage.look(up: key, partition: partition, variant: variant) { [weak self] found in
      guard let self else { return }
      let found = found.candidates.filter { $0.response.variant == variant }
      var report = CacheReport()
      report.isInMemory = !remembered.isEmpty
      report.isOnDisk = !found.isEmpty
      report.variants = max(found.count, remembered.count)
      if let failure { report.reason = "not stored; failed a short while ago: \(failure.error.message)" }
      if let first = remembered.first ?? found.first {
        self.describe(first, in: &report)
      }
      if let first = found.first, let tier = self.storage.tier(of: first) {
        report.path = tier.absolutePath(of: first.response)
      }
      completion(report)
    }
  }

  private func describe(_ candidate: Candidate, in report: inout CacheReport) {
    let response = candidate.response
    let now = storage.now()
    report.isFresh = policy.freshUntil(response.cached) > now
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

  /// Keeps an image that the host brings, under the key: fresh until `--max-age`. What was stored there is replaced.
  public func put(
    _ content: Content, as request: LoadRequest,
    then completion: @escaping @LoadingActor @Sendable (Result<LoadedImage, LoadError>) -> Void
  ) {
    let id = makeID()
    let now = storage.now()
    let draft = StoredResponse(
      key: request.key, partition: Credentials.partition(of: request), url: request.url,
      headers: StoredResponse.headersOfHost("application/octet-stream", at: now),
      requestTime: now, responseTime: now, storedAt: now, validatedAt: now, expiresAt: now + policy.maxAge,
      mediaType: "application/octet-stream")
    let began = ContinuousClock.now
    let generation = generation
    storage.perform({ [storage] in
      Arrival.put(
        content, as: draft, delivery: Delivery(request), maxBytes: request.maxBytes, id: id, in: storage)
    }) { [weak self] outcome in
      guard let self else { return }
      self.retire(id)
      switch outcome {
      case .failure(let error):
        completion(.failure(error))
      case .success(let stored):
        let isCleared = generation != self.generation
        let isInMemory = self.remember(stored.response, isCleared ? nil : stored.bytes)
        guard isCleared || isInMemory || stored.response.isOnDisk else {
          return completion(.failure(LoadError(.diskFull, "neither disk nor memory has room for the image")))
        }
        guard let delivered = stored.delivered[id] else { return }
        completion(
          delivered.map { delivered in
            var image = LoadedImage(stored.response, as: stored.response.isOnDisk ? .disk : .memory)
            image.path = delivered.path
            image.timing.total = began.duration(to: .now)
            image.timing.firstByte = image.timing.total
            return image
          })
      }
    }
  }
}

extension StoredResponse {
  /// Header fields of what no server sent: fresh for as long as the policy lets anything be.
  static func headersOfHost(_ mediaType: String, at time: Int) -> HeaderFields {
    ["content-type": mediaType, "date": HTTPDate.format(time), "cache-control": "max-age=2147483648"]
  }
}

extension LoadedImage {
  init(_ response: StoredResponse, as status: CacheStatus) {
    self.init(
      key: response.key, cache: status, byteCount: response.byteCount, mediaType: response.mediaType,
      format: response.format, width: response.width, height: response.height, frames: response.frames,
      orientation: response.orientation, finalURL: response.finalURL)
  }
}
