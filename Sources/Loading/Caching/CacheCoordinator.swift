internal import HTTPCaching
internal import HTTPTypes
internal import ImageStore
internal import Text
internal import Threads
internal import Tracing

/// The cache as the loads see it: the memory tier, the lookups on the disk thread, the negative cache, and the rules of
/// RFC 9111 for what may be served.
///
/// Every candidate that it returns has been checked against the clears, 304s and host stores that the disk thread has
/// not completed (`PendingWrites`).
@LoadingActor
final class CacheCoordinator {
  weak var loader: Loader?
  private let storage: DiskServices
  private let peers: PeerCoordinator
  private(set) var memory: MemoryTier
  var failures = NegativeCache()
  var pending = PendingWrites()
  private(set) var policy: CachePolicy

  init(storage: DiskServices, peers: PeerCoordinator, settings: LoaderSettings) {
    (self.storage, self.peers) = (storage, peers)
    memory = MemoryTier(limit: settings.memoryLimit)
    policy = CachePolicy(maxAge: settings.maxAge)
  }

  func apply(_ settings: LoaderSettings) {
    memory.setLimit(settings.memoryLimit)
    failures.timeToLive = settings.failedTimeToLive
    policy = CachePolicy(maxAge: settings.maxAge)
  }

  /// The size in bytes of the largest response that the memory tier takes.
  var largestInMemory: Int64 { memory.largestEntry }

  // MARK: - Memory

  /// Looks up the named variant and the original in the memory tier. The entry that is likely to be served counts as
  /// used.
  func lookUpMemory(_ key: String, _ partition: String, _ variant: String) -> [Candidate] {
    if pending.isHostStoring(key) { return [] }
    if variant.isEmpty { return memory.look(up: key, partition: partition).map(Candidate.init(inMemory:)) }
    let variants = memory.look(up: key, partition: partition, variant: variant)
    if variants.isEmpty { return memory.look(up: key, partition: partition).map(Candidate.init(inMemory:)) }
    return Candidate.merging(
      variants.map(Candidate.init(inMemory:)),
      memory.peek(at: key, partition: partition).map(Candidate.init(inMemory:)))
  }

  /// As `lookUpMemory`, but counts nothing as used.
  func peekMemory(_ key: String, _ partition: String, _ variants: Set<String>) -> [Candidate] {
    let originals = memory.peek(at: key, partition: partition).map(Candidate.init(inMemory:))
    let found = variants.filter { !$0.isEmpty }.flatMap { memory.peek(at: key, partition: partition, variant: $0) }
    return found.isEmpty ? originals : Candidate.merging(found.map(Candidate.init(inMemory:)), originals)
  }

  /// The variant in memory that was made from this original.
  func variantInMemory(of original: Candidate, named name: String) -> Candidate? {
    guard !original.isTransient else { return nil }
    let response = original.response
    return memory.peek(at: response.key, partition: response.partition, variant: name)
      .first { $0.response.sharesOriginal(with: response) }.map(Candidate.init(inMemory:))
  }

  /// The only entry in memory that can answer the request; nil if there are several or none.
  func onlyEntry(for request: LoadRequest) -> MemoryTier.Entry? {
    if pending.isHostStoring(request.key) { return nil }
    let found = memory.look(up: request.key, partition: CachePartition.partition(of: request), variant: request.variant)
    guard found.count == 1, let only = found.first else { return nil }
    let isOfAnother = !request.variant.isEmpty && memory.hasReplacement(forOriginalOf: only.response)
    return isOfAnother ? nil : only
  }

  /// Stores a new response in the memory tier. If it comes without its bytes, or has been cleared since, the entry that
  /// it replaces is removed instead.
  ///
  /// - Returns: whether the response is in memory now.
  @discardableResult
  func remember(_ response: StoredResponse, _ bytes: [UInt8]?) -> Bool {
    if let bytes, !isCleared(response) { return memory.store(response, bytes: bytes) }
    memory.remove(replacedBy: response)
    return false
  }

  /// Removes from memory the entry that a response replaces which is not stored.
  func remove(replacedBy response: StoredResponse) { memory.remove(replacedBy: response) }

  /// Puts a response that was read from disk into the memory tier, with the updates of 304s that came since.
  func promote(_ response: StoredResponse, bytes: [UInt8]) {
    applyPeerInvalidations()
    guard !isCleared(response) else { return }
    memory.promote(response, bytes: bytes)
    for updated in pending.revalidations(of: response.key) { memory.update(updated) }
  }

  /// Records that the file of a response is gone.
  func removeFile(of response: StoredResponse) { memory.recordMissingFile(of: response) }

  /// Merges the metadata of a candidate into that of both tiers.
  func updateMetadata(of candidate: Candidate) {
    let response = candidate.response
    memory.recordMetadata(of: response)
    guard let tier = storage.tier(of: candidate) else { return }
    storage.executor.run { tier.assumeIsolated { $0.recordMetadata(of: response) } }
  }

  /// Removes all responses of a key from memory: its file was damaged.
  func removeFromMemory(_ key: String) { _ = memory.clear(.key(key), now: storage.now()) }

  // MARK: - Lookups

  struct Lookup {
    var candidates: [Candidate]
    /// Whether the disk tier may have a partial body of an earlier load.
    var hasPartial = false
    /// The number of the first clear that matches a candidate: loads submitted after it must not see the candidates.
    var firstClear: Int?
  }

  /// Whether any directory can be looked up: the read-write tier or a read-only one.
  var hasDiskTiers: Bool { storage.tier != nil || !storage.readOnlyTiers.isEmpty }

  /// Looks up the named variants and the original of a key in all tiers, after everything that the disk thread has yet
  /// to do. Calls `completion` at once if there is no disk tier.
  ///
  /// - Parameter isBypassed: whether the request does not use the cache. It passes through the disk thread too, so that
  ///   it does not overtake earlier requests.
  func lookUp(
    _ key: String, _ partition: String, _ variants: Set<String>, isBypassed: Bool,
    then completion: @escaping @LoadingActor @Sendable (Lookup) -> Void
  ) {
    let isHostStoring = pending.isHostStoring(key)
    let known = isBypassed || isHostStoring ? [] : peekMemory(key, partition, variants)
    guard hasDiskTiers || isHostStoring else { return completion(Lookup(candidates: known)) }
    if isBypassed { return storage.perform({}) { completion(Lookup(candidates: [])) } }
    storage.look(up: key, partition: partition, variants: variants) { [weak self] found in
      guard let self else { return }
      let known = isHostStoring ? self.peekMemory(key, partition, variants) : known
      var candidates = Candidate.current(self.merge(known, found.candidates))
      let firstClear = self.pending.invalidations.mark(&candidates)
      completion(Lookup(candidates: candidates, hasPartial: found.hasPartial, firstClear: firstClear))
    }
  }

  /// Merges the candidates of both tiers. A response that is in both is served from memory, with the newer metadata if
  /// a peer has revalidated it on disk.
  private func merge(_ known: [Candidate], _ found: [Candidate]) -> [Candidate] {
    if known.isEmpty { return found }
    var merged = known
    for candidate in found {
      guard let index = known.firstIndex(where: { $0.response.id == candidate.response.id }) else {
        merged.append(candidate)
        continue
      }
      let (own, stored) = (known[index].response, candidate.response)
      guard (own.responseTime, own.expiresAt) < (stored.responseTime, stored.expiresAt) else { continue }
      merged[index].response = stored
      memory.update(stored)
    }
    return merged
  }

  // MARK: - Decisions

  /// - Parameter candidates: those that the load accepts.
  func decision(for load: ActiveLoad, from candidates: [Candidate]) -> CacheDecision {
    if load.request.cachedFile != nil {
      return CacheDecision(ofFileIn: load.request.cacheMode, isStored: !candidates.isEmpty)
    }
    return policy.decide(
      mode: load.request.cacheMode, requestHeaders: load.request.headers, stored: candidates.map(\.response.cached),
      now: storage.now())
  }

  /// Whether the load fails if the cache cannot answer it.
  func mustNotTransfer(_ load: ActiveLoad) -> Bool {
    guard load.request.cacheMode == .onlyIfCached || !load.request.fields.arePlain else { return false }
    return decision(for: load, from: []) == .notCached
  }

  /// The stored response that the load may get instead of the error (`stale-if-error`, RFC 5861 section 4).
  func fallback(for load: ActiveLoad, among stored: [Candidate], after error: LoadError) -> Candidate? {
    load.accepted(of: stored).first {
      policy.mayServeOnError(
        $0.response.cached, mode: load.request.cacheMode, requestHeaders: load.request.headers, failure: error.status,
        now: storage.now())
    }
  }

  /// Whether the response is fresh and no header of a request can change that.
  func isPlainlyFresh(_ response: StoredResponse) -> Bool {
    policy.isPlainlyFresh(
      freshUntil: response.expiresAt, headers: response.headers, responseTime: response.responseTime,
      now: storage.now())
  }

  // MARK: - Revalidation

  /// Stores the update of a 304 in both tiers.
  ///
  /// - Parameter lease: released when the update is committed to the index.
  func apply(revalidation candidate: Candidate, under lease: Lease?) {
    let response = candidate.response
    memory.update(response)
    // A read-only directory cannot be updated.
    guard response.isOnDisk, [.memory, .disk].contains(candidate.location), let tier = storage.tier else { return }
    pending.begin(revalidation: response)
    storage.perform(
      .revalidate,
      {
        tier.assumeIsolated { tier in
          tier.update(response)
          if let lease { tier.retainUntilCommit(lease) }
        }
      }
    ) { [weak self] in self?.pending.end(revalidation: response) }
  }

  // MARK: - Clears

  /// The number of clears begun so far.
  var clearsBegun: Int { pending.invalidations.count }

  /// Removes what a clear matches from memory. It applies to every result that the disk thread has yet to return.
  ///
  /// - Returns: the entries removed from memory.
  func invalidate(_ clear: Clear) -> [StoredResponse] {
    pending.invalidations.begin(clear)
    storage.perform({}) { [weak self] in self?.pending.invalidations.endFirst() }
    return clear.tiers == .disk ? [] : memory.clear(clear.filter, now: clear.time)
  }

  /// `PeerTable.clearCount`: the clears so far by all workers of the directory that this worker has applied.
  var clearCount: UInt64 { peers.clearCount }

  /// Applies the clears that peers have published. Must precede each change of the memory tier by a result of the disk
  /// thread.
  func applyPeerInvalidations() { loader?.applyPeerInvalidations() }

  /// Whether a pending clear removes the response from any tier.
  func isCleared(_ response: StoredResponse) -> Bool { pending.invalidations.reach(response) }

  /// Marks a candidate as cleared if a pending clear removes it from every tier.
  func mark(_ candidate: inout Candidate) { pending.invalidations.mark(&candidate) }
}

extension Candidate {
  init(inMemory entry: MemoryTier.Entry) {
    self.init(response: entry.response, bytes: entry.bytes, location: .memory)
  }

  var status: CacheStatus { location == .memory ? .memory : .disk }
}
