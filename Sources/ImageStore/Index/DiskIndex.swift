/// The typed statements of the index: what is stored, what is doomed, how much it is.
///
/// Changes gather in a transaction that the caller ends with `commit`; look-ups before that see them. Reading, too,
/// keeps one transaction until `commit`, which saves locking for each look-up.
final class DiskIndex {
  let database: Database
  let mode: Database.Mode
  /// Whether `responses` has the columns of version 3; older versions are read, too.
  let hasAllColumns: Bool
  private(set) var transaction = Transaction.none
  private var statements: [StaticString.Identity: Statement] = [:]

  enum Transaction { case none, reading, writing }

  /// Opens the index, or makes it.
  ///
  /// - Parameters:
  ///   - logLimit: of how many pages SQLite's log is brought into the database. The file keeps its size, twice that at
  ///     most.
  ///   - created: told whether a new one was made.
  init(
    path: String, mode: Database.Mode, logLimit: Int, fault: (() -> Int32?)?, created: inout Bool
  ) throws(OpeningError) {
    self.mode = mode
    do throws(SQLiteError) {
      database = try Database(path: path, mode: mode, fault: fault)
      // In kilobytes: with a million rows, the inner pages of the trees that a look-up goes down take three thousand.
      // A mapped database that is cut short would be SIGBUS.
      try database.execute("PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0")
      if mode == .readWrite {
        // Workers that start together on a new directory all make this of it.
        try database.executeUpgrading("PRAGMA journal_mode = WAL")
        try database.execute(
          """
          PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = \(logLimit);
          PRAGMA journal_size_limit = \(2 * 4096 * logLimit); PRAGMA secure_delete = FAST
          """)
      }
    } catch {
      throw .failed(error)
    }
    var version = try Self.version(of: database)
    if version < IndexSchema.version && mode == .readWrite {
      do throws(SQLiteError) {
        try database.execute("BEGIN IMMEDIATE")
        // Another worker may have made it while this one waited for the lock.
        version = try database.number("PRAGMA user_version")
        created = version == 0
        if let change = version == 0 ? IndexSchema.creation : IndexSchema.migration(from: version) {
          try database.execute(change)
          version = IndexSchema.version
        }
        try database.execute("COMMIT")
      } catch {
        throw .failed(error)
      }
    }
    hasAllColumns = version >= 3
    // What version 1 has is all that reading needs.
    if 1..<IndexSchema.version ~= version && mode != .readWrite { return }
    guard version == IndexSchema.version else { throw .foreignVersion(version) }
  }

  enum OpeningError: Error {
    case failed(SQLiteError)
    /// Another version of the store owns the index, and the files.
    case foreignVersion(Int)
  }

  private static func version(of database: Database) throws(OpeningError) -> Int {
    do throws(SQLiteError) {
      return try database.number("PRAGMA user_version")
    } catch {
      throw .failed(error)
    }
  }

  // MARK: Transactions

  func beginReading() throws(SQLiteError) {
    guard transaction == .none else { return }
    try endStrayTransaction()
    try database.execute("BEGIN")
    transaction = .reading
  }

  func beginWriting() throws(SQLiteError) {
    // SQLite rolls back by itself when the disk is full or broken.
    if transaction != .none && !database.isInTransaction { transaction = .none }
    if transaction == .writing { return }
    if transaction == .reading { try commit() }
    try endStrayTransaction()
    try database.execute("BEGIN IMMEDIATE")
    transaction = .writing
  }

  /// Gives up what a commit that failed has left open, where that could not be done at once.
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

  /// Gives back to the file system what removed rows have left, where that is most of the file and the rest is little:
  /// that is written anew, during which nobody else can write. No transaction may be open.
  func shrink() throws(SQLiteError) {
    let pages = try database.number("PRAGMA page_count")
    let free = try database.number("PRAGMA freelist_count")
    guard free >= max(Self.pagesWorthwhile, pages / 2), pages - free <= Self.pagesAtOnce else { return }
    // The file is cut when the log is brought into it.
    try database.execute("VACUUM; PRAGMA wal_checkpoint(PASSIVE)")
  }

  /// 1 MB, and 16.
  private static let (pagesWorthwhile, pagesAtOnce) = (256, 4096)

  /// Gives up what was not committed.
  func rollBack() {
    transaction = .none
    if database.isInTransaction { try? database.execute("ROLLBACK") }
  }

  /// The prepared form of `sql`, made once.
  func statement(_ sql: StaticString) throws(SQLiteError) -> Statement { try statement("", sql) }

  /// The prepared form of a query for `FileRecord`s, made once; `rest` is what follows the table.
  func holdings(_ rest: StaticString) throws(SQLiteError) -> Statement {
    try statement("SELECT \(IndexSchema.holdingColumns) FROM responses ", rest)
  }

  private func statement(_ beginning: @autoclosure () -> String, _ rest: StaticString) throws(SQLiteError) -> Statement
  {
    if let statement = statements[rest.identity] { return statement }
    let statement = try database.prepare(beginning() + rest.description)
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
  /// The literal's address: equal addresses are equal texts.
  struct Identity: Hashable {
    let address: UInt
  }

  var identity: Identity { Identity(address: UInt(bitPattern: utf8Start)) }
}
