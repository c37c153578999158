internal import HTTPTypes
internal import ImageStore
internal import Text

/// What a clear means for what is in memory and under way, whichever worker it came from.
extension Loader {
  /// Forgets what falls under the filter. What is under way for it is not kept, and no load to come joins it.
  ///
  /// - Returns: what was in memory.
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
        // The other workers transfer it anew, too.
        record.lease.take()?.abandon()
        scheduler.detach(job)
        continue
      }
      // What has not begun, or begins anew, may be kept.
      if matches, let partialBody = takeBeginning(of: record) { storage.discard(partialBody.body) }
      // What it brings may be kept, but what it knows is not for loads to come.
      if hadSuch { scheduler.detach(job) }
      // Nothing is left that the server could confirm.
      if record.revalidationTarget?.keeping == .cleared, isWaiting { record.dropConditions() }
    }
    detachDecodes(clear)
    return tiers == .disk ? [] : memory.clear(filter, now: clear.time)
  }

  /// What a job has looked for had been cleared when it was found: those that were sent after that clear see nothing of
  /// it.
  func separate(_ job: JobID, after clear: Int) {
    scheduler.detach(job)
    for id in scheduler.subscribers(of: job) {
      guard let load = loads[id], load.generation >= clear else { continue }
      unsubscribe(load)
      join(load)
    }
  }

  /// Does as other workers have cleared. Costs a look at a word of memory: to be called before each load is looked for
  /// in the memory tier, before something that was read is put there, and with every sign of life to those who wait.
  func applyPeerInvalidations() {
    guard let peerTable, peerTable.clearCount != clearCount else { return }
    for clearing in peerTable.takeClearings(since: &clearCount) {
      _ = forget(clearing.filter, in: clearing.reachesMemory ? .all : .disk)
    }
  }

  /// Finds the board where the cache directory has been made anew. What was cleared meanwhile nobody knows.
  func reattachPeerTable() {
    guard let current = storage.tier?.companyBoard, current !== peerTable else { return }
    if peerTable != nil { _ = forget(.all, in: .all) }
    peerTable = current
    clearCount = current.clearCount
  }
}

extension ClearFilter {
  /// Whether what a running job will bring falls under the filter.
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
