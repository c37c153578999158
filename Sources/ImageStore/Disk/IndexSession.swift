internal import Platform

/// Opens the directory and the index, suspends them after failures, and rebuilds a damaged index.
extension DiskTier {
  /// The open directory, this worker's lock file, and the index once it is needed.
  final class Session {
    let folder: CacheFolder
    let lock: PeerLock?
    /// The run of the system whose files need no verification, or this worker if the system does not name its runs.
    let boot: String
    let bootNumber: Int64
    var index: DiskIndex?
    /// The identity of the file that `index` was opened from. If it changes, another worker has replaced the index.
    var indexIdentity: FileIdentity?
    var indexModifiedAt: Int?
    private var lastID: Int64

    init(folder: CacheFolder, lock: PeerLock?, boot: String?) {
      self.folder = folder
      self.lock = lock
      self.boot = boot ?? "worker \(lock?.instance ?? 0)"
      bootNumber = fnv1a(self.boot)
      // The counter starts at a random shard, so that the first shards do not fill up.
      let instance = Int64(lock?.instance ?? 0)
      lastID = instance << 32 | instance & 0xff
    }

    func nextID() -> Int64 {
      lastID += 1
      return lastID
    }

    /// Continues the ids of an earlier worker that drew the same instance number.
    func continueIDs(after id: Int64) { lastID = max(lastID, id) }
  }

  /// A failure, after which the tier is not used or not written for `retryInterval`. `since` is in Unix seconds.
  struct Suspension {
    let error: StoreError
    let since: Int

    /// Whether the suspension still lasts. It also ends if the clock is set back.
    func isActive(at now: Int) -> Bool { (since..<since + retryInterval).contains(now) }
  }

  static let indexName = "index.sqlite"
  private static let rebuildLock = PeerLock.directory + "/index.lock"

  /// The duration of a suspension, in seconds.
  static let retryInterval = 30

  func openSession() throws(FileError) {
    let folder = try CacheFolder(path: directory, writable: mode == .readWrite, files: environment.files)
    if mode == .readWrite { try checkIndexPlace(in: folder) }
    let lock = mode == .readWrite ? try PeerLock(in: folder, random: environment.random) : nil
    session = Session(folder: folder, lock: lock, boot: environment.boot())
    openPeerTable()
    hasAdopted = false
    schedule.surveyAt = .distantPast
    sweep = nil
  }

  /// Reports at the start, and not only at the first use, an index that SQLite could never open. Does not open the
  /// file: closing it would release this process's POSIX locks on it.
  private func checkIndexPlace(in folder: CacheFolder) throws(FileError) {
    let path = directory + "/" + Self.indexName
    guard path.utf8.count + "-journal".utf8.count < Database.maxPathLength else {
      throw FileError(operation: .index, path: path, code: ENAMETOOLONG)
    }
    do throws(FileError) {
      let status = try folder.files.status(Self.indexName, in: folder.descriptor)
      guard status.st_mode & S_IFMT == S_IFREG else {
        throw FileError(operation: .index, path: path, code: status.st_mode & S_IFMT == S_IFDIR ? EISDIR : EINVAL)
      }
    } catch {
      if !error.isMissing { throw error }
    }
  }

  /// The open session; opens one if necessary.
  func usableSession() throws(StoreError) -> Session {
    if isClosed { throw StoreError(.io, "the disk tier is closed") }
    if let suspension, suspension.isActive(at: now) { throw suspension.error }
    suspension = nil
    if let session { return session }
    do throws(FileError) {
      try openSession()
    } catch {
      throw suspend(StoreError(error))
    }
    return session!
  }

  func writableSession() throws(StoreError) -> Session {
    if mode == .readOnly { throw StoreError(.io, "\(directory) is a read-only cache") }
    if let writeSuspension, writeSuspension.isActive(at: now) { throw writeSuspension.error }
    writeSuspension = nil
    return try usableSession()
  }

  /// Runs `work` on the index. Replaces a damaged index with an empty one and runs `work` again.
  func withIndex<Result>(_ work: (DiskIndex) throws(SQLiteError) -> Result) throws(StoreError) -> Result {
    let session = try usableSession()
    var mayRebuild = mode == .readWrite
    while true {
      let index = try openIndex(of: session)
      do throws(SQLiteError) {
        return try work(index)
      } catch {
        scheduleOrphanSweep()
        index.rollBack()
        // Their responses were rolled back.
        leases.removeAll()
        if error.isOutOfSpace { throw suspendWrites(StoreError(error)) }
        session.index = nil
        guard error.isDamage && mayRebuild else { throw suspend(StoreError(error)) }
        mayRebuild = false
        try rebuildIndex(of: session)
      }
    }
  }

  private func openIndex(of session: Session) throws(StoreError) -> DiskIndex {
    if let index = session.index { return index }
    var mayRebuild = mode == .readWrite
    while true {
      session.indexIdentity = FileIdentity(Self.indexName, in: session.folder)
      do throws(DiskIndex.OpeningError) {
        var created = false
        let index = try DiskIndex(
          path: directory + "/" + Self.indexName, mode: databaseMode(session), logLimit: logLimit(of: session.folder),
          fault: indexFault, created: &created)
        try continueIDs(of: session, after: index)
        session.index = index
        if created { session.indexIdentity = FileIdentity(Self.indexName, in: session.folder) }
        schedule.nextDue = try? index.nextDue()
        if mode == .readWrite {
          schedule.trimAt = now
          schedule.clockCheckWanted = true
        }
        evictionCursor = EvictionCursor()
        if created { schedule.sweepWanted = true }
        return index
      } catch {
        switch error {
        case .foreignVersion(let version):
          let message = "\(directory) has version \(version) of the index; this worker needs \(IndexSchema.version)"
          throw suspend(StoreError(.unusable(path: directory), message))
        case .failed(let error):
          guard error.isDamage && mayRebuild else {
            if !session.folder.isInPlace { self.session = nil }
            throw suspend(StoreError(error))
          }
          mayRebuild = false
          try rebuildIndex(of: session)
        }
      }
    }
  }

  /// The write-ahead log's limit in pages: 16 MB, or 0.5 % of a small file system.
  private func logLimit(of folder: CacheFolder) -> Int {
    let maxPages = 4000
    guard let total = try? environment.files.space(of: folder.descriptor).total else { return maxPages }
    return min(max(64, Int(total / 200 / 4096)), maxPages)
  }

  private func continueIDs(of session: Session, after index: DiskIndex) throws(DiskIndex.OpeningError) {
    guard let lock = session.lock else { return }
    do throws(SQLiteError) {
      session.continueIDs(after: try index.greatestID(ofInstance: lock.instance))
    } catch {
      throw .failed(error)
    }
  }

  /// Closes the index of a read-only tier if a writer has come, gone or written, so that the next look-up sees the
  /// change.
  func refreshReading() {
    schedule.surveyAt = now
    guard let session, let index = session.index else { return }
    let status = try? session.folder.files.status(Self.indexName, in: session.folder.descriptor)
    if index.mode != databaseMode(session) || session.indexModifiedAt != status?.modificationSecond {
      session.index = nil
    }
    session.indexModifiedAt = status?.modificationSecond
  }

  /// A read-only tier opens the index without creating SQLite's side files, unless a writer has created them.
  private func databaseMode(_ session: Session) -> Database.Mode {
    if mode == .readWrite { return .readWrite }
    return FileIdentity(Self.indexName + "-wal", in: session.folder) == nil ? .immutable : .readOnly
  }

  private var indexFault: (() -> Int32?)? {
    guard let fault = environment.files.fault else { return nil }
    return { fault(.index).map(SQLiteError.code(forErrno:)) }
  }

  /// Removes the damaged index, unless another worker has replaced it already. The next use creates a new one.
  private func rebuildIndex(of session: Session) throws(StoreError) {
    let (folder, files) = (session.folder, session.folder.files)
    do throws(FileError) {
      let lock = try files.openOrCreate(Self.rebuildLock, in: folder.descriptor)
      defer { closeFile(lock) }
      guard try files.lock(lock, Self.rebuildLock) else {
        throw FileError(operation: .lock, path: Self.rebuildLock, code: EWOULDBLOCK)
      }
      guard FileIdentity(Self.indexName, in: folder) == session.indexIdentity else { return }
      for suffix in ["", "-wal", "-shm"] {
        do throws(FileError) {
          try files.remove(Self.indexName + suffix, in: folder.descriptor)
        } catch {
          if !error.isMissing { throw error }
        }
      }
    } catch {
      throw suspend(StoreError(error))
    }
    onWarning("the index of the cache \(directory) was damaged; the cache starts empty")
  }

  /// Disables the tier for `retryInterval` and warns once.
  func suspend(_ error: StoreError) -> StoreError {
    suspension = Suspension(error: error, since: now)
    session?.index = nil
    warn(error)
    return error
  }

  /// Disables writing for `retryInterval` and warns once; stored responses can still be read.
  func suspendWrites(_ error: StoreError) -> StoreError {
    writeSuspension = Suspension(error: error, since: now)
    warn(error)
    return error
  }

  private func warn(_ error: StoreError) {
    if hasWarned { return }
    hasWarned = true
    onWarning("continuing without the cache \(directory): \(error.message)")
  }
}
