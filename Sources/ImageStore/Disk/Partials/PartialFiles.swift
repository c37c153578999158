internal import Threads

/// Files of broken transfers, which stay for a later load to go on with: in this process or, where the machine has not
/// been started anew since, in another.
///
/// They have a row from the start, so that a killed worker leaves them too. They take a quarter of the limit at most,
/// count in it, are the first to go when room is needed, oldest first, and live for a day.
extension DiskTier {
  /// In seconds, since the first of its bytes came.
  static let partialLifetime = 86_400

  private var partialLimit: Int64 { min(limit, spaceLimit) / 4 }

  /// False when there is nothing to take up, as far as is known. From any thread.
  public nonisolated var mayHavePartials: Bool { mode == .readWrite && partialsExist.withLock { $0 } }

  /// Lists a file that is begun; its spool may `leave` it then.
  func list(_ partial: PartialRecord, id: Int64) throws(StoreError) {
    let boot = try usableSession().boot
    let now = now
    try withIndex { index throws(SQLiteError) in
      try index.insert(partial, id: id, boot: boot, storedAt: now, expiresAt: now + Self.partialLifetime)
    }
    listedSpools.insert(id)
    commit()
  }

  /// The spool is over, its file stored or removed.
  ///
  /// - Returns: whether the file may be removed: once the tier is closed, a listed one stays for the next worker.
  func release(_ id: Int64) -> Bool {
    if isClosed && listedSpools.contains(id) { return false }
    spooled[id] = nil
    if listedSpools.remove(id) != nil {
      try? withIndex { index throws(SQLiteError) in try index.remove(partial: id) }
      schedule.noteWrite()
    }
    return true
  }

  /// The spool is over, its file stays. False when it may not. Once the tier is closed it is left as by a killed
  /// worker.
  func leave(_ id: Int64, byteCount: Int64) -> Bool {
    if isClosed { return listedSpools.contains(id) }
    guard listedSpools.contains(id), byteCount > 0, let folder = session?.folder else { return false }
    let allocated = folder.allocated(byteCount)
    guard allocated <= partialLimit else { return false }
    let isListed = try? withIndex { index throws(SQLiteError) in
      guard try index.leave(partial: id, allocated: allocated) else { return false }
      try limitPartials(of: index)
      return try index.contains(partial: id)
    }
    guard isListed == true else { return false }
    listedSpools.remove(id)
    spooled[id] = nil
    commit()
    return true
  }

  /// Whether there is something under the key that may be worth a `takeUp`.
  public func hasPartial(key: String, partition: String) -> Bool {
    guard mayHavePartials else { return false }
    adoptPartialsOnce()
    let found = try? withIndex { index throws(SQLiteError) in try index.hasPartial(key: key, partition: partition) }
    return found ?? false
  }

  /// Takes up the largest file there is of these, for this worker alone. It is read through once, in pieces between
  /// other work, for the digest.
  ///
  /// - Parameter maxBytes: how large the whole may be. What is known to be larger is left to others.
  public func takeUp(
    _ identity: PartialRecord.Identity, maxBytes: Int64 = .max
  ) -> (partial: PartialRecord, spool: BodySpool)? {
    guard mode == .readWrite else { return nil }
    adoptPartialsOnce()
    guard let session = try? writableSession() else { return nil }
    let now = now
    let found = try? withIndex { index throws(SQLiteError) in
      try index.partial(of: identity, maxBytes: maxBytes, boot: session.boot, now: now)
    }
    guard let (id, partial) = found ?? nil, let spool = takeUp(id, in: session) else { return nil }
    let byteCount = spool.assumeIsolated { $0.byteCount }
    listedSpools.insert(spool.id)
    spooled[spool.id] = session.folder.allocated(byteCount)
    guard byteCount > 0, byteCount < partial.completeLength ?? .max else {
      spool.assumeIsolated { $0.discard() }
      return nil
    }
    spool.assumeIsolated { $0.catchUp() }
    return (partial, spool)
  }

  private func takeUp(_ id: Int64, in session: Session) -> BodySpool? {
    let newID = session.nextID()
    let spool = try? withIndex { index throws(SQLiteError) in
      guard try index.take(partial: id, as: newID) else { return nil as BodySpool? }
      do throws(FileError) {
        try session.folder.moveTemporary(id: id, to: newID)
        return try BodySpool(takingUp: newID, in: session.folder, executor: executor, room: room(for: newID))
      } catch {
        try remove(partial: newID, from: index)
        session.folder.removeTemporary(id: id)
        try noteTotals(of: index)
        return nil
      }
    }
    // Before another worker can look: a row and its file change hands together.
    commit()
    return spool ?? nil
  }

  /// Removes what nobody needs any more, since the whole is stored.
  public func removePartials(of identity: PartialRecord.Identity) {
    guard mayHavePartials else { return }
    try? withIndex { index throws(SQLiteError) in
      for id in try index.partials(of: identity) { try remove(partial: id, from: index) }
      try noteTotals(of: index)
    }
    schedule.noteWrite()
  }

  // MARK: - Housekeeping

  private func adoptPartialsOnce() {
    if hasAdopted { return }
    detectDeadPeers()
    if !hasAdopted { adoptPartials() }
  }

  /// Makes files of dead workers such that may be taken up, and removes those that nobody can go on with. Comes before
  /// the sweep, which leaves alone what is listed.
  func adoptPartials() {
    guard mode == .readWrite, let session, let lock = session.lock else { return }
    let swept = sweep?.instances ?? []
    func isOver(_ id: Int64) -> Bool {
      let instance = Int32(truncatingIfNeeded: id >> 32)
      return instance != lock.instance && (swept.contains(instance) || !lock.exists(instance))
    }
    let now = now
    try? withIndex { index throws(SQLiteError) in
      for id in try index.unfinishedPartials() where isOver(id) && !listedSpools.contains(id) {
        let status = try? session.folder.files.status(FileName.temporaryPath(id: id), in: session.folder.descriptor)
        if let size = status?.byteCount, size > 0 {
          _ = try index.leave(partial: id, allocated: session.folder.allocated(size))
        } else {
          try remove(partial: id, from: index)
        }
      }
      // After a crash of the machine a file may have its length and not its bytes.
      for id in try index.partials(ofOtherBootThan: session.boot) where isOver(id) {
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
    try? withIndex { index throws(SQLiteError) in
      for id in try index.expiredPartials(now: now) { try remove(partial: id, from: index) }
      try noteTotals(of: index)
    }
    commit()
  }

  /// Removes the oldest until the others are within their limit.
  func limitPartials(of index: DiskIndex) throws(SQLiteError) {
    while let totals = try index.partialTotals(), totals.bytes > partialLimit, let oldest = try index.oldestPartial() {
      try remove(partial: oldest.id, from: index)
    }
    try noteTotals(of: index)
  }

  func noteTotals(of index: DiskIndex) throws(SQLiteError) {
    let totals = try index.partialTotals()
    schedule.partialsDue = totals?.nextExpiry
    partialsExist.withLock { $0 = totals != nil }
  }

  func remove(partial id: Int64, from index: DiskIndex) throws(SQLiteError) {
    try index.remove(partial: id)
    session?.folder.removeTemporary(id: id)
  }
}
