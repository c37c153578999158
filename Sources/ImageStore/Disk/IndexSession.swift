internal import Platform

/// The open directory and index of a disk tier. The other parts of the tier reach the index only through `withIndex`
/// and the files only through the open folder.
///
/// Opens both when they are needed, and replaces a damaged index with an empty one. It is a circuit breaker: after a
/// failure of the directory or of the whole index it warns once, and calls fail at once for `retryInterval`.
final class IndexSession {
  /// A change that the tier must react to. It is reported before the call that caused it continues.
  enum Event: Sendable {
    case folderOpened
    /// - Parameter nextDue: when the first scheduled deletion of a file is due.
    case indexOpened(isNew: Bool, nextDue: Int?)
    /// Rows of existing files may be lost.
    case rowsLost
  }

  /// A failure, after which the tier is not used or not written for `retryInterval`. `since` is in Unix seconds.
  private struct Suspension {
    let error: StoreError
    let since: Int

    /// Whether the suspension still lasts. It also ends if the clock is set back.
    func isActive(at now: Int) -> Bool { (since..<since + retryInterval).contains(now) }
  }

  /// The duration of a suspension, in seconds.
  static let retryInterval = 30
  private static let indexName = "index.sqlite"
  private static let rebuildLock = PeerLock.directory + "/index.lock"

  private let path: String
  private let mode: DiskTier.Mode
  private let environment: StoreEnvironment
  private let onWarning: @Sendable (StoreWarning) -> Void
  var onEvent: (Event) -> Void = { _ in }

  /// Whether calls fail because the tier is closed.
  var isClosed = false
  private(set) var current: OpenFolder?
  private var index: DiskIndex?
  /// The identity of the file that `index` was opened from. If it changes, another worker has replaced the index.
  private var indexIdentity: FileIdentity?
  private var indexModifiedAt: Int?
  /// Leases on responses whose rows are not committed yet.
  private var leases: [Lease] = []
  /// The state of the index file when `withSettledIndex` used it last.
  private var stamp: IndexStamp?
  private var suspension: Suspension?
  private var writeSuspension: Suspension?
  private var hasWarned = false

  /// - Parameter path: the directory.
  init(
    path: String, mode: DiskTier.Mode, environment: StoreEnvironment,
    onWarning: @escaping @Sendable (StoreWarning) -> Void
  ) {
    self.path = path
    self.mode = mode
    self.environment = environment
    self.onWarning = onWarning
  }

  var folder: CacheFolder? { current?.folder }
  var isIndexOpen: Bool { index != nil }
  var isSuspended: Bool { suspension != nil }

  func open() throws(FileError) {
    let folder = try CacheFolder(path: path, writable: mode == .readWrite, files: environment.files)
    if mode == .readWrite { try checkIndexPlace(in: folder) }
    let lock = mode == .readWrite ? try PeerLock(in: folder, random: environment.random) : nil
    index = nil
    indexModifiedAt = nil
    current = OpenFolder(folder: folder, lock: lock, boot: environment.boot())
    onEvent(.folderOpened)
  }

  /// Reports at the start, and not only at the first use, an index that SQLite could never open. Does not open the
  /// file: closing it would release this process's POSIX locks on it.
  private func checkIndexPlace(in folder: CacheFolder) throws(FileError) {
    let indexPath = path + "/" + Self.indexName
    guard indexPath.utf8.count + "-journal".utf8.count < Database.maxPathLength else {
      throw FileError(operation: .index, path: indexPath, code: ENAMETOOLONG)
    }
    do throws(FileError) {
      let status = try folder.files.status(Self.indexName, in: folder.descriptor)
      guard status.st_mode & S_IFMT == S_IFREG else {
        throw FileError(operation: .index, path: indexPath, code: status.st_mode & S_IFMT == S_IFDIR ? EISDIR : EINVAL)
      }
    } catch {
      if !error.isMissing { throw error }
    }
  }

  /// The open folder; opens it if necessary.
  func usable() throws(StoreError) -> OpenFolder {
    if isClosed { throw StoreError(.io, "the disk tier is closed") }
    if let suspension, suspension.isActive(at: environment.now()) { throw suspension.error }
    suspension = nil
    if let current { return current }
    do throws(FileError) {
      try open()
    } catch {
      throw suspend(StoreError(error))
    }
    return current!
  }

  func writable() throws(StoreError) -> OpenFolder {
    if mode == .readOnly { throw StoreError(.io, "\(path) is a read-only cache") }
    if let writeSuspension, writeSuspension.isActive(at: environment.now()) { throw writeSuspension.error }
    writeSuspension = nil
    return try usable()
  }

  /// Runs `work` on the folder. Retries once: in a new folder if the folder was deleted, or after `evict` if the
  /// disk is full.
  ///
  /// - Parameter evict: deletes some files; returns false if none can be deleted.
  func withFolder<Result>(
    evict: () -> Bool, _ work: (OpenFolder) throws(FileError) -> Result
  ) throws(StoreError) -> Result {
    var mayRetry = true
    while true {
      let opened = try writable()
      do throws(FileError) {
        return try work(opened)
      } catch {
        if mayRetry && error.isMissing {
          onEvent(.rowsLost)
          closeFolder()
        } else if !mayRetry || !error.isOutOfSpace || !evict() {
          throw error.concernsFolder || error.isMissing ? suspendWrites(StoreError(error)) : StoreError(error)
        }
        mayRetry = false
      }
    }
  }

  /// Runs `work` on the index. Replaces a damaged index with an empty one and runs `work` again.
  func withIndex<Result>(_ work: (DiskIndex) throws(SQLiteError) -> Result) throws(StoreError) -> Result {
    let opened = try usable()
    var mayRebuild = mode == .readWrite
    while true {
      let index = try openIndex(in: opened)
      do throws(SQLiteError) {
        return try work(index)
      } catch {
        onEvent(.rowsLost)
        index.rollBack()
        // Their responses were rolled back.
        leases.removeAll()
        if error.isOutOfSpace { throw suspendWrites(StoreError(error)) }
        self.index = nil
        guard error.isDamage && mayRebuild else { throw suspend(StoreError(error)) }
        mayRebuild = false
        try rebuildIndex(in: opened.folder)
      }
    }
  }

  /// Runs a query of a read-only tier, and runs it again if a writer came or went meanwhile: an index that nobody seems
  /// to write is read without locks (`Database.Mode.immutable`), so what was read then may be torn or outdated.
  ///
  /// Neither suspends the tier nor warns.
  func withSettledIndex<Result>(_ work: (DiskIndex) throws(SQLiteError) -> Result) throws(StoreError) -> Result {
    precondition(mode == .readOnly, "a read-write tier would replace a damaged index")
    while true {
      let opened = try usable()
      let before = IndexStamp(Self.indexName, in: opened.folder)
      if before != stamp { closeIndex() }
      stamp = before
      let result: Swift.Result<Result, StoreError>
      do throws(StoreError) {
        let index = try openIndex(in: opened)
        result = Swift.Result { () throws(SQLiteError) in try work(index) }.mapError { StoreError($0) }
      } catch {
        suspension = nil
        result = .failure(error)
      }
      let isLocked = index?.mode == .readOnly
      if case .failure = result { closeIndex() }
      if isLocked || IndexStamp(Self.indexName, in: opened.folder) == before { return try result.get() }
    }
  }

  private func openIndex(in opened: OpenFolder) throws(StoreError) -> DiskIndex {
    if let index { return index }
    let folder = opened.folder
    var mayRebuild = mode == .readWrite
    while true {
      indexIdentity = FileIdentity(Self.indexName, in: folder)
      // SQLite would wait for somebody to write to a pipe.
      if let status = try? folder.files.status(Self.indexName, in: folder.descriptor),
        status.st_mode & S_IFMT != S_IFREG
      {
        throw suspend(StoreError(.io, "\(path)/\(Self.indexName) is not a regular file"))
      }
      let index: DiskIndex
      do throws(SQLiteError) {
        index = try DiskIndex(
          path: path + "/" + Self.indexName, mode: databaseMode(in: folder), logLimit: logLimit(of: folder),
          fault: indexFault)
        if index.isCompatible, let lock = opened.lock {
          opened.continueIDs(after: try index.greatestID(ofInstance: lock.instance))
        }
      } catch {
        guard error.isDamage && mayRebuild else {
          if !folder.isInPlace { closeFolder() }
          throw suspend(StoreError(error))
        }
        mayRebuild = false
        try rebuildIndex(in: folder)
        continue
      }
      guard index.isCompatible else {
        let message =
          index.version == 0
          ? "the index of \(path) is being created; try again"
          : "\(path) has version \(index.version) of the index; this worker needs \(IndexSchema.version)"
        throw suspend(StoreError(.unusable(path: path), message))
      }
      self.index = index
      if index.isNew { indexIdentity = FileIdentity(Self.indexName, in: folder) }
      onEvent(.indexOpened(isNew: index.isNew, nextDue: try? index.nextDue()))
      return index
    }
  }

  /// The write-ahead log's limit in pages: 16 MB, or 0.5 % of a small file system.
  private func logLimit(of folder: CacheFolder) -> Int {
    let maxPages = 4000
    guard let total = try? environment.files.space(of: folder.descriptor).total else { return maxPages }
    return min(max(64, Int(total / 200 / 4096)), maxPages)
  }

  /// Commits the batch of rows and ends the read snapshot of look-ups. Completes the leases, or ends them as failed.
  ///
  /// - Returns: whether there were rows to write.
  func commit() throws(SQLiteError) -> Bool {
    defer { leases.removeAll(keepingCapacity: true) }
    guard let index else { return false }
    let hasWritten = index.transaction == .writing
    try index.commit()
    for lease in leases { lease.succeed() }
    return hasWritten
  }

  /// Keeps the lease on a response that was just stored or updated, until the commit.
  func retain(_ lease: Lease) { leases.append(lease) }

  var hasLeases: Bool { !leases.isEmpty }

  /// Ends the leases as failed.
  func abandonLeases() { leases = [] }

  /// Shrinks the file after many rows were deleted. Errors are ignored.
  func shrinkIndex() { try? index?.shrink() }

  func closeIndex() { index = nil }

  /// Closes the folder and the index, whose uncommitted rows are lost. The next call opens them again.
  func closeFolder() {
    index = nil
    indexModifiedAt = nil
    current = nil
  }

  /// The part of the open session that was deleted or replaced by another process.
  enum Replacement { case folder, index }

  func detectReplacement() -> Replacement? {
    guard let folder else { return nil }
    if !folder.isInPlace { return .folder }
    guard index != nil, let indexIdentity else { return nil }
    return FileIdentity(Self.indexName, in: folder) == indexIdentity ? nil : .index
  }

  /// Closes the index of a read-only tier if a writer has come, gone or written, so that the next look-up sees the
  /// change.
  func refreshReading() {
    guard let folder, let index else { return }
    let status = try? folder.files.status(Self.indexName, in: folder.descriptor)
    if index.mode != databaseMode(in: folder) || indexModifiedAt != status?.modificationSecond { closeIndex() }
    indexModifiedAt = status?.modificationSecond
  }

  /// A read-only tier opens the index without creating SQLite's side files, unless a writer has created them.
  private func databaseMode(in folder: CacheFolder) -> Database.Mode {
    if mode == .readWrite { return .readWrite }
    return FileIdentity(Self.indexName + "-wal", in: folder) == nil ? .immutable : .readOnly
  }

  private var indexFault: (() -> Int32?)? {
    guard let fault = environment.files.fault else { return nil }
    return { fault(.index).map(SQLiteError.code(forErrno:)) }
  }

  /// Removes the damaged index, unless another worker has replaced it already. The next use creates a new one.
  private func rebuildIndex(in folder: CacheFolder) throws(StoreError) {
    let files = folder.files
    do throws(FileError) {
      let lock = try files.openOrCreate(Self.rebuildLock, in: folder.descriptor)
      defer { closeFile(lock) }
      guard try files.lock(lock, Self.rebuildLock) else {
        throw FileError(operation: .lock, path: Self.rebuildLock, code: EWOULDBLOCK)
      }
      guard FileIdentity(Self.indexName, in: folder) == indexIdentity else { return }
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
    onWarning(.damagedIndex(path: path))
  }

  /// Disables the tier for `retryInterval` and warns once.
  func suspend(_ error: StoreError) -> StoreError {
    suspension = Suspension(error: error, since: environment.now())
    index = nil
    warn(error)
    return error
  }

  /// Disables writing for `retryInterval` and warns once; stored responses can still be read.
  func suspendWrites(_ error: StoreError) -> StoreError {
    writeSuspension = Suspension(error: error, since: environment.now())
    warn(error)
    return error
  }

  /// Makes the next failure produce a warning again, unless the tier is suspended.
  func recordSuccess() { if suspension == nil && writeSuspension == nil { hasWarned = false } }

  private func warn(_ error: StoreError) {
    if hasWarned { return }
    hasWarned = true
    onWarning(.unusable(path: path, reason: error.message))
  }
}

/// The state of an index file as the file system sees it. It changes when the file is replaced, when it is written, and
/// when the first writer comes or the last one goes.
struct IndexStamp: Equatable {
  private var identity: FileIdentity?
  private var byteCount: Int64 = 0
  private var modifiedAt: Int64 = 0
  private var hasLog = false

  init(_ name: String, in folder: CacheFolder) {
    identity = FileIdentity(name, in: folder)
    hasLog = FileIdentity(name + "-wal", in: folder) != nil
    // While there is a log, SQLite's locks protect the reader, and checkpoints write the file all the time.
    guard !hasLog, let status = try? folder.files.status(name, in: folder.descriptor) else { return }
    byteCount = Int64(status.st_size)
    modifiedAt = Int64(status.modificationTime.tv_sec) * 1_000_000_000 + Int64(status.modificationTime.tv_nsec)
  }
}
