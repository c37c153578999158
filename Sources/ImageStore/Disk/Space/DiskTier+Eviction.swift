/// The limit: what is evicted, what may not be, and when.
extension DiskTier {
  /// The most bytes that are written before the free space is looked at again.
  private static var mostUnchecked: Int64 { 1 << 24 }

  /// How far eviction has looked without finding anything that may go, so that it does not look there again before
  /// something can have changed. Newly used rows come after it in the order.
  struct EvictionCursor {
    var upTo: (usedAt: Int, id: Int64) = (.min, .min)
    /// When the first of those skipped may go.
    var until = Int.max
    var lastLook = Int.min
  }

  /// Brings the tier under its limit, as far as the 60 s rule allows, and removes the files whose 60 s are over.
  public func trim() {
    guard mode == .readWrite, !isClosed else { return }
    schedule.trimAt = nil
    removeDue()
    spaceCheck = nil
    try? makeRoom(for: 0, allowOverLimit: true)
    try? withIndex { index throws(SQLiteError) in try limitPartials(of: index) }
  }

  /// Evicts until `bytes` more fit.
  func makeRoom(for bytes: Int64, allowOverLimit: Bool) throws(StoreError) {
    try checkFreeSpace(adding: bytes)
    let held = try heldBytes()
    let excess = held + bytes - min(limit, spaceLimit)
    if excess <= 0 { return }
    if try evict(excess, for: spaceLimit < limit ? .freeSpace : .limit) >= excess { return }
    guard allowOverLimit else {
      throw StoreError(.noRoom, "the disk cache is full of files delivered in the last \(deliveredFileLifetime) s")
    }
    let next = min(evictionCursor.until, schedule.nextDue ?? .max)
    schedule.trimAt = next == .max ? nil : next
  }

  /// Frees a little when the system says that the disk is full. False when there is nothing to free.
  func makeSomeRoom() -> Bool { ((try? evict(1 << 22, for: .diskFull)) ?? 0) > 0 }

  /// The most that a file may take to be kept: a tenth of the limit, lest one image drive out all others. One block may
  /// always be.
  func largestFile(in folder: CacheFolder) -> Int64 { max(limit / 10, min(folder.blockSize, limit)) }

  /// Evicts partial files, then the least recently used, until `bytes` are free. At the limit a little more goes, a
  /// hundredth at most, so that the next stores need not look again.
  ///
  /// - Returns: the bytes freed; fewer when the rest was delivered lately.
  private func evict(_ bytes: Int64, for reason: EvictionStatistics.Reason) throws(StoreError) -> Int64 {
    notePins()
    let now = now
    if now >= evictionCursor.until || now < evictionCursor.lastLook { evictionCursor = EvictionCursor() }
    evictionCursor.lastLook = now
    let spare = reason == .limit ? limit / 100 : 0
    return try withIndex { index throws(SQLiteError) in
      var freed: Int64 = 0
      while freed < bytes, let partial = try index.oldestPartial() {
        try remove(partial: partial.id, from: index)
        freed += partial.allocated
      }
      search: while freed < bytes {
        let candidates = try index.leastRecentlyUsed(after: evictionCursor.upTo, limit: 16)
        if candidates.isEmpty { break }
        for candidate in candidates {
          let isSpare = candidate.allocated > 0 && freed + candidate.allocated <= bytes + spare
          guard freed < bytes || isSpare else { break search }
          if deliveries.uses[candidate.id] != nil {
            // It was used since; the index does not know yet.
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

  /// Takes a row out of the index that another one replaces. The file stays listed as one without a row, and is removed
  /// when that is committed (`removeReplaced`): a worker that is killed before leaves the old row with its file.
  func replace(_ record: FileRecord, in index: DiskIndex, now: Int) throws(SQLiteError) {
    guard try index.delete(record.id) else { return }
    _ = deliveries.takeUse(of: record.id)
    try schedulePendingDeletion(record, due: pinned(record, now: now) ?? now, in: index)
  }

  /// Commits, and removes the files of replaced rows, except for those whose 60 s are not over.
  func removeReplaced() throws(StoreError) {
    guard let due = schedule.nextDue, due <= now else { return }
    if let error = commit() { throw error }
    removeDue()
  }

  /// Takes a row out of the index that is evicted or cleared, and its file out of the folder: at once, which makes room
  /// for the commit on a full disk, or when its time is over.
  ///
  /// - Parameter grace: for how long another worker may have delivered it without having said so, in seconds.
  func removeEntry(_ record: FileRecord, from index: DiskIndex, now: Int, grace: Int = 0) throws(SQLiteError) {
    guard try index.delete(record.id) else { return }
    _ = deliveries.takeUse(of: record.id)
    try deleteFile(of: record, from: index, now: now, grace: grace)
  }

  /// Removes a file without a row: at once, or when its time is over.
  func deleteFile(of record: FileRecord, from index: DiskIndex, now: Int, grace: Int = 0) throws(SQLiteError) {
    var until = max(pinned(record, now: now) ?? now, now + grace)
    if until <= now && !pins.unlessPinned(record.id, now: now, { session?.folder.remove(record.file) }) {
      until = endOfLife(deliveredAt: now)
    }
    guard until > now else { return }
    try schedulePendingDeletion(record, due: until, in: index)
  }

  private func schedulePendingDeletion(_ record: FileRecord, due: Int, in index: DiskIndex) throws(SQLiteError) {
    try index.schedulePendingDeletion(record, due: due)
    schedule.nextDue = min(schedule.nextDue ?? .max, due)
  }

  /// Until when the file may not be removed; nil when it may be.
  ///
  /// A delivery in the future, from before the clock was set back, does not count.
  private func pinned(_ record: FileRecord, now: Int) -> Int? {
    if pinCounts[record.id] != nil { return now + deliveredFileLifetime }
    let byOthers = hasPeers ? peerTable?.recentDelivery(of: record.id, now: now) ?? 0 : 0
    let delivered = max(deliveries.lastDelivery(of: record.id) ?? 0, record.deliveredAt, byOthers)
    let until = endOfLife(deliveredAt: delivered) + (hasPeers ? MaintenanceSchedule.flushInterval : 0)
    return until > now && delivered <= now + deliveredFileLifetime ? until : nil
  }

  /// Now and then compares the free space with its floor; below it the tier may not grow and shrinks by what is
  /// missing.
  ///
  /// The nearer the floor, the sooner it looks again.
  private func checkFreeSpace(adding bytes: Int64) throws(StoreError) {
    let now = now
    if let check = spaceCheck, now - check.at < 5, now >= check.at, bytes <= check.budget {
      spaceCheck?.budget -= bytes
      return
    }
    spaceCheck = (now, Self.mostUnchecked)
    spaceLimit = .max
    guard minFreeFraction > 0, let session,
      let space = try? environment.files.space(of: session.folder.descriptor)
    else { return }
    let spare = space.free - Int64(minFreeFraction * Double(space.total))
    spaceLimit = max(0, try heldBytes() + spare)
    spaceCheck = (now, min(Self.mostUnchecked, max(0, spare / 2 - bytes)))
  }

  /// Allocated bytes of all workers' files. Where others live, none of them adds any until the next commit.
  private func heldBytes() throws(StoreError) -> Int64 {
    let isShared = hasPeers
    let listed = try withIndex { index throws(SQLiteError) in
      if isShared { try index.beginWriting() }
      return try index.totals().bytes
    }
    return listed + spooledBytes + (isShared ? peerTable?.unlistedBytesOfOthers ?? 0 : 0)
  }

  /// Keeps the file of a response for somebody who is about to work on it, which counts as a use; `unpin` has to
  /// follow. It counts for the limit as others do: where all that fills the tier is held, nothing more is stored.
  ///
  /// - Returns: false, and nothing is held, when the file is not what was stored.
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
    // Eviction may have passed over it.
    if count == 1 { evictionCursor = EvictionCursor() }
  }

  /// Removes the files without a row whose time is over.
  private func removeDue() {
    // A row whose removal is not committed may come back, and needs its file then.
    guard commit() == nil else { return }
    // A path may have been given out since, by one who had the response in memory.
    notePins()
    let now = now
    try? withIndex { index throws(SQLiteError) in
      try flushUses(to: index)
      while true {
        let due = try index.due(now: now, limit: 256)
        for (id, file) in due {
          if pinCounts[id] == nil, pins.unlessPinned(id, now: now, { session?.folder.remove(file) }) {
            try index.forget(doomed: id)
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
