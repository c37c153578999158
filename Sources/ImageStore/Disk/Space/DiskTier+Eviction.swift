/// Evicts files to stay within the limit, and deletes files whose deletion is due.
extension DiskTier {
  /// Evicts down to the limit, as far as the 60 s rule allows, and deletes files whose 60 s have ended.
  public func trim() {
    guard mode == .readWrite, !session.isClosed else { return }
    schedule.trimAt = nil
    removeDue()
    budget.expireMeasurement()
    try? makeSpace(for: 0, allowOverLimit: true)
    limitPartials()
  }

  /// Evicts until `bytes` more fit.
  func makeSpace(for bytes: Int64, allowOverLimit: Bool) throws(StoreError) {
    let now = now
    let used = try usedBytes()
    if budget.mustMeasure(adding: bytes, now: now), let folder = session.folder,
      let space = try? environment.files.space(of: folder.descriptor)
    {
      budget.recordSpace(free: space.free, total: space.total, used: used, adding: bytes, now: now)
    }
    guard let demand = budget.demand(adding: bytes, used: used), try evict(demand) < demand.bytes else { return }
    guard allowOverLimit else {
      throw StoreError(.overLimit, "the disk cache is full of files delivered in the last \(deliveredFileLifetime) s")
    }
    let next = min(budget.cursor.until, schedule.nextDue ?? .max)
    schedule.trimAt = next == .max ? nil : next
  }

  /// Evicts some files when the system reports a full disk. Returns false if nothing can be evicted.
  func evictAfterDiskFull() -> Bool { ((try? evict(SpaceBudget.demandOfFullDisk)) ?? 0) > 0 }

  /// Evicts partial files, then the least recently used images, until the demand is met.
  ///
  /// - Returns: the bytes freed; fewer than requested if the other files were delivered recently.
  private func evict(_ demand: SpaceBudget.Demand) throws(StoreError) -> Int64 {
    drainDeliveries()
    let now = now
    budget.startScan(now: now)
    return try session.withIndex { index throws(SQLiteError) in
      var demand = demand
      while !demand.isMet, let bytes = try partials.removeOldest(from: index) { demand.freed += bytes }
      try evictImages(&demand, from: index, now: now)
      if demand.freed > 0 { schedule.recordWrite() }
      return demand.freed
    }
  }

  /// Evicts the least recently used images.
  private func evictImages(
    _ demand: inout SpaceBudget.Demand, from index: DiskIndex, now: Int
  ) throws(SQLiteError) {
    var position = budget.cursor.upTo
    search: while !demand.isMet {
      let candidates = try index.leastRecentlyUsed(after: position, limit: 16)
      if candidates.isEmpty { return }
      for candidate in candidates {
        guard demand.includes(candidate.allocated) else { return }
        if retention.unwritten.uses[candidate.id] != nil {
          // It was used, and the index is not updated yet.
          try flushUses(to: index)
          continue search
        }
        if let until = retentionEnd(of: candidate, now: now) {
          position = (candidate.usedAt, candidate.id)
          budget.skip(candidate, until: until)
        } else {
          try removeEntry(candidate, from: index, now: now)
          demand.freed += candidate.allocated
          budget.recordEviction(demand.reason)
        }
      }
    }
  }

  /// Deletes a row that another one replaces. Its file is deleted after the commit (`removeReplaced`), so that a worker
  /// killed before the commit leaves the old row with its file.
  func replace(_ record: FileRecord, in index: DiskIndex, now: Int) throws(SQLiteError) {
    guard try index.delete(record.id) else { return }
    retention.rowDeleted(record.id)
    try schedulePendingDeletion(record, due: retentionEnd(of: record, now: now) ?? now, in: index)
  }

  /// Commits, then deletes the files of replaced rows whose 60 s have ended.
  func removeReplaced() throws(StoreError) {
    guard let due = schedule.nextDue, due <= now else { return }
    if let error = commit() { throw error }
    removeDue()
  }

  /// Deletes a row that is evicted or cleared, and its file. The file is deleted at once, which frees space for the
  /// commit on a full disk, or when its 60 s end.
  ///
  /// - Parameters:
  ///   - grace: how long a delivery by a peer may be unknown to this worker, in seconds.
  ///   - atOnce: whether the file is deleted at once even in its 60 s, unless this worker reads it.
  func removeEntry(
    _ record: FileRecord, from index: DiskIndex, now: Int, grace: Int = 0, atOnce: Bool = false
  ) throws(SQLiteError) {
    guard try index.delete(record.id) else { return }
    retention.rowDeleted(record.id)
    if atOnce, !retention.hasReaders(record.id) {
      session.folder?.remove(record.file)
    } else {
      try deleteFile(of: record, from: index, now: now, grace: grace)
    }
  }

  /// Deletes a file without a row, at once or when its 60 s end.
  func deleteFile(of record: FileRecord, from index: DiskIndex, now: Int, grace: Int = 0) throws(SQLiteError) {
    var until = max(retentionEnd(of: record, now: now) ?? now, now + grace)
    if until <= now && !removeUnlessRetained(record.id, record.file, now: now) {
      until = endOfLife(deliveredAt: now)
    }
    guard until > now else { return }
    try schedulePendingDeletion(record, due: until, in: index)
  }

  private func schedulePendingDeletion(_ record: FileRecord, due: Int, in index: DiskIndex) throws(SQLiteError) {
    try index.schedulePendingDeletion(record, due: due)
    schedule.nextDue = min(schedule.nextDue ?? .max, due)
  }

  /// Allocated bytes of the files of all workers. With peers, takes the write lock, so that no peer adds a file until
  /// the next commit.
  private func usedBytes() throws(StoreError) -> Int64 {
    let isShared = hasPeers
    let listed = try session.withIndex { index throws(SQLiteError) in
      if isShared { try index.beginWriting() }
      return try index.totals().bytes
    }
    return listed + budget.reservedBytes + (isShared ? peerTable?.unlistedBytesOfPeers ?? 0 : 0)
  }

  /// Deletes the files whose scheduled deletion is due.
  private func removeDue() {
    // A row whose deletion is not committed may reappear, and needs its file.
    guard commit() == nil else { return }
    // Another thread may have delivered the path of a response that it had in memory.
    drainDeliveries()
    let now = now
    try? session.withIndex { index throws(SQLiteError) in
      try flushUses(to: index)
      while true {
        let due = try index.due(now: now, limit: 256)
        for (id, file) in due {
          if removeUnlessRetained(id, file, now: now) {
            try index.removePendingDeletion(id)
          } else {
            try index.touch(id, RetentionTracker.Use(at: now, times: 0))
          }
        }
        if due.count < 256 { break }
      }
      schedule.nextDue = try index.nextDue()
    }
    schedule.recordWrite()
  }

  func removeDueIfAny() { if let due = schedule.nextDue, due <= now { removeDue() } }
}

/// The number of entries that this worker has evicted from the disk tier, by reason.
public struct EvictionStatistics: Sendable, Equatable {
  public enum Reason: Sendable {
    /// The tier reached its limit.
    case limit
    /// The file system had less free space than the minimum.
    case freeSpace
    /// The file system had no space left for a write.
    case diskFull
  }

  public var limit = 0
  public var freeSpace = 0
  public var diskFull = 0

  public var total: Int { limit + freeSpace + diskFull }

  mutating func count(_ reason: Reason) {
    switch reason {
    case .limit: limit += 1
    case .freeSpace: freeSpace += 1
    case .diskFull: diskFull += 1
    }
  }
}
