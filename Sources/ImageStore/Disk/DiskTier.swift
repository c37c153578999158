public import Threads

/// The disk tier: one directory of image files with an SQLite index, shared by any number of workers.
///
/// All of it runs on the executor's thread; enter it with `await`, or with
/// `executor.run { tier.assumeIsolated { … } }`. What is stored is visible to look-ups at once and written to the index
/// in batches: a killed worker loses the rows of at most its last batch, and their files are swept at a later start;
/// one that loses rows itself, as on a full disk, sweeps itself. A row never leads to wrong bytes: every delivery
/// checks that the file is there and has its size.
///
/// A failure of the directory or the index as a whole is one warning; until it is tried again, half a minute later,
/// calls fail at once and look-ups find nothing.
public actor DiskTier {
  public enum Mode: Sendable { case readWrite, readOnly }

  /// When a file's digest is checked before it is delivered.
  public enum Verification: Sendable {
    /// Once in a hundred times, and at the first delivery of a file that an earlier run of the system wrote.
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

    public init(entries: Int = 0, bytes: Int64 = 0, limit: Int64 = 0, evicted: EvictionStatistics = EvictionStatistics()) {
      self.entries = entries
      self.bytes = bytes
      self.limit = limit
      self.evicted = evicted
    }
  }

  /// What a stored body comes as.
  public enum Body: Sendable {
    case bytes([UInt8])
    case spool(BodySpool)
  }

  nonisolated let executor: ThreadExecutor
  /// As it was given: the folder of the namespace lies in it.
  public nonisolated let cacheDirectory: String
  nonisolated let directory: String
  public nonisolated let mode: Mode
  nonisolated let environment: StoreEnvironment
  let onWarning: @Sendable (String) -> Void
  var minFreeFraction: Double
  /// Read by other threads as well.
  nonisolated let verification: Locked<Verification>
  var limit: Int64

  // What is open. See IndexSession.
  var session: Session?
  var isClosed = false
  var suspension: Suspension?
  var writeSuspension: Suspension?
  var hasWarned = false
  /// Whether rows of this worker may have been lost whose files exist.
  var hasLeftovers = false
  /// Whether something has made way for an index that found the disk full, and nothing was written since.
  var hasMadeRoom = false

  // Room. See DiskTier+Eviction.
  nonisolated let pins = PinTable()
  var deliveries = UsageJournal()
  /// Responses that were found whole and are not marked so in the index: not yet, or never by a read-only tier.
  var verified: Set<Int64> = []
  /// What the temporary files of spools take.
  var spooled: [Int64: Int64] = [:] {
    didSet { peerTable?.setUnlistedBytes(spooledBytes) }
  }
  /// The spools whose files are listed as partial ones. See PartialFiles.
  var listedSpools: Set<Int64> = []
  nonisolated let partialsExist = Locked(true)
  var hasAdopted = false
  /// Files that somebody works on, by how many do.
  var pinCounts: [Int64: Int] = [:]
  var evicted = EvictionStatistics()
  var evictionCursor = EvictionCursor()
  var spaceLimit = Int64.max
  /// When the free space was looked at, and how many bytes may be written until it is looked at again.
  var spaceCheck: (at: Int, budget: Int64)?

  // Housekeeping.
  var schedule = MaintenanceSchedule()
  var sweep: Sweep?

  // Company. See DiskTier+Peers.
  var peerTable: PeerTable?
  /// Leases on what the index has and has not committed.
  var leases: [Lease] = []
  /// Where there is no board.
  var othersLived = false

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// - Parameters:
  ///   - directory: the cache directory; the tier lives in its folder `namespace`.
  ///   - limit: allocated bytes of image and temporary files, over 0.
  ///   - minFreeFraction: the part of the file system that stays free, 0 to 1.
  ///   - onWarning: called on the executor's thread, with one line.
  public init(
    directory: String, namespace: String, limit: Int64, minFreeFraction: Double = 0.05,
    verify: Verification = .random, mode: Mode = .readWrite, executor: ThreadExecutor,
    environment: StoreEnvironment = .system, onWarning: @escaping @Sendable (String) -> Void
  ) {
    cacheDirectory = directory
    self.directory = directory + "/" + namespace
    self.limit = limit
    self.minFreeFraction = minFreeFraction
    verification = Locked(verify)
    self.mode = mode
    self.executor = executor
    self.environment = environment
    self.onWarning = onWarning
  }

  /// Whether a namespace may be a folder's name: 1 to 64 characters, no separator, no leading dot, nothing unprintable.
  public static func isValidNamespace(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.count <= 64 && name.utf8.first != UInt8(ascii: ".")
      && name.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "\\") }
  }

  /// Makes the directories, for the owner only, and proves that they can be written. Cheap: the index is opened when it
  /// is needed.
  ///
  /// Throws `unusable` with the path.
  public func open() throws(StoreError) {
    isClosed = false
    do throws(FileError) {
      try openSession()
    } catch {
      throw StoreError(.unusable(path: error.path.hasPrefix("/") ? error.path : directory), error.message)
    }
  }

  /// Writes what is pending and lets go of the directory. Later calls fail, until `open`.
  public func close() {
    flushUses()
    isClosed = true
    guard let session else { return }
    commit()
    session.index = nil
    let isSwept = sweep == nil && !schedule.sweepWanted && schedule.sweepAt == nil
    if !hasLeftovers && spooled.isEmpty && isSwept { session.lock?.remove() }
    sweep = nil
    self.session = nil
    setBoard(nil)
  }

  /// What the tier holds. All 0 but the limit when it cannot be used.
  public var counts: Counts {
    let totals = try? withIndex { index throws(SQLiteError) in try index.totals() }
    let unlisted = spooledBytes + (peerTable?.unlistedBytesOfOthers ?? 0)
    return Counts(
      entries: totals?.entries ?? 0, bytes: (totals?.bytes ?? 0) + unlisted, limit: limit, evicted: evicted)
  }

  /// Sets the limit and brings the tier under it. What is over a tenth of the new one and was kept before, stays until
  /// its turn comes.
  public func setLimit(_ limit: Int64) {
    self.limit = limit
    trim()
  }

  public func setMinFreeFraction(_ fraction: Double) {
    minFreeFraction = fraction
    spaceCheck = nil
    trim()
  }

  public func setVerification(_ verification: Verification) {
    self.verification.withLock { $0 = verification }
  }

  var now: Int { environment.now() }
  var spooledBytes: Int64 { spooled.values.reduce(0, +) }
}
