/// The state of the file of an entry.
public enum FileState: Sendable, Equatable {
  case intact
  case missing
  case wrongSize(Int64)
  /// Its SHA-256 is not that of the index.
  case damaged
  /// Reading it fails, with this message.
  case unreadable(String)
}

/// Compares the files with the index, for `imageworker cache verify`.
extension DiskTier {
  /// The number of entries, and the allocated bytes of all files in the index.
  public func listedTotals() throws(StoreError) -> (entries: Int, allocated: Int64) {
    let totals = try session.withSettledIndex { index throws(SQLiteError) in try index.totals() }
    return (totals.entries, totals.bytes)
  }

  /// Whether the entry is still stored.
  public func isListed(_ entry: CacheEntry) throws(StoreError) -> Bool {
    try session.withSettledIndex { index throws(SQLiteError) in try index.record(entry.id) != nil }
  }

  /// Reads the whole file. Changes nothing.
  public func examine(_ entry: CacheEntry) throws(StoreError) -> FileState {
    let folder = try session.usable().folder
    let path = entry.file
    do throws(FileError) {
      let file = try environment.files.openFile(path, in: folder.descriptor)
      defer { closeFile(file) }
      let byteCount = try environment.files.status(of: file, path).byteCount
      guard byteCount == entry.content.byteCount else { return .wrongSize(Int64(byteCount)) }
      return try digest(of: file, path) == entry.content.digest ? .intact : .damaged
    } catch {
      return error.isMissing ? .missing : .unreadable(error.message)
    }
  }

  /// The SHA-256 of an open file.
  func digest(of file: Int32, _ path: String) throws(FileError) -> [UInt8] {
    var hash = SHA256()
    try environment.files.forEachPiece(of: file, path) { piece throws(FileError) in hash.update(piece) }
    return hash.finish()
  }

  /// Whether a bad state of an entry's file still holds, and the entry is still stored. Takes the write lock of the
  /// index: a worker that evicts an entry deletes the file before its deletion of the row is committed.
  public func confirm(_ state: FileState, of entry: CacheEntry) throws(StoreError) -> Bool {
    let folder = try session.writable().folder
    let isListed = try session.withIndex { index throws(SQLiteError) in
      try index.beginWriting()
      return try index.record(entry.id) != nil
    }
    guard isListed, state == .missing else { return isListed }
    do throws(FileError) {
      _ = try environment.files.status(entry.file, in: folder.descriptor)
      return false
    } catch {
      return error.isMissing
    }
  }

  /// Removes an entry whose file is missing or damaged, and the file, as a worker does that finds it in this state.
  public func discard(_ entry: CacheEntry) throws(StoreError) {
    let folder = try session.writable().folder
    _ = try session.withIndex { index throws(SQLiteError) in try index.delete(entry.id) }
    folder.remove(entry.file)
  }

  /// A file that the index does not know.
  public struct OrphanFile: Sendable, Equatable {
    /// Relative to the folder of the namespace.
    public var path: String
    public var byteCount: Int64
    /// Whether it is the temporary file of a body that never became complete.
    public var isTemporary: Bool
  }

  public static var shardCount: Int { CacheFolder.shards.count }

  /// The files in a shard that no row names and no living worker may still be about to list. Ignores files whose names
  /// the store does not generate. For a read-only tier.
  public func orphans(inShard number: Int) throws(StoreError) -> [OrphanFile] {
    let folder = try session.usable().folder
    let shard = CacheFolder.shards[number]
    // The order matters, as in `Sweep.step`.
    let names = (try? folder.files.list(shard, in: folder.descriptor)) ?? []
    let files = names.compactMap { name in
      FileName.parse(name).map { (name: name, id: $0.id, isTemporary: $0.isTemporary) }
    }.filter { FileName.shard(of: $0.id) == shard }
    if files.isEmpty { return [] }
    let living = PeerLock.living(in: folder)
    let suspects = files.filter { !living.contains(Int32(truncatingIfNeeded: $0.id >> 32)) }
    var orphans: [OrphanFile] = []
    for file in suspects {
      let isListed = try session.withSettledIndex { index throws(SQLiteError) in
        if try index.contains(id: file.id) { return true }
        return index.version >= 2 ? try index.contains(partial: file.id) : false
      }
      let path = shard + "/" + file.name
      // A worker may have swept it meanwhile.
      guard !isListed, let status = try? folder.files.status(path, in: folder.descriptor) else { continue }
      orphans.append(OrphanFile(path: path, byteCount: Int64(status.byteCount), isTemporary: file.isTemporary))
    }
    return orphans
  }

  /// Removes the files that no row names and no living worker may still be about to list. A file that a host may still
  /// use is deleted when its 60 s end.
  public func sweepOrphans() {
    schedule.requestSweep()
    detectDeadPeers()
    finishSweep()
  }

  /// Runs a sweep that is due or has begun to its end.
  public func finishSweep() {
    if schedule.sweepWanted { detectDeadPeers() }
    while sweep != nil { sweepNextShard(now: now) }
  }
}
