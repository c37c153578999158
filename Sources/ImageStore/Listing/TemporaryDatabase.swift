/// A database of SQLite in a file without a name, which takes a few megabytes of memory for any amount of data. The
/// file is in the directory that SQLITE_TMPDIR or TMPDIR names, else in /var/tmp.
///
/// For one thread at a time.
final class TemporaryDatabase {
  private let database: Database

  /// - Parameter schema: the statements that create its tables.
  init(_ schema: String) throws(StoreError) {
    do throws(SQLiteError) {
      database = try Database(path: "", mode: .temporary)
      try database.execute(
        "PRAGMA cache_size = -4096; PRAGMA temp_store = FILE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
      try database.execute(schema)
    } catch {
      throw Self.storeError(error)
    }
  }

  func use<Result>(_ work: (Database) throws(SQLiteError) -> Result) throws(StoreError) -> Result {
    do throws(SQLiteError) {
      return try work(database)
    } catch {
      throw Self.storeError(error)
    }
  }

  private static func storeError(_ error: SQLiteError) -> StoreError {
    StoreError(error.isOutOfSpace ? .diskFull : .io, "the temporary file for sorting: \(error.message)")
  }
}
