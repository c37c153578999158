/// Pins of a user: a pinned response is not evicted, and not removed by a clear that depends on time.
///
/// A pin belongs to a key, partition and variant. It stays when the response is replaced, and ends by `unpin` or by a
/// clear that names the response. All workers of the directory read the pins from the index when they evict.
extension DiskTier {
  public struct PinResult: Sendable, Equatable {
    /// The number of responses that match the filter and are pinned now.
    public var matching = 0
    /// The number of responses that were not pinned before.
    public var added = 0
    /// All pinned responses.
    public var totals = PinTotals()
  }

  /// Pins the responses that match the filter.
  ///
  /// - Parameter limit: that of the workers.
  ///
  /// Throws `overLimit`, and pins none of them, if all pinned responses would use more than 90 % of the limit.
  public func pin(_ filter: ClearFilter, limit: Int64) throws(StoreError) -> PinResult {
    let now = now
    let maxBytes = SpaceBudget.maxPinnedBytes(limit: limit)
    _ = try session.writable()
    let (found, totals) = try session.withIndex { index throws(SQLiteError) in
      try index.beginWriting()
      let found = try index.unpinned(filter, now: now)
      var totals = try index.pinTotals()
      totals.entries += found.unpinned.entries
      totals.bytes += found.unpinned.bytes
      return (found, totals)
    }
    let fits = found.unpinned.entries == 0 || totals.bytes <= maxBytes
    if found.unpinned.entries > 0, fits {
      while try session.withIndex({ index throws(SQLiteError) in try index.pinSome(filter, now: now) }) {
        if hasPeers { try letPeersWrite() }
      }
    }
    if let error = commit() { throw error }
    guard fits else {
      throw StoreError(
        .overLimit,
        "pinned images would use \(totals.bytes) bytes, more than 90 % of the disk limit of \(limit) bytes")
    }
    return PinResult(
      matching: found.pinned + found.unpinned.entries, added: found.unpinned.entries, totals: totals)
  }

  /// Removes the pins of the responses that match the filter. Returns their number.
  public func unpin(_ filter: ClearFilter) throws(StoreError) -> Int {
    let now = now
    _ = try session.writable()
    let count = try removePins(filter, now: now)
    // The eviction scan starts after rows that it has skipped.
    budget.resetCursor()
    if let error = commit() { throw error }
    return count
  }

  func removePins(_ filter: ClearFilter, now: Int) throws(StoreError) -> Int {
    var count = 0
    while let removed = try session.withIndex({ index throws(SQLiteError) in
      try index.unpinSome(filter, now: now)
    }) {
      count += removed
      if hasPeers { try letPeersWrite() }
    }
    return count
  }

  /// The limit of the worker that last published its own; nil if none has.
  public func publishedLimit() throws(StoreError) -> Int64? {
    try session.withIndex { index throws(SQLiteError) in try index.publishedLimit() }
  }

  /// Publishes the limit to programs that work on the directory, and to later ones.
  func publishLimit() {
    guard publishesLimit else { return }
    try? session.withIndex { index throws(SQLiteError) in
      if try index.publishedLimit() != budget.limit {
        try index.publishLimit(budget.limit)
        schedule.recordWrite()
      }
    }
  }
}
