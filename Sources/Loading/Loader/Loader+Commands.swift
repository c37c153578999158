internal import HTTPTypes
public import ImageStore

/// The commands of a host for loads under way and for the cache.
extension Loader {
  /// The loads and prefetches that a command applies to.
  public enum Selection: Sendable {
    case one(LoadID)
    case url(String)
    case group(String)
    case slot(String)
    case all
  }

  /// Starts a prefetch: one load without delivery for each request, and one answer for all. All of them have the given
  /// priority.
  public func prefetch(
    _ requests: [LoadRequest], as id: LoadID, group: String?, priority: Priority, for observer: any PrefetchObserver
  ) {
    let queue = PrefetchQueue(requests, limits: scheduler.limits, places: freePlaces)
    reserve(places: queue.placesHeld, at: priority)
    let prefetch = Prefetch(
      id: id, group: group, queue: queue, priority: priority, loader: self, observer: observer)
    prefetches[id] = prefetch
    index.insert(id, LoadIndex.Labels(group: group))
    prefetch.submitNext()
  }

  /// How many more loads may be queued, assuming that each job still in its cache lookup will be.
  private var freePlaces: Int { max(0, scheduler.freePlaces - (scheduler.preparingCount - placesOfLoads)) }

  /// Removes a prefetch that has ended. Returns false if it has been removed before.
  func forget(_ prefetch: Prefetch) -> Bool {
    guard prefetches.removeValue(forKey: prefetch.id) != nil else { return false }
    index.remove(prefetch.id, LoadIndex.Labels(group: prefetch.group))
    return true
  }

  /// Reserves queue places for prefetch items that are not loads yet.
  func reserve(places: Int, at priority: Priority) { scheduler.reserved[priority] += places }

  func release(places: Int, at priority: Priority) { scheduler.reserved[priority] -= places }

  /// Releases the queue place reserved for a load, which has joined the queue or does not need it.
  func releasePlace(of load: ActiveLoad) {
    guard let place = load.place.take() else { return }
    placesOfLoads -= 1
    release(places: 1, at: place)
  }

  private func ids(of selection: Selection) -> [LoadID] {
    switch selection {
    case .one(let id): [id]
    case .url(let url): index.loads(url: url)
    case .group(let group): index.loads(group: group)
    case .slot(let slot): index.loads(slot: slot)
    case .all: (loads.ids.filter { loads[$0]?.isInternal == false } + prefetches.keys).sorted()
    }
  }

  /// Cancels the selected loads and prefetches. Each observer is called before this returns.
  ///
  /// - Returns: the number of cancelled loads and prefetches.
  public func cancel(_ selection: Selection) -> Int {
    ids(of: selection).reduce(0) { $0 + (cancel($1) ? 1 : 0) }
  }

  /// Whether no job and no decode is under way.
  public var isIdle: Bool { scheduler.isEmpty && decodes.isEmpty }

  /// Cancels work that no host waits for. `isIdle` becomes true a little later.
  public func cancelBackgroundWork() {
    for id in loads.ids where loads[id]?.isInternal == true { cancel(id) }
    for job in scheduler.allJobs where scheduler.job(job)?.hasSubscribers == false { abortTransfer(of: job) }
  }

  /// Changes the priority of the selected loads and prefetches.
  ///
  /// - Returns: how many had another priority.
  public func prioritize(_ selection: Selection, _ priority: Priority) -> Int {
    let ids = ids(of: selection)
    return setPriority(priority, of: ids) + ids.count { prefetches[$0]?.setPriority(priority) ?? false }
  }

  /// A lowered load goes to the front of its new level. Lower the loads in reverse, so that they keep their order.
  func setPriority(_ priority: Priority, of ids: [LoadID]) -> Int {
    let (lowered, others) = ids.reduce(into: ([LoadID](), [LoadID]())) { parts, id in
      if scheduler.priority(of: id).map({ $0 > priority }) ?? false { parts.0.append(id) } else { parts.1.append(id) }
    }
    return (others + (scheduler.limits.order == .fifo ? lowered.reversed() : lowered)).count { id in
      loads[id]?.priority = priority
      let isQueued = scheduler.setPriority(priority, of: id)
      return decodes.setPriority(priority, of: id) || isQueued
    }
  }

  // MARK: - The cache

  /// The tiers that a `clear` applies to.
  public enum Tiers: String, Sendable, CaseIterable {
    case memory, disk, all
  }

  /// Clears the cache. Loads submitted after this call see no entry that it removed, and join no transfer started
  /// before.
  ///
  /// - Parameter completion: gets the number of removed entries, each counted once, and their bytes; or why some may be
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

  /// Releases pixels that a host no longer needs: those at a path, or all.
  ///
  /// - Parameter completion: gets the number of released regions.
  public func release(_ path: String?, then completion: @escaping @LoadingActor @Sendable (Int) -> Void) {
    storage.perform(
      { [storage] in
        storage.pixels.assumeIsolated { pixels in path.map { pixels.release($0) ? 1 : 0 } ?? pixels.releaseAll() }
      }, then: completion)
  }

  /// Removes all remembered failures and returns their number.
  public func clearFailures() -> Int { failures.forgetAll() + decodes.forgetFailures() }
}
