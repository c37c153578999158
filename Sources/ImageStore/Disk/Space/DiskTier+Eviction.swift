/// Evicts files to stay within the limit, and deletes files whose deletion is due.
extension DiskTier {
  /// The maximum number of bytes written before the free space is measured again.
  private static var maxUncheckedBytes: Int64 { 1 << 24 }

  /// The position up to which eviction has found only pinned rows, so that it does not scan them again before a pin can
  /// have ended. Rows used later come after it in the order.
  struct EvictionCursor {
    var upTo: (usedAt: Int, id: Int64) = (.min, .min)
    /// When the first of the skipped rows may be evicted.
    var until = Int.max
    var lastLook = Int.min
  }

  /// Evicts down to the limit, as far as the 60 s rule allows, and deletes files whose 60 s have ended.
  public func trim() {
    guard mode == .readWrite, !session.isClosed else { return }
    schedule.trimAt = nil
    removeDue()
    spaceCheck = nil
    try? makeRoom(for: 0, allowOverLimit: true)
    limitPartials()
  }

  /// Evicts until `bytes` more fit.
  func makeRoom(for bytes: Int64, allowOverLimit: Bool) throws(StoreError) {
    try checkFreeSpace(adding: bytes)
    let used = try usedBytes()
    let excess = used + bytes - min(limit, spaceLimit)
    if excess <= 0 { return }
    if try evict(excess, for: spaceLimit < limit ? .freeSpace : .limit) >= excess { return }
    guard allowOverLimit else {
      throw StoreError(.noRoom, "the disk cache is full of files delivered in the last \(deliveredFileLifetime) s")
    }
    let next = min(evictionCursor.until, schedule.nextDue ?? .max)
    schedule.trimAt = next == .max ? nil : next
  }

  /// Evicts 4 MB when the system reports a full disk. Returns false if nothing can be evicted.
  func makeSomeRoom() -> Bool { ((try? evict(1 << 22, for: .diskFull)) ?? 0) > 0 }

  /// The maximum allocated size of a file: a tenth of the limit, so that one image cannot displace all others. One
  /// block is always allowed.
  func maxFileBytes(in folder: CacheFolder) -> Int64 { max(limit / 10, min(folder.blockSize, limit)) }

  /// Evicts partial files, then the least recently used images, until `bytes` are free. At the limit, evicts up to 1 %
  /// of the limit more, so that the next stores need not evict again.
  ///
  /// - Returns: the bytes freed; fewer than requested if the other files were delivered recently.
  private func evict(_ bytes: Int64, for reason: EvictionStatistics.Reason) throws(StoreError) -> Int64 {
    notePins()
    let now = now
    if now >= evictionCursor.until || now < evictionCursor.lastLook { evictionCursor = EvictionCursor() }
    evictionCursor.lastLook = now
    let spare = reason == .limit ? limit / 100 : 0
    return try session.withIndex { index throws(SQLiteError) in
      var freed: Int64 = 0
      while freed < bytes, let partialBytes = try partials.removeOldest(from: index) { freed += partialBytes }
      search: while freed < bytes {
        let candidates = try index.leastRecentlyUsed(after: evictionCursor.upTo, limit: 16)
        if candidates.isEmpty { break }
        for candidate in candidates {
          let isSpare = candidate.allocated > 0 && freed + candidate.allocated <= bytes + spare
          guard freed < bytes || isSpare else { break search }
          if deliveries.uses[candidate.id] != nil {
            // It was used, and the index is not updated yet.
            try flushUses(to: index)
            continue search
          }
          if let until = pinned(candidate, now: now) {
            evictionCursor.upTo = (candidate.usedAt, candidate.id)
            evictionCursor.until = min(evictionCursor.until, until)
          } else {
            try removeEntry(candidate, from: index, now: now)
            freed += candidate.allocated
            evicted.count(reason)
          }
        }
      }
      if freed > 0 { schedule.noteWrite() }
      return freed
    }
  }

  /// Deletes a row that another one replaces. Its file is deleted after the commit (`removeReplaced`), so that a worker
  /// killed before the commit leaves the old row with its file.
  func replace(_ record: FileRecord, in index: DiskIndex, now: Int) throws(SQLiteError) {
    guard try index.delete(record.id) else { return }
    _ = deliveries.removeUse(of: record.id)
    try schedulePendingDeletion(record, due: pinned(record, now: now) ?? now, in: index)
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
  /// - Parameter grace: how long a delivery by a peer may be unknown to this worker, in seconds.
  func removeEntry(_ record: FileRecord, from index: DiskIndex, now: Int, grace: Int = 0) throws(SQLiteError) {
    guard try index.delete(record.id) else { return }
    _ = deliveries.removeUse(of: record.id)
    try deleteFile(of: record, from: index, now: now, grace: grace)
  }

  /// Deletes a file without a row, at once or when its 60 s end.
  func deleteFile(of record: FileRecord, from index: DiskIndex, now: Int, grace: Int = 0) throws(SQLiteError) {
    var until = max(pinned(record, now: now) ?? now, now + grace)
    if until <= now && !pins.unlessPinned(record.id, now: now, { session.folder?.remove(record.file) }) {
      until = endOfLife(deliveredAt: now)
    }
    guard until > now else { return }
    try schedulePendingDeletion(record, due: until, in: index)
  }

  private func schedulePendingDeletion(_ record: FileRecord, due: Int, in index: DiskIndex) throws(SQLiteError) {
    try index.schedulePendingDeletion(record, due: due)
    schedule.nextDue = min(schedule.nextDue ?? .max, due)
  }

  /// When the pin of the file ends; nil if the file may be deleted now.
  ///
  /// A delivery in the future, recorded before the clock was set back, does not count.
  private func pinned(_ record: FileRecord, now: Int) -> Int? {
    if pinCounts[record.id] != nil { return now + deliveredFileLifetime }
    let byPeers = hasPeers ? peerTable?.recentDelivery(of: record.id, now: now) ?? 0 : 0
    let delivered = max(deliveries.lastDelivery(of: record.id) ?? 0, record.deliveredAt, byPeers)
    let until = endOfLife(deliveredAt: delivered) + (hasPeers ? MaintenanceSchedule.flushInterval : 0)
    return until > now && delivered <= now + deliveredFileLifetime ? until : nil
  }

  /// Measures the free space at intervals. Below `minFreeFraction` the tier must not grow, and shrinks by the missing
  /// bytes.
  ///
  /// The nearer the minimum, the sooner it measures again.
  private func checkFreeSpace(adding bytes: Int64) throws(StoreError) {
    let now = now
    if let check = spaceCheck, now - check.at < 5, now >= check.at, bytes <= check.budget {
      spaceCheck?.budget -= bytes
      return
    }
    spaceCheck = (now, Self.maxUncheckedBytes)
    spaceLimit = .max
    guard minFreeFraction > 0, let folder = session.folder,
      let space = try? environment.files.space(of: folder.descriptor)
    else { return }
    let spare = space.free - Int64(minFreeFraction * Double(space.total))
    spaceLimit = max(0, try usedBytes() + spare)
    spaceCheck = (now, min(Self.maxUncheckedBytes, max(0, spare / 2 - bytes)))
  }

  /// Allocated bytes of the files of all workers. With peers, takes the write lock, so that no peer adds a file until
  /// the next commit.
  private func usedBytes() throws(StoreError) -> Int64 {
    let isShared = hasPeers
    let listed = try session.withIndex { index throws(SQLiteError) in
      if isShared { try index.beginWriting() }
      return try index.totals().bytes
    }
    return listed + spooledBytes + (isShared ? peerTable?.unlistedBytesOfPeers ?? 0 : 0)
  }

  /// Pins the file of a response that a caller is about to read; counts as a use. `unpin` must follow. Pinned files
  /// count against the limit: if they fill the tier, nothing more is stored.
  ///
  /// - Returns: false, without a pin, if the file does not match the response.
  public func pin(_ response: StoredResponse) -> Bool {
    pinCounts[response.id, default: 0] += 1
    markDelivered(response.id, at: now, byPath: false)
    if check(response) { return true }
    unpin(response.id)
    return false
  }

  public func unpin(_ id: Int64) {
    guard let count = pinCounts[id] else { return }
    pinCounts[id] = count > 1 ? count - 1 : nil
    // The eviction cursor may have passed the file.
    if count == 1 { evictionCursor = EvictionCursor() }
  }

  /// Deletes the files whose scheduled deletion is due.
  private func removeDue() {
    // A row whose deletion is not committed may reappear, and needs its file.
    guard commit() == nil else { return }
    // Another thread may have delivered the path of a response that it had in memory.
    notePins()
    let now = now
    try? session.withIndex { index throws(SQLiteError) in
      try flushUses(to: index)
      while true {
        let due = try index.due(now: now, limit: 256)
        for (id, file) in due {
          if pinCounts[id] == nil, pins.unlessPinned(id, now: now, { session.folder?.remove(file) }) {
            try index.removePendingDeletion(id)
          } else {
            try index.touch(id, UsageJournal.Use(at: now, times: 0))
          }
        }
        if due.count < 256 { break }
      }
      schedule.nextDue = try index.nextDue()
    }
    schedule.noteWrite()
  }

  func removeDueIfAny() {
    if let due = schedule.nextDue, due <= now { removeDue() }
  }
}
