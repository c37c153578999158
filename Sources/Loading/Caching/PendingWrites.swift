internal import ImageStore
internal import Platform
internal import Text

/// The changes of the cache that the disk thread has not completed yet. A pure value.
///
/// A result of the disk thread may have been read before such a change. The cache coordinator asks here what still
/// applies to it, so that no other component has to.
struct PendingWrites {
  var invalidations = PendingInvalidations()
  /// Responses updated by a 304, by id. Results that the disk thread read before are out of date.
  private var revalidations: [Int64: StoredResponse] = [:]
  /// The images whose transferred responses are being stored, each with the jobs that wait for that.
  private var stores: [CacheIdentity: [JobID]] = [:]
  /// The host stores in progress, by key: their number and the latest. The entries that memory has for these keys are
  /// about to be replaced.
  private var hostStores: [ExactString: (count: Int, latest: LoadID)] = [:]
  /// The last 1,000 host stores. Responses to older requests must not overwrite them. A request that outlives 1,000
  /// further stores is no longer recognised as older.
  private var recentHostStores = ExpiringCache<CacheIdentity, LoadID>(timeToLive: .seconds(1 << 31), capacity: 1000)

  var isEmpty: Bool { invalidations.isEmpty && revalidations.isEmpty && stores.isEmpty && hostStores.isEmpty }

  // MARK: - Revalidations

  mutating func begin(revalidation response: StoredResponse) { revalidations[response.id] = response }

  mutating func end(revalidation response: StoredResponse) {
    if revalidations[response.id] == response { revalidations[response.id] = nil }
  }

  /// The updated responses of a key that the disk thread has not written yet.
  func revalidations(of key: String) -> [StoredResponse] {
    revalidations.values.filter { $0.key.hasSameBytes(as: key) }
  }

  // MARK: - Stores

  mutating func beginStore(of image: CacheIdentity) { stores[image] = stores[image] ?? [] }

  /// Lets the job wait if a response of the image is being stored. Returns false if none is.
  mutating func waitForStore(of image: CacheIdentity, _ job: JobID) -> Bool {
    stores[image]?.append(job) != nil
  }

  /// - Returns: the jobs that waited.
  mutating func endStore(of image: CacheIdentity) -> [JobID] { stores.removeValue(forKey: image) ?? [] }

  // MARK: - Host stores

  mutating func beginHostStore(_ id: LoadID, of key: String) {
    hostStores[ExactString(key), default: (0, id)].count += 1
    hostStores[ExactString(key)]?.latest = id
  }

  /// - Parameter image: what was stored; nil if nothing was.
  mutating func endHostStore(_ id: LoadID, of key: String, as image: CacheIdentity?, now: Instant) {
    hostStores[ExactString(key)] = hostStores[ExactString(key)].flatMap {
      $0.count > 1 ? ($0.count - 1, $0.latest) : nil
    }
    if let image { recentHostStores.remember(id, of: image, now: now) }
  }

  /// Whether a host `store` for this key is in progress. A load submitted now must see the stored image: it is routed
  /// through the disk thread, and reads the memory tier only after that.
  func isHostStoring(_ key: String) -> Bool { !hostStores.isEmpty && hostStores[ExactString(key)] != nil }

  /// Whether the host has stored anything of late, or is storing.
  var hasHostStores: Bool { !hostStores.isEmpty || recentHostStores.count > 0 }

  /// Whether the host has stored the image since a load was submitted, or is storing one.
  func isSuperseded(_ image: CacheIdentity, since load: LoadID, now: Instant) -> Bool {
    if !hostStores.isEmpty, let store = hostStores[image.key], load < store.latest { return true }
    return recentHostStores.value(of: image, now: now).map { load < $0 } ?? false
  }
}
