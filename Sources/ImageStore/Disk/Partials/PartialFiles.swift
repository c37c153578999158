internal import Threads

/// Resumes broken transfers across restarts: keeps their temporary files, so that a later load can continue them in
/// this process or, until the next system start, in another. Users of download programs such as aria2 expect that.
///
/// Each file has a row from its creation, so that the file of a killed worker can be resumed, too. Together the files
/// use at most a quarter of the limit, in which they are counted. They are evicted before images, oldest first, and
/// expire after a day.
final class PartialFiles {
  /// In seconds since the file was created.
  static let lifetime = 86_400

  private let session: IndexSession
  /// Whether partial files may exist, as far as is known. Also read by other threads.
  private let mayExist: Locked<Bool>
  /// Commits at once, so that a row never differs from its file for long.
  var commit: () -> Void = {}
  /// The spools of this worker whose files have a row.
  private var listed: Set<Int64> = []
  /// Whether the files of dead workers have been adopted since the folder was opened.
  private(set) var hasAdopted = false
  /// When the first file expires, in Unix seconds.
  private(set) var nextExpiry: Int?

  init(session: IndexSession, mayExist: Locked<Bool>) {
    self.session = session
    self.mayExist = mayExist
  }

  func folderOpened() { hasAdopted = false }

  // MARK: Spools

  /// Inserts the row of a new file, which its spool may then retain.
  func list(_ partial: PartialRecord, id: Int64, now: Int) throws(StoreError) {
    let boot = try session.usable().boot
    try session.withIndex { index throws(SQLiteError) in
      try index.insert(partial, id: id, boot: boot, storedAt: now, expiresAt: now + Self.lifetime)
    }
    listed.insert(id)
    commit()
  }

  func isListed(_ id: Int64) -> Bool { listed.contains(id) }

  /// Deletes the row of a spool's file, which is stored or removed.
  func unlist(_ id: Int64) {
    if listed.remove(id) == nil { assertionFailure("only a listed spool has a row to delete") }
    try? session.withIndex { index throws(SQLiteError) in try index.remove(partial: id) }
  }

  /// Retains the file of a spool for resuming. Returns false if that is not allowed. Once the tier is closed, the row
  /// is left as a killed worker leaves it.
  ///
  /// - Parameter limit: the maximum allocated bytes of all partial files.
  func retain(_ id: Int64, byteCount: Int64, limit: Int64) -> Bool {
    if session.isClosed { return isListed(id) }
    guard isListed(id), byteCount > 0, let folder = session.folder else { return false }
    let allocated = folder.allocated(byteCount)
    guard allocated <= limit else { return false }
    let isRetained = try? session.withIndex { index throws(SQLiteError) in
      guard try index.retain(partial: id, allocated: allocated) else { return false }
      try enforce(limit: limit, in: index)
      return try index.contains(partial: id)
    }
    guard isRetained == true else { return false }
    listed.remove(id)
    commit()
    return true
  }

  // MARK: Resuming

  func exists(key: String, partition: String) -> Bool {
    let exists = try? session.withIndex { index throws(SQLiteError) in
      try index.hasPartial(key: key, partition: partition)
    }
    return exists ?? false
  }

  /// Acquires the largest file of this identity for this worker alone, under a new id.
  ///
  /// - Parameter makeSpool: opens the file with the new id.
  func resume(
    _ identity: PartialRecord.Identity, maxBytes: Int64, now: Int,
    makeSpool: (_ id: Int64, CacheFolder) throws(FileError) -> BodySpool
  ) -> (partial: PartialRecord, spool: BodySpool)? {
    guard let opened = try? session.writable() else { return nil }
    let found = try? session.withIndex { index throws(SQLiteError) in
      try index.partial(of: identity, maxBytes: maxBytes, boot: opened.boot, now: now)
    }
    guard let (id, partial) = found ?? nil else { return nil }
    let (newID, folder) = (opened.nextID(), opened.folder)
    let spool = try? session.withIndex { index throws(SQLiteError) in
      guard try index.acquire(partial: id, as: newID) else { return nil as BodySpool? }
      do throws(FileError) {
        try folder.moveTemporary(id: id, to: newID)
        return try makeSpool(newID, folder)
      } catch {
        try remove(newID, from: index)
        folder.removeTemporary(id: id)
        try recordTotals(of: index)
        return nil
      }
    }
    // Commit before a peer can look: a row and its file must be renamed together.
    commit()
    guard let spool = spool ?? nil else { return nil }
    listed.insert(newID)
    return (partial, spool)
  }

  // MARK: Removal

  /// Removes the files of a response that is stored completely.
  func remove(of identity: PartialRecord.Identity) {
    try? session.withIndex { index throws(SQLiteError) in try remove(index.partials(of: identity), from: index) }
  }

  func remove(matching filter: ClearFilter, from index: DiskIndex, now: Int) throws(SQLiteError) {
    let ids = try index.partials(matching: filter, now: now)
    if !ids.isEmpty { try remove(ids, from: index) }
  }

  func removeExpired(now: Int) {
    try? session.withIndex { index throws(SQLiteError) in try remove(index.expiredPartials(now: now), from: index) }
    commit()
  }

  /// Removes the oldest file and returns its allocated bytes; nil if there is none.
  func removeOldest(from index: DiskIndex) throws(SQLiteError) -> Int64? {
    guard let oldest = try index.oldestPartial() else { return nil }
    try remove(oldest.id, from: index)
    return oldest.allocated
  }

  /// Removes the oldest files until the others fit in `limit`.
  func enforce(limit: Int64, in index: DiskIndex) throws(SQLiteError) {
    while let totals = try index.partialTotals(), totals.bytes > limit, try removeOldest(from: index) != nil {}
    try recordTotals(of: index)
  }

  private func remove(_ ids: [Int64], from index: DiskIndex) throws(SQLiteError) {
    for id in ids { try remove(id, from: index) }
    try recordTotals(of: index)
  }

  private func remove(_ id: Int64, from index: DiskIndex) throws(SQLiteError) {
    try index.remove(partial: id)
    session.folder?.removeTemporary(id: id)
  }

  // MARK: Maintenance

  /// Makes the files of dead workers resumable, and removes those that cannot be resumed. Runs before the sweep, which
  /// ignores files with a row.
  ///
  /// - Parameter swept: the instance numbers of the workers whose files are being swept.
  func adopt(swept: [Int32], limit: Int64, now: Int) {
    guard let opened = session.current, let lock = opened.lock else { return }
    let folder = opened.folder
    func belongsToDeadWorker(_ id: Int64) -> Bool {
      let instance = Int32(truncatingIfNeeded: id >> 32)
      return instance != lock.instance && (swept.contains(instance) || !lock.exists(instance))
    }
    try? session.withIndex { index throws(SQLiteError) in
      for id in try index.unfinishedPartials() where belongsToDeadWorker(id) && !isListed(id) {
        let status = try? folder.files.status(FileName.temporaryPath(id: id), in: folder.descriptor)
        if let size = status?.byteCount, size > 0 {
          _ = try index.retain(partial: id, allocated: folder.allocated(size))
        } else {
          try remove(id, from: index)
        }
      }
      // After a system crash a file may have its length but not its bytes.
      for id in try index.partials(ofOtherBootThan: opened.boot) where belongsToDeadWorker(id) {
        try remove(id, from: index)
      }
      for id in try index.expiredPartials(now: now) { try remove(id, from: index) }
      try enforce(limit: limit, in: index)
      hasAdopted = true
    }
    commit()
  }

  /// Updates `nextExpiry` and `mayExist`, for which peers may have changed the rows.
  func recordTotals(of index: DiskIndex) throws(SQLiteError) {
    nextExpiry = try index.partialTotals()?.nextExpiry
    mayExist.withLock { $0 = nextExpiry != nil }
  }
}
