/// Clearing by a filter.
extension DiskTier {
  public struct Cleared: Sendable, Equatable {
    public var removed = 0
    public var bytes: Int64 = 0
    /// Why something may be left that falls under the filter.
    public var failure: StoreError?
  }

  /// Clears what falls under the filter, for all workers. It is unlisted at once; files delivered in the last 60 s are
  /// removed when those are over.
  ///
  /// - Parameters:
  ///   - reachesMemory: whether the other workers are to clear their memory tiers, too.
  ///   - elsewhere: what another tier has just cleared by the same filter. It is counted too, each response once.
  public func clear(
    _ filter: ClearFilter, reachesMemory: Bool = true, counting elsewhere: [StoredResponse] = []
  ) -> Cleared {
    var uncounted = Dictionary(elsewhere.map { ($0.id, $0.byteCount) }, uniquingKeysWith: { first, _ in first })
    let unstored = elsewhere.filter { $0.id == 0 }
    uncounted[0] = nil
    var cleared = Cleared(removed: unstored.count, bytes: unstored.reduce(0) { $0 + $1.byteCount })
    if mode == .readWrite && !isClosed {
      let clearing = PeerTable.Clearing(filter, reachesMemory: reachesMemory)
      // Before the commit, so that who stores after it knows; and once more for who has read what was there until then.
      _ = try? withIndex { index throws(SQLiteError) in try index.beginWriting() }
      peerTable?.note(clearing)
      removeMatches(of: filter, &cleared, &uncounted)
      peerTable?.note(clearing)
    }
    cleared.removed += uncounted.count
    cleared.bytes += uncounted.values.reduce(0, +)
    return cleared
  }

  private func removeMatches(of filter: ClearFilter, _ cleared: inout Cleared, _ uncounted: inout [Int64: Int64]) {
    let now = now
    detectDeadPeers()
    let grace = hasPeers ? MaintenanceSchedule.flushInterval + 1 : 0
    do throws(StoreError) {
      // They are no entries yet, and count as none.
      try withIndex { index throws(SQLiteError) in
        for id in try index.partials(matching: filter, now: now) { try remove(partial: id, from: index) }
        try noteTotals(of: index)
      }
      while case let removed = try removeSomeMatches(of: filter, now: now, grace: grace), !removed.isEmpty {
        for (id, bytes) in removed {
          uncounted[id] = nil
          cleared.removed += 1
          cleared.bytes += bytes
        }
      }
    } catch {
      cleared.failure = error
    }
    schedule.noteWrite()
    if let error = commit() { cleared.failure = error }
    // Its rows may have taken hundreds of megabytes. The files are gone, whether this comes off or not.
    if cleared.failure == nil, cleared.removed > 0 { try? session?.index?.shrink() }
    // Of an index that is another's nothing is ever served.
    if case .unusable = cleared.failure?.kind { cleared.failure = nil }
  }

  private func removeSomeMatches(
    of filter: ClearFilter, now: Int, grace: Int
  ) throws(StoreError) -> [(id: Int64, bytes: Int64)] {
    try withIndex { index throws(SQLiteError) in
      var removed: [(id: Int64, bytes: Int64)] = []
      for match in try index.matches(filter, now: now, limit: 512) {
        var holdings = [match.record]
        if filter.dependsOnTime && match.isOriginal {
          holdings += try index.variants(key: match.key, partition: match.partition)
        }
        for record in holdings where try index.record(record.id) != nil {
          try removeEntry(record, from: index, now: now, grace: grace)
          removed.append((record.id, record.allocated))
        }
      }
      return removed
    }
  }
}
