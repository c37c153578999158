internal import HTTPTypes
public import ImageStore

/// What a host can do about loads that are under way, and about what is cached.
extension Loader {
  /// Which loads and prefetches are meant.
  public enum Selection: Sendable {
    case one(LoadID)
    case url(String)
    case group(String)
    case slot(String)
    case all
  }

  /// Starts a prefetch: a load that is not delivered for each request, with one answer for all. It has the priority for
  /// all of them.
  public func prefetch(
    _ requests: [LoadRequest], as id: LoadID, group: String?, priority: Priority, for observer: any PrefetchObserver
  ) {
    let queue = PrefetchQueue(requests, limits: scheduler.limits, places: freePlaces)
    reserve(places: queue.placesHeld, at: priority)
    let prefetch = Prefetch(
      id: id, group: group, queue: queue, priority: priority, loader: self, observer: observer)
    prefetches[id] = prefetch
    index.insert(id, LoadIndex.Labels(group: group))
    prefetch.goOn()
  }

  /// How many more may wait when those that are looked for in the cache have found their place.
  private var freePlaces: Int { max(0, scheduler.freePlaces - (scheduler.preparingCount - placesOfLoads)) }

  /// Lets go of a prefetch that has ended. False when it has been before.
  func forget(_ prefetch: Prefetch) -> Bool {
    guard prefetches.removeValue(forKey: prefetch.id) != nil else { return false }
    index.remove(prefetch.id, LoadIndex.Labels(group: prefetch.group))
    return true
  }

  /// Places among those that may wait, kept for items that are not loads yet.
  func reserve(places: Int, at priority: Priority) { scheduler.reserved[priority] += places }

  func release(places: Int, at priority: Priority) { scheduler.reserved[priority] -= places }

  /// The load has taken a place in the queue, or needs none.
  func releasePlace(of load: ActiveLoad) {
    guard let place = load.place.take() else { return }
    placesOfLoads -= 1
    release(places: 1, at: place)
  }

  private func ids(of varyKey: Selection) -> [LoadID] {
    switch varyKey {
    case .one(let id): [id]
    case .url(let url): index.loads(url: url)
    case .group(let group): index.loads(group: group)
    case .slot(let slot): index.loads(slot: slot)
    case .all: (loads.ids.filter { loads[$0]?.isInternal == false } + prefetches.keys).sorted()
    }
  }

  /// Cancels what is meant. Each is told so before this returns.
  ///
  /// - Returns: how many there were.
  public func cancel(_ varyKey: Selection) -> Int {
    ids(of: varyKey).reduce(0) { $0 + (cancel($1) ? 1 : 0) }
  }

  /// Whether nothing is under way: no transfer, no image on its way to disk.
  public var isIdle: Bool { scheduler.isEmpty && decodes.isEmpty }

  /// Gives up what goes on for nobody. It takes a moment until all is at rest.
  public func cancelBackgroundWork() {
    for id in loads.ids where loads[id]?.isInternal == true { cancel(id) }
    for job in scheduler.allJobs where scheduler.job(job)?.hasSubscribers == false { abortTransfer(of: job) }
  }

  /// Changes the priority of what is meant, now.
  ///
  /// - Returns: how many had another one before.
  public func prioritize(_ varyKey: Selection, _ priority: Priority) -> Int {
    let ids = ids(of: varyKey)
    return setPriority(priority, of: ids) + ids.count { prefetches[$0]?.setPriority(priority) ?? false }
  }

  /// A lowered load goes to the front of its level. So that several keep their order, the one that is to be first there
  /// is lowered last.
  func setPriority(_ priority: Priority, of ids: [LoadID]) -> Int {
    let (lowered, others) = ids.reduce(into: ([LoadID](), [LoadID]())) { parts, id in
      if scheduler.priority(of: id).map({ $0 > priority }) ?? false { parts.0.append(id) } else { parts.1.append(id) }
    }
    return (others + (scheduler.limits.order == .fifo ? lowered.reversed() : lowered)).count { id in
      loads[id]?.priority = priority
      let isQueued = scheduler.setPriority(priority, of: id)
      return setDecodePriority(priority, of: id) || isQueued
    }
  }

  // MARK: - The cache

  /// Which tiers a `clear` is about.
  public enum Tiers: String, Sendable, CaseIterable {
    case memory, disk, all
  }

  /// Clears the cache. Loads submitted after this call see nothing of what it removed and join no transfer begun
  /// before.
  ///
  /// - Parameter completion: gets how many entries there were, each counted once, and their bytes; or why some may be
  ///   left.
  public func clear(
    _ filter: ClearFilter, in tiers: Tiers,
    then completion: @escaping @LoadingActor @Sendable (Result<(removed: Int, bytes: Int64), LoadError>) -> Void
  ) {
    let cleared = forget(filter, in: tiers)
    guard tiers != .memory, let tier = storage.tier else {
      return completion(.success((cleared.count, cleared.reduce(0) { $0 + $1.byteCount })))
    }
    let reachesMemory = tiers == .all
    storage.perform({
      tier.assumeIsolated { $0.clear(filter, reachesMemory: reachesMemory, counting: cleared) }
    }) { cleared in
      completion(cleared.failure.map { .failure(LoadError($0)) } ?? .success((cleared.removed, cleared.bytes)))
    }
  }

  /// Takes back pixels that a host is done with: those at a path, or all.
  ///
  /// - Parameter completion: gets how many regions there were.
  public func release(_ path: String?, then completion: @escaping @LoadingActor @Sendable (Int) -> Void) {
    storage.perform(
      { [storage] in
        storage.pixels.assumeIsolated { pixels in path.map { pixels.release($0) ? 1 : 0 } ?? pixels.releaseAll() }
      }, then: completion)
  }

  /// Forgets remembered failures. Returns how many there were.
  public func clearFailures() -> Int { failures.forgetAll() + corrupt.forgetAll() }
}
