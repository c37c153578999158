public import Threads

/// The disk tier: one directory of image files with an SQLite index, shared by any number of workers.
///
/// Runs on the executor's thread; enter it with `await`, or with `executor.run { tier.assumeIsolated { … } }`. A stored
/// response is visible to look-ups at once and is written to the index in batches. A killed worker loses at most the
/// rows of its last batch; a later start sweeps their files. A worker that loses rows itself, as on a full disk, runs
/// the sweep itself. A row never leads to wrong bytes: every delivery checks that the file exists and has its size.
///
/// A failure of the directory or of the whole index produces one warning. Until the next attempt, 30 s later, calls
/// fail at once and look-ups find nothing.
public actor DiskTier {
  public enum Mode: Sendable { case readWrite, readOnly }

  /// When a file's digest is checked before it is delivered.
  public enum Verification: String, Sendable, CaseIterable {
    /// At 1 % of deliveries, and at the first delivery of a file that was written before the last system start.
    case random
    case always
    case never
  }

  public struct Counts: Sendable, Equatable {
    public var entries = 0
    /// Allocated bytes of image and temporary files.
    public var bytes: Int64 = 0
    public var limit: Int64 = 0
    public var evicted = EvictionStatistics()

    public static let zero = Counts()
  }

  /// The source of a body to be stored.
  public enum Body: Sendable {
    case bytes([UInt8])
    case spool(BodySpool)
  }

  public nonisolated let executor: ThreadExecutor
  /// The directory as passed to `init`; it contains the folder of the namespace.
  public nonisolated let cacheDirectory: String
  nonisolated let directory: String
  public nonisolated let mode: Mode
  nonisolated let environment: StoreEnvironment
  /// Also read by other threads.
  nonisolated let verification: Locked<Verification>

  let session: IndexSession
  nonisolated let deliveries = DeliveryTable()
  var retention = RetentionTracker()
  var budget: SpaceBudget
  nonisolated let partialsExist = Locked(true)
  let partials: PartialFiles
  var schedule = MaintenanceSchedule()
  var sweep: Sweep?
  /// Whether peers were alive at the last survey. Used if there is no peer table.
  var peersLived = false

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// - Parameters:
  ///   - directory: the cache directory; the tier uses its folder `namespace`.
  ///   - limit: allocated bytes of image and temporary files; must be positive.
  ///   - minFreeFraction: the fraction of the file system that must stay free, 0 to 1.
  ///   - onWarning: called on the executor's thread.
  public init(
    directory: String, namespace: String, limit: Int64, minFreeFraction: Double = 0.05,
    verify: Verification = .random, mode: Mode = .readWrite, executor: ThreadExecutor,
    environment: StoreEnvironment = .system, onWarning: @escaping @Sendable (StoreWarning) -> Void
  ) {
    cacheDirectory = directory
    self.directory = directory + "/" + namespace
    budget = SpaceBudget(limit: limit, minFreeFraction: minFreeFraction)
    verification = Locked(verify)
    self.mode = mode
    self.executor = executor
    self.environment = environment
    let session = IndexSession(
      path: self.directory, mode: mode, environment: environment, onWarning: onWarning)
    let partials = PartialFiles(session: session, mayExist: partialsExist)
    self.session = session
    self.partials = partials
    partials.commit = { [unowned self] in self.assumeIsolated { _ = $0.commit() } }
    session.onEvent = { [unowned self] event in self.assumeIsolated { $0.react(to: event) } }
  }

  private func react(to event: IndexSession.Event) {
    switch event {
    case .folderOpened:
      openPeerTable()
      partials.folderOpened()
      schedule.surveyAt = .distantPast
      sweep = nil
    case .indexOpened(let isNew, let nextDue):
      schedule.nextDue = nextDue
      if mode == .readWrite {
        schedule.trimAt = now
        schedule.clockCheckWanted = true
      }
      budget.resetCursor()
      if isNew { schedule.sweepWanted = true }
    case .rowsLost:
      schedule.requestSweep()
    }
  }

  /// Whether a namespace is a valid folder name: 1 to 64 bytes, without separators, a leading dot, spaces or control
  /// characters.
  public static func isValidNamespace(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.count <= 64 && name.utf8.first != UInt8(ascii: ".")
      && name.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "\\") }
  }

  /// Creates the directories, for the owner only, and verifies that they can be written. Cheap: the index is opened
  /// when it is needed.
  ///
  /// Throws `unusable` with the path.
  public func open() throws(StoreError) {
    session.isClosed = false
    do throws(FileError) {
      try session.open()
    } catch {
      throw StoreError(.unusable(path: error.path.hasPrefix("/") ? error.path : directory), error.message)
    }
  }

  /// Writes all pending changes and closes the directory. Later calls fail until `open`.
  public func close() {
    flushUses()
    session.isClosed = true
    guard let lock = session.current?.lock else { return session.closeFolder() }
    commit()
    let isSwept = sweep == nil && !schedule.sweepWanted && schedule.sweepAt == nil
    if !schedule.hasLeftovers && !budget.hasReservations && isSwept { lock.remove() }
    sweep = nil
    session.closeFolder()
    setPeerTable(nil)
  }

  /// The current usage. All values except the limit are 0 if the tier cannot be used.
  public var counts: Counts {
    let totals = try? session.withIndex { index throws(SQLiteError) in try index.totals() }
    let unlisted = budget.reservedBytes + (peerTable?.unlistedBytesOfPeers ?? 0)
    return Counts(
      entries: totals?.entries ?? 0, bytes: (totals?.bytes ?? 0) + unlisted, limit: budget.limit,
      evicted: budget.evicted)
  }

  /// The number of entries that this worker has evicted.
  public var evictionCount: Int { budget.evicted.total }

  /// Sets the limit and evicts down to it. A stored file larger than a tenth of the new limit stays until it is evicted
  /// in its turn.
  public func setLimit(_ limit: Int64) {
    budget.limit = limit
    trim()
  }

  public func setMinFreeFraction(_ fraction: Double) {
    budget.minFreeFraction = fraction
    trim()
  }

  public func setVerification(_ verification: Verification) {
    self.verification.withLock { $0 = verification }
  }

  var now: Int { environment.now() }
}
