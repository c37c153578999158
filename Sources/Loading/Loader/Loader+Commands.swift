internal import HTTPTypes
public import ImageStore
internal import Platform
internal import Tracing

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
    _ requests: [LoadRequest], refused: [(url: String, error: LoadError)] = [], as id: LoadID, group: String?,
    priority: Priority, for observer: any PrefetchObserver
  ) {
    let queue = PrefetchQueue(requests, limits: jobs.scheduler.limits, places: jobs.freePlaces)
    jobs.reserve(places: queue.placesHeld, at: priority)
    let prefetch = Prefetch(id: id, group: group, queue: queue, priority: priority, loader: self, observer: observer)
    registry.insert(prefetch)
    prefetch.start(failing: refused)
  }

  /// Cancels the selected loads and prefetches. Each observer is called before this returns.
  ///
  /// - Returns: the number of cancelled loads and prefetches.
  public func cancel(_ selection: Selection) -> Int {
    registry.select(selection).reduce(0) { $0 + (cancel($1) ? 1 : 0) }
  }

  /// Whether no job and no decode is under way.
  public var isIdle: Bool { jobs.scheduler.isEmpty && decodes.isEmpty }

  /// Cancels work that no host waits for. `isIdle` becomes true a little later.
  public func cancelBackgroundWork() {
    for id in registry.internalLoads { cancel(id) }
    coordinator.cancelBackgroundWork()
  }

  /// Changes the priority of the selected loads and prefetches.
  ///
  /// - Returns: how many had another priority.
  public func prioritize(_ selection: Selection, _ priority: Priority) -> Int {
    let ids = registry.select(selection)
    return setPriority(priority, of: ids) + ids.count { registry.prefetch($0)?.setPriority(priority) ?? false }
  }

  /// A lowered load goes to the front of its new level. Lower the loads in reverse, so that they keep their order.
  func setPriority(_ priority: Priority, of ids: [LoadID]) -> Int {
    let (lowered, others) = ids.reduce(into: ([LoadID](), [LoadID]())) { parts, id in
      if jobs.scheduler.priority(of: id).map({ $0 > priority }) ?? false {
        parts.0.append(id)
      } else {
        parts.1.append(id)
      }
    }
    return (others + (jobs.scheduler.limits.order == .fifo ? lowered.reversed() : lowered)).count { id in
      registry[id]?.priority = priority
      let isQueued = jobs.scheduler.setPriority(priority, of: id)
      if isQueued, let job = jobs.scheduler.job(of: id) { coordinator.permission.raise(for: job) }
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
    let cleared = invalidate(filter, in: tiers)
    guard tiers != .memory, let tier = storage.tier else {
      return completion(.success((cleared.count, cleared.reduce(0) { $0 + $1.content.byteCount })))
    }
    let reachesMemory = tiers == .all
    storage.perform(
      .clear,
      {
        tier.assumeIsolated { $0.clear(filter, reachesMemory: reachesMemory, counting: cleared) }
      }
    ) { cleared in
      if let failure = cleared.failure {
        // Nothing is ever served from an index of another version, so failing to clear it is not an error.
        guard case .unusable = failure.kind else { return completion(.failure(LoadError(failure))) }
      }
      completion(.success((cleared.removed, cleared.bytes)))
    }
  }

  /// Invalidates what matches the filter, in memory and among the jobs and decodes under way.
  ///
  /// - Returns: the entries removed from memory.
  private func invalidate(_ filter: ClearFilter, in tiers: Tiers) -> [StoredResponse] {
    let clear = Clear(filter: filter, tiers: tiers, time: storage.now())
    let removed = cache.invalidate(clear)
    coordinator.invalidate(clear)
    decodes.detach(clear)
    return removed
  }

  /// Applies clears published by peers. Must be called before each memory lookup, before a response that was read is
  /// stored in memory, and with every heartbeat.
  func applyPeerInvalidations() {
    for clearing in peers.takeClearings() {
      _ = invalidate(clearing.filter, in: clearing.reachesMemory ? .all : .disk)
    }
  }

  /// Attaches to the peer table of a cache directory that has been recreated. Clears published in the meantime are
  /// unknown, so everything in memory is cleared.
  func reattachPeers() {
    if peers.reattach() { _ = invalidate(.all, in: .all) }
  }

  /// Releases pixels that a host no longer needs: those at a path, or all.
  ///
  /// - Parameters:
  ///   - areUnused: whether the host reads them through no mapping either, so that other images may get their memory.
  ///   - completion: gets the number of released regions.
  public func release(
    _ path: String?, areUnused: Bool, then completion: @escaping @LoadingActor @Sendable (Int) -> Void
  ) {
    if areUnused { nextPixelCleanup = nextPixelCleanup ?? .now + PixelFolder.freeTime }
    storage.perform(
      { [storage] in
        storage.pixels.assumeIsolated { pixels in
          path.map { pixels.release($0, isUnused: areUnused) ? 1 : 0 } ?? pixels.releaseAll(areUnused: areUnused)
        }
      }, then: completion)
  }

  /// Deletes memory of released pixels that no image has needed.
  ///
  /// - Returns: when to look again.
  func dropFreePixels(at now: Instant) -> Instant? {
    guard let due = nextPixelCleanup, due <= now else { return nextPixelCleanup }
    nextPixelCleanup = nil
    storage.perform({ [storage] in storage.pixels.assumeIsolated { $0.dropFree() } }) { [weak self] isEmpty in
      if !isEmpty { self?.nextPixelCleanup = .now + PixelFolder.freeTime }
    }
    return nil
  }

  /// Removes all remembered failures and returns their number.
  public func clearFailures() -> Int { cache.failures.forgetAll() + decodes.forgetFailures() }
}
