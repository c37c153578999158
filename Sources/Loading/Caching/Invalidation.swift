internal import HTTPTypes
internal import ImageStore
internal import Text

/// Applies clears, by this worker or a peer, to the memory tier and to the jobs and decodes under way.
extension Loader {
  /// Invalidates what matches the filter. The results of matching jobs and decodes under way are not cached, and no
  /// later load joins them.
  ///
  /// - Returns: the entries removed from memory.
  func forget(_ filter: ClearFilter, in tiers: Tiers) -> [StoredResponse] {
    let clear = Clear(filter: filter, tiers: tiers, time: storage.now())
    pendingInvalidations.begin(clear)
    storage.perform({}) { [weak self] in self?.pendingInvalidations.endFirst() }
    for job in scheduler.allJobs {
      guard let record = jobs[job] else { continue }
      let hadSuch = record.mark(clear)
      let matches = filter.matches(record.first.request)
      let isWaiting = scheduler.job(job)?.phase == .waiting
      if matches, !isWaiting {
        record.mayKeep = false
        // Peers transfer it again too: they must not wait for this response.
        record.lease.take()?.abandon()
        scheduler.detach(job)
        continue
      }
      // The job has not started, or will start again: its result is newer than the clear and may be cached, but its
      // partial body is older.
      if matches, let partialBody = takePartialBody(of: record) { storage.discard(partialBody.body) }
      // The result may be cached, but the candidates found before the clear must not serve later loads.
      if hadSuch { scheduler.detach(job) }
      // The stored response is gone, so there is nothing to revalidate.
      if record.revalidationTarget?.retention == .cleared, isWaiting { record.dropConditions() }
    }
    decodes.detach(clear)
    return tiers == .disk ? [] : memory.clear(filter, now: clear.time)
  }

  /// Separates the loads submitted after a clear from a job whose lookup result had been cleared by then: they must not
  /// see it. They join another job.
  ///
  /// - Parameter clear: the number of the clear.
  func separate(_ job: JobID, after clear: Int) {
    scheduler.detach(job)
    for id in scheduler.subscribers(of: job) {
      guard let load = loads[id], load.generation >= clear else { continue }
      unsubscribe(load)
      join(load)
    }
  }

  /// Applies clears published by peers. Reads one word of shared memory if there are none. Must be called before each
  /// memory lookup, before a response that was read is stored in memory, and with every heartbeat.
  func applyPeerInvalidations() {
    guard let peerTable, peerTable.clearCount != clearCount else { return }
    for clearing in peerTable.drainClearings(since: &clearCount) {
      _ = forget(clearing.filter, in: clearing.reachesMemory ? .all : .disk)
    }
  }

  /// Attaches to the peer table of a cache directory that has been recreated. Clears published in the meantime are
  /// unknown, so everything in memory is cleared.
  func reattachPeerTable() {
    guard let current = storage.tier?.peerTable, current !== peerTable else { return }
    if peerTable != nil { _ = forget(.all, in: .all) }
    peerTable = current
    clearCount = current.clearCount
  }
}

extension ClearFilter {
  /// Whether the response to the request will match the filter.
  fileprivate func matches(_ request: LoadRequest) -> Bool {
    switch self {
    case .all: true
    case .url(let url, let key): request.url.hasSameBytes(as: url) || request.key.hasSameBytes(as: key)
    case .key(let key): request.key.hasSameBytes(as: key)
    case .prefix(let prefix): request.key.utf8.starts(with: prefix.utf8)
    case .host(let host, let port): request.origin.host == host && (port == nil || request.origin.port == port)
    case .olderThan, .expired: false
    }
  }
}
