internal import Platform

/// Removes stored responses that match a filter.
extension DiskTier {
  public struct Cleared: Sendable, Equatable {
    public var removed = 0
    public var bytes: Int64 = 0
    /// Set if matching responses may remain; `unusable` if the index belongs to another version.
    public var failure: StoreError?
  }

  /// Removes all responses that match the filter, for all workers. Their rows are deleted at once; a file that was
  /// delivered in the last 60 s is deleted when its 60 s end, or at once if the index needs its space.
  ///
  /// - Parameters:
  ///   - reachesMemory: whether the peers must also clear their memory tiers.
  ///   - elsewhere: responses that another tier has just removed by the same filter. Each response is counted once.
  public func clear(
    _ filter: ClearFilter, reachesMemory: Bool = true, counting elsewhere: [StoredResponse] = []
  ) -> Cleared {
    var uncounted = Dictionary(elsewhere.map { ($0.id, $0.content.byteCount) }, uniquingKeysWith: { first, _ in first })
    let unstored = elsewhere.filter { $0.id == 0 }
    uncounted[0] = nil
    var cleared = Cleared(removed: unstored.count, bytes: unstored.reduce(0) { $0 + $1.content.byteCount })
    if mode == .readWrite && !session.isClosed {
      let clearing = PeerTable.Clearing(filter, reachesMemory: reachesMemory)
      // Publish the clear before the commit, so that peers that store afterwards see it; publish it again after the
      // commit, for peers that read the old rows in between.
      _ = try? session.withIndex { index throws(SQLiteError) in try index.beginWriting() }
      peerTable?.publish(clearing)
      removeMatches(of: filter, &cleared, &uncounted)
      peerTable?.publish(clearing)
    }
    cleared.removed += uncounted.count
    cleared.bytes += uncounted.values.reduce(0, +)
    return cleared
  }

  private static let batch = 512
  /// The space that SQLite's log may need for the deletion of a row: four pages.
  private static let bytesOfChange: Int64 = 1 << 14

  private func removeMatches(of filter: ClearFilter, _ cleared: inout Cleared, _ uncounted: inout [Int64: Int64]) {
    let now = now
    detectDeadPeers()
    let grace = hasPeers ? MaintenanceSchedule.flushInterval + 1 : 0
    do throws(StoreError) {
      // Partial files are not counted as entries.
      try session.withIndex { index throws(SQLiteError) in
        try partials.remove(matching: filter, from: index, now: now)
      }
      while case let removed = try removeSomeMatches(of: filter, now: now, grace: grace), !removed.isEmpty {
        for (id, bytes) in removed {
          uncounted[id] = nil
          cleared.removed += 1
          cleared.bytes += bytes
        }
        // What the peers store now does not predate the clear (`isCleared`).
        if hasPeers || removed.count >= Self.batch { try letPeersWrite() }
      }
    } catch {
      cleared.failure = error
    }
    schedule.recordWrite()
    if let error = commit() { cleared.failure = error }
    // The deleted rows may leave hundreds of megabytes free in the index. A failure to shrink is ignored: the images
    // are deleted.
    if cleared.failure == nil, cleared.removed > 0 { session.shrinkIndex() }
  }

  /// Commits, and leaves the write lock free for longer than the interval in which the peers try to get it: changing a
  /// million entries takes longer than they wait.
  func letPeersWrite() throws(StoreError) {
    if let error = commit() { throw error }
    usleep(1000)
  }

  /// Whether the file system has too little space for the change of so many rows, so that their files must go at once,
  /// also those that were delivered in the last 60 s.
  private func needsSpace(toChange rows: Int) -> Bool {
    guard let folder = session.folder, let free = try? environment.files.space(of: folder.descriptor).free else {
      return false
    }
    return free < Int64(rows) * Self.bytesOfChange
  }

  private func removeSomeMatches(
    of filter: ClearFilter, now: Int, grace: Int
  ) throws(StoreError) -> [(id: Int64, bytes: Int64)] {
    try session.withIndex { index throws(SQLiteError) in
      var removed: [(id: Int64, bytes: Int64)] = []
      let matches = try index.matches(filter, now: now, limit: Self.batch)
      let mustFreeSpace = needsSpace(toChange: matches.count)
      for match in matches {
        var records = [match.record]
        if filter.dependsOnTime && match.isOriginal {
          records += try index.variants(key: match.key, partition: match.partition)
        }
        for record in records where try index.record(record.id) != nil {
          try removeEntry(record, from: index, now: now, grace: grace, atOnce: mustFreeSpace)
          removed.append((record.id, record.allocated))
        }
      }
      return removed
    }
  }
}
