internal import Threads

/// Temporary files of broken transfers, retained so that a later load can resume them: in this process or, until the
/// next system start, in another.
///
/// Each has a row from its creation, so that the file of a killed worker can be resumed, too. Together they use at most
/// a quarter of the limit, in which they are counted. They are evicted before images, oldest first, and expire after a
/// day.
extension DiskTier {
  /// In seconds since the file was created.
  static let partialLifetime = 86_400

  private var partialLimit: Int64 { min(limit, spaceLimit) / 4 }

  /// Whether partial files may exist, as far as is known. Callable from any thread.
  public nonisolated var mayHavePartials: Bool { mode == .readWrite && partialsExist.withLock { $0 } }

  /// Inserts the row of a new file, which its spool may then retain for resuming.
  func list(_ partial: PartialRecord, id: Int64) throws(StoreError) {
    let boot = try session.usable().boot
    let now = now
    try session.withIndex { index throws(SQLiteError) in
      try index.insert(partial, id: id, boot: boot, storedAt: now, expiresAt: now + Self.partialLifetime)
    }
    listedSpools.insert(id)
    commit()
  }

  /// Ends the spool after its file was stored or removed.
  ///
  /// - Returns: whether the file may be removed. Once the tier is closed, a file with a row is retained for the next
  ///   worker.
  func release(_ id: Int64) -> Bool {
    if session.isClosed && listedSpools.contains(id) { return false }
    spooled[id] = nil
    if listedSpools.remove(id) != nil {
      try? session.withIndex { index throws(SQLiteError) in try index.remove(partial: id) }
      schedule.noteWrite()
    }
    return true
  }

  /// Ends the spool and retains its file for resuming. Returns false if the file may not be retained. Once the tier is
  /// closed, the row is left as a killed worker leaves it.
  func retainForResume(_ id: Int64, byteCount: Int64) -> Bool {
    if session.isClosed { return listedSpools.contains(id) }
    guard listedSpools.contains(id), byteCount > 0, let folder = session.folder else { return false }
    let allocated = folder.allocated(byteCount)
    guard allocated <= partialLimit else { return false }
    let isListed = try? session.withIndex { index throws(SQLiteError) in
      guard try index.retain(partial: id, allocated: allocated) else { return false }
      try limitPartials(of: index)
      return try index.contains(partial: id)
    }
    guard isListed == true else { return false }
    listedSpools.remove(id)
    spooled[id] = nil
    commit()
    return true
  }

  /// Whether a partial file of the key may be worth a call of `resumePartial`.
  public func hasPartial(key: String, partition: String) -> Bool {
    guard mayHavePartials else { return false }
    adoptPartialsOnce()
    let hasPartial = try? session.withIndex { index throws(SQLiteError) in
      try index.hasPartial(key: key, partition: partition)
    }
    return hasPartial ?? false
  }

  /// Resumes the largest partial file of this identity, for this worker alone. The file is read once for the digest, in
  /// pieces between other work.
  ///
  /// - Parameter maxBytes: the maximum length of the complete body. A file whose body is known to be larger is not
  ///   taken.
  public func resumePartial(
    _ identity: PartialRecord.Identity, maxBytes: Int64 = .max
  ) -> (partial: PartialRecord, spool: BodySpool)? {
    guard mode == .readWrite else { return nil }
    adoptPartialsOnce()
    guard let opened = try? session.writable() else { return nil }
    let now = now
    let found = try? session.withIndex { index throws(SQLiteError) in
      try index.partial(of: identity, maxBytes: maxBytes, boot: opened.boot, now: now)
    }
    guard let (id, partial) = found ?? nil, let spool = resumePartial(id, in: opened) else { return nil }
    let byteCount = spool.assumeIsolated { $0.byteCount }
    listedSpools.insert(spool.id)
    spooled[spool.id] = opened.folder.allocated(byteCount)
    guard byteCount > 0, byteCount < partial.completeLength ?? .max else {
      spool.assumeIsolated { $0.discard() }
      return nil
    }
    spool.assumeIsolated { $0.hashEarlierBytes() }
    return (partial, spool)
  }

  private func resumePartial(_ id: Int64, in opened: OpenFolder) -> BodySpool? {
    let newID = opened.nextID()
    let spool = try? session.withIndex { index throws(SQLiteError) in
      guard try index.acquire(partial: id, as: newID) else { return nil as BodySpool? }
      do throws(FileError) {
        try opened.folder.moveTemporary(id: id, to: newID)
        return try BodySpool(
          resuming: newID, in: opened.folder, executor: executor, reservation: reservation(for: newID))
      } catch {
        try remove(partial: newID, from: index)
        opened.folder.removeTemporary(id: id)
        try recordPartialTotals(of: index)
        return nil
      }
    }
    // Commit before a peer can look: a row and its file must be renamed together.
    commit()
    return spool ?? nil
  }

  /// Removes the partial files of a response that is stored completely.
  public func removePartials(of identity: PartialRecord.Identity) {
    guard mayHavePartials else { return }
    try? session.withIndex { index throws(SQLiteError) in
      for id in try index.partials(of: identity) { try remove(partial: id, from: index) }
      try recordPartialTotals(of: index)
    }
    schedule.noteWrite()
  }

  // MARK: - Maintenance

  private func adoptPartialsOnce() {
    if hasAdopted { return }
    detectDeadPeers()
    if !hasAdopted { adoptPartials() }
  }

  /// Makes the files of dead workers resumable, and removes those that cannot be resumed. Runs before the sweep, which
  /// ignores files with a row.
  func adoptPartials() {
    guard mode == .readWrite, let opened = session.current, let lock = opened.lock else { return }
    let swept = sweep?.instances ?? []
    func belongsToDeadWorker(_ id: Int64) -> Bool {
      let instance = Int32(truncatingIfNeeded: id >> 32)
      return instance != lock.instance && (swept.contains(instance) || !lock.exists(instance))
    }
    let now = now
    try? session.withIndex { index throws(SQLiteError) in
      for id in try index.unfinishedPartials() where belongsToDeadWorker(id) && !listedSpools.contains(id) {
        let status = try? opened.folder.files.status(FileName.temporaryPath(id: id), in: opened.folder.descriptor)
        if let size = status?.byteCount, size > 0 {
          _ = try index.retain(partial: id, allocated: opened.folder.allocated(size))
        } else {
          try remove(partial: id, from: index)
        }
      }
      // After a system crash a file may have its length but not its bytes.
      for id in try index.partials(ofOtherBootThan: opened.boot) where belongsToDeadWorker(id) {
        try remove(partial: id, from: index)
      }
      for id in try index.expiredPartials(now: now) { try remove(partial: id, from: index) }
      try limitPartials(of: index)
      hasAdopted = true
    }
    commit()
  }

  func removeExpiredPartials() {
    let now = now
    try? session.withIndex { index throws(SQLiteError) in
      for id in try index.expiredPartials(now: now) { try remove(partial: id, from: index) }
      try recordPartialTotals(of: index)
    }
    commit()
  }

  /// Removes the oldest partial files until the others fit in `partialLimit`.
  func limitPartials(of index: DiskIndex) throws(SQLiteError) {
    while let totals = try index.partialTotals(), totals.bytes > partialLimit, let oldest = try index.oldestPartial() {
      try remove(partial: oldest.id, from: index)
    }
    try recordPartialTotals(of: index)
  }

  func recordPartialTotals(of index: DiskIndex) throws(SQLiteError) {
    let totals = try index.partialTotals()
    schedule.partialsDue = totals?.nextExpiry
    partialsExist.withLock { $0 = totals != nil }
  }

  func remove(partial id: Int64, from index: DiskIndex) throws(SQLiteError) {
    try index.remove(partial: id)
    session.folder?.removeTemporary(id: id)
  }
}
