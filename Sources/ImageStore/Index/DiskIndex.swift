/// The typed statements of the index: stored responses, pending deletions, partial files and totals.
///
/// Changes are batched in a transaction that the caller ends with `commit`. Look-ups on this connection see them before
/// that. Look-ups also share one read transaction until `commit`, which avoids locking for each one.
final class DiskIndex {
  let database: Database
  let mode: Database.Mode
  let version: Int
  /// Whether the index was created just now.
  let isNew: Bool
  private(set) var transaction = Transaction.none
  private var statements: [StaticString.Identity: Statement] = [:]

  enum Transaction { case none, reading, writing }

  /// Opens the index, and creates it if necessary.
  ///
  /// - Parameter logLimit: the number of pages after which SQLite's write-ahead log is copied into the database. The
  ///   log's file is kept, at most twice that large.
  init(path: String, mode: Database.Mode, logLimit: Int, fault: (() -> Int32?)?) throws(SQLiteError) {
    self.mode = mode
    database = try Database(path: path, mode: mode, fault: fault)
    // The cache size is in kilobytes: with a million rows, the inner pages of the B-trees that a look-up visits take
    // 3000 kB. No memory mapping: access to a mapped database that is truncated would raise SIGBUS.
    try database.execute("PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0")
    if mode == .readWrite {
      // Workers that start together on a new directory all execute this.
      try database.executeUpgrading("PRAGMA journal_mode = WAL")
      try database.execute(
        """
        PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = \(logLimit);
        PRAGMA journal_size_limit = \(2 * 4096 * logLimit); PRAGMA secure_delete = FAST
        """)
    }
    var (version, isNew) = (try database.number("PRAGMA user_version"), false)
    if version < IndexSchema.version && mode == .readWrite {
      try database.execute("BEGIN IMMEDIATE")
      // Another worker may have created it while this one waited for the lock.
      version = try database.number("PRAGMA user_version")
      isNew = version == 0
      if let change = version == 0 ? IndexSchema.creation : IndexSchema.migration(from: version) {
        try database.execute(change)
        version = IndexSchema.version
      }
      try database.execute("COMMIT")
    }
    (self.version, self.isNew) = (version, isNew)
  }

  /// Whether `responses` has the columns of version 3.
  var hasAllColumns: Bool { version >= 3 }

  /// Whether this version of the store can use the index and the files. Reading needs only the columns of version 1.
  var isCompatible: Bool {
    version == IndexSchema.version || mode != .readWrite && (1..<IndexSchema.version).contains(version)
  }

  // MARK: Transactions

  func beginReading() throws(SQLiteError) {
    guard transaction == .none else { return }
    try endStrayTransaction()
    try database.execute("BEGIN")
    transaction = .reading
  }

  func beginWriting() throws(SQLiteError) {
    // SQLite rolls back by itself if the disk is full or broken.
    if transaction != .none && !database.isInTransaction { transaction = .none }
    if transaction == .writing { return }
    if transaction == .reading { try commit() }
    try endStrayTransaction()
    try database.execute("BEGIN IMMEDIATE")
    transaction = .writing
  }

  /// Rolls back the transaction that a failed commit has left open, if that was not possible at once.
  private func endStrayTransaction() throws(SQLiteError) {
    if database.isInTransaction { try database.execute("ROLLBACK") }
  }

  func commit() throws(SQLiteError) {
    guard transaction != .none else { return }
    transaction = .none
    do throws(SQLiteError) {
      try database.execute("COMMIT")
    } catch {
      if database.isInTransaction { try? database.execute("ROLLBACK") }
      throw error
    }
  }

  /// Returns free pages to the file system if most of the file is free and the remainder is small. Rewrites the file,
  /// which blocks other writers meanwhile. No transaction may be open.
  func shrink() throws(SQLiteError) {
    let pages = try database.number("PRAGMA page_count")
    let free = try database.number("PRAGMA freelist_count")
    guard free >= max(Self.minFreePages, pages / 2), pages - free <= Self.maxUsedPages else { return }
    // The checkpoint truncates the file.
    try database.execute("VACUUM; PRAGMA wal_checkpoint(PASSIVE)")
  }

  /// In pages: 1 MB and 16 MB.
  private static let (minFreePages, maxUsedPages) = (256, 4096)

  /// Rolls back uncommitted changes.
  func rollBack() {
    transaction = .none
    if database.isInTransaction { try? database.execute("ROLLBACK") }
  }

  /// The prepared statement of `sql`, cached.
  func statement(_ sql: StaticString) throws(SQLiteError) -> Statement { try statement("", sql) }

  /// The cached prepared statement of a query for `FileRecord`s; `rest` is the SQL after the table name.
  func records(_ rest: StaticString) throws(SQLiteError) -> Statement {
    try statement("SELECT \(IndexSchema.recordColumns) FROM responses ", rest)
  }

  /// The cached prepared statement of two parts; the second identifies it.
  func statement(_ prefix: @autoclosure () -> String, _ rest: StaticString) throws(SQLiteError) -> Statement {
    if let statement = statements[rest.identity] { return statement }
    let statement = try database.prepare(prefix() + rest.description)
    statements[rest.identity] = statement
    return statement
  }

  func reading(_ sql: StaticString) throws(SQLiteError) -> Statement {
    try beginReading()
    return try statement(sql)
  }

  func writing(_ sql: StaticString) throws(SQLiteError) -> Statement {
    try beginWriting()
    return try statement(sql)
  }
}

extension StaticString {
  /// The address of the literal: equal addresses mean equal texts.
  struct Identity: Hashable {
    let address: UInt
  }

  var identity: Identity { Identity(address: UInt(bitPattern: utf8Start)) }
}

/// The values of a row that eviction and clearing need.
struct FileRecord: Equatable {
  var id: Int64
  var file: String
  var allocated: Int64
  var usedAt: Int
  var deliveredAt: Int
}

extension FileRecord {
  init(_ row: borrowing Row) {
    let id = row.integer(0)
    self.init(
      id: id, file: FileName(id: id, digest: row.bytes(1), format: row.format(2)).path, allocated: row.integer(3),
      usedAt: row.int(4), deliveredAt: row.int(5))
  }
}
