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
    public var transfers: TransferCounts
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
      let queued = self.jobs.scheduler.waiting + self.jobs.scheduler.putOff.byPriority + self.jobs.scheduler.reserved
      completion(
        Statistics(
          waiting: queued + self.jobs.scheduler.files.counts,
          active: self.jobs.scheduler.activeCount, window: self.jobs.scheduler.transfers.window.size,
          isPaused: self.isPaused,
          origins: self.jobs.scheduler.originStates(atMost: 100, heldBack: self.heldBack),
          originCounts: self.jobs.scheduler.originCounts, transfers: self.coordinator.transfers.counts,
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
    public var stored: StoredResponse?
    /// Unix seconds.
    public var expiresAt: Int?
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
    /// The decision that a load with the request would come to, such as `serve` or `transfer`.
    public var decision = "transfer"
  }

  /// Looks up the cache as a load with this request would, without side effects: no transfer, no promotion, no use
  /// counted.
  public func query(_ request: LoadRequest, then completion: @escaping @LoadingActor @Sendable (CacheReport) -> Void) {
    guard let file = request.cachedFile else { return inspect(request, then: completion) }
    storage.perform(onHostFiles: true, { Result { () throws(StoreError) in try file.identified() } }) {
      [weak self] found in
      var identified = request
      if case .success(let file) = found { identified.source = .file(file) }
      self?.inspect(identified) { report in
        var report = report
        if case .failure(let error) = found { report.reason = error.message }
        completion(report)
      }
    }
  }

  private func inspect(
    _ request: LoadRequest, then completion: @escaping @LoadingActor @Sendable (CacheReport) -> Void
  ) {
    let (key, partition) = (request.key, CachePartition.partition(of: request))
    let variant = request.variant
    applyPeerInvalidations()
    let isHostStoring = cache.pending.isHostStoring(key)
    let before = isHostStoring ? [] : cache.peekMemory(key, partition, [variant])
    let failure = cache.failures.failure(
      of: request.identity(in: partition), acceptsAnything: false, maxBytes: 0, now: .now)
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
      if let failure {
        (report.failure, report.failedUntil) = (failure.error.kind, failure.until)
        report.reason = "not stored; failed recently: \(failure.error.message)"
      }
      report.describe(request, inMemory: inMemory, onDisk, in: self.storage, by: self.cache.policy)
      // A peer's lease on a fresh response is about to end: the response is committed.
      if !report.isFresh { report.leaseHolder = self.peers.leaseHolder(of: request, in: partition) }
      completion(report)
    }
  }

  // MARK: - Host stores

  /// The image that a host supplies.
  public enum Content: Sendable {
    case bytes([UInt8])
    /// A file, which is copied.
    case file(HostPlace)
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
      content: ImageDescription())
    let timeline = LoadTimeline(acceptedAt: .now, in: .store)
    let largestInMemory = cache.largestInMemory
    cache.pending.beginHostStore(id, of: request.key)
    storage.perform({ [storage] in
      // Publish it to the peers before the host gets the answer, so that none of them requests it from a server after
      // that.
      defer { storage.tier?.assumeIsolated { $0.listForOthers() } }
      return StoreOperation(
        body: .bytes([]), draft: draft, tiers: .all, largestInMemory: largestInMemory, needsSize: true,
        deliveries: [(id, nil, DeliveryPlan(request))]
      ).storing(content, maxBytes: request.maxBytes, in: storage)
    }) { [weak self] outcome in
      guard let self else { return }
      self.registry.releaseID(id)
      switch outcome {
      case .failure(let error):
        self.cache.pending.endHostStore(id, of: request.key, as: nil, now: .now)
        completion(.failure(error))
      case .success(let stored):
        let image = CacheIdentity(key: draft.key, partition: draft.partition)
        self.cache.pending.endHostStore(id, of: request.key, as: image, now: .now)
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
            image.timeline?.end(at: .now)
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
    ["content-type": mediaType, "date": HTTPDate.format(time), "cache-control": freshnessOfHost]
  }

  private static let freshnessOfHost = "max-age=2147483648"

  /// Whether no server sent the image.
  var isOfHost: Bool { headers["cache-control"] == Self.freshnessOfHost }
}

extension LoadedImage {
  init(
    _ response: borrowing StoredResponse, as status: CacheStatus, path: String? = nil, data: [UInt8]? = nil,
    placeholder: Placeholder? = nil, head: Response? = nil
  ) {
    self.init(
      key: response.key, cache: status, content: response.content, path: path, data: data,
      source: response.metadata?.source, placeholder: placeholder,
      notes: response.metadata?.notes ?? [], finalURL: response.finalURL, response: head)
    content.digest = []
    expiresAt = max(response.expiresAt, response.storedAt)
  }
}

extension Loader.CacheReport {
  fileprivate mutating func describe(
    _ request: LoadRequest, inMemory: [Candidate], _ onDisk: DiskServices.Inspection, in storage: DiskServices,
    by policy: CachePolicy
  ) {
    let now = storage.now()
    isInMemory = !inMemory.isEmpty
    isOnDisk = !onDisk.candidates.isEmpty
    variants = max(onDisk.candidates.count, inMemory.count)
    let all = (inMemory + onDisk.candidates).map(\.response)
    varyingFields = Set(all.flatMap { $0.varyingHeaders.lines.map(\.name) }).sorted()
    transforms = onDisk.transforms
    decision =
      policy.decide(
        mode: request.cacheMode, requestHeaders: request.headers,
        stored: all.filter { request.accepts($0) }.map(\.cached), now: now
      ).name
    if let first = all.first {
      isFresh = policy.isFresh(first.cached, at: now)
      stored = first
      expiresAt = max(policy.freshUntil(first.cached), first.storedAt)
      reason = policy.explain(first.cached, now: now)
      if let file = request.cachedFile {
        isFresh = first.headers["etag"] == file.version?.tag
        reason = isFresh ? "fresh: the file is unchanged" : "stale: the file has changed"
      }
    }
    if let first = onDisk.candidates.first, let tier = storage.tier(of: first) {
      path = tier.absolutePath(of: first.response)
      directory = tier.cacheDirectory
      (usedAt, uses) = (onDisk.usage?.lastUse, onDisk.usage?.count)
    }
  }
}

extension DiskServices {
  /// The answer to a `query` of a program beside the workers, which sees neither their memory nor their failures. Must
  /// run on the disk thread.
  public func report(on request: LoadRequest, maxAge: Int) -> Loader.CacheReport {
    let partition = request.partition
    var report = Loader.CacheReport()
    report.describe(
      request, inMemory: [], inspect(request.key, partition, request.variant), in: self,
      by: CachePolicy(maxAge: maxAge))
    if !report.isFresh {
      report.leaseHolder = tier?.assumeIsolated { $0.leaseHolder(of: request.sharedHash(in: partition)) }
    }
    return report
  }
}

extension CacheDecision {
  fileprivate var name: String {
    switch self {
    case .serve: "serve"
    case .serveThenRevalidate: "serveThenRevalidate"
    case .showThenRevalidate: "showThenRevalidate"
    case .revalidate: "revalidate"
    case .fetch: "transfer"
    case .notCached: "notCached"
    }
  }
}
