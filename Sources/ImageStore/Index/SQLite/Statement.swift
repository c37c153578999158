internal import CSQLite

/// A prepared statement. Bind its parameters, then call `run`, `first` or `rows`, which reset it for the next use.
final class Statement {
  private let handle: OpaquePointer
  private let database: Database

  init(_ handle: OpaquePointer, of database: Database) {
    self.handle = handle
    self.database = database
  }

  deinit { sqlite3_finalize(handle) }

  /// Runs the statement to completion.
  func run() throws(SQLiteError) {
    defer { sqlite3_reset(handle) }
    while try database.step(handle) {}
  }

  /// The result of `read` for the first row; nil if there is none.
  func first<Result>(_ read: (borrowing Row) -> Result) throws(SQLiteError) -> Result? {
    defer { sqlite3_reset(handle) }
    return try database.step(handle) ? read(Row(handle)) : nil
  }

  /// The results of `read` for each row.
  func rows<Result>(_ read: (borrowing Row) -> Result) throws(SQLiteError) -> [Result] {
    defer { sqlite3_reset(handle) }
    var results: [Result] = []
    while try database.step(handle) { results.append(read(Row(handle))) }
    return results
  }

  /// Binds the parameters from the first on. They keep their values until they are bound again.
  func bind<each Value: SQLiteValue>(_ values: repeat each Value) -> Statement {
    var parameter: Int32 = 0
    for value in repeat each values {
      parameter += 1
      value.bind(to: handle, parameter)
    }
    return self
  }

  func bind(_ values: [any SQLiteValue]) -> Statement {
    for (parameter, value) in zip(Int32(1)..., values) { value.bind(to: handle, parameter) }
    return self
  }
}

/// The current row of a statement. Columns count from 0.
struct Row: ~Copyable {
  private let handle: OpaquePointer

  init(_ handle: OpaquePointer) { self.handle = handle }

  func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

  func int(_ column: Int32) -> Int { Int(sqlite3_column_int64(handle, column)) }

  func optionalInt(_ column: Int32) -> Int? { isNull(column) ? nil : int(column) }

  func text(_ column: Int32) -> String {
    guard let text = sqlite3_column_text(handle, column) else { return "" }
    let count = Int(sqlite3_column_bytes(handle, column))
    return String(decoding: UnsafeBufferPointer(start: text, count: count), as: UTF8.self)
  }

  func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }

  func bytes(_ column: Int32) -> [UInt8] {
    guard let bytes = sqlite3_column_blob(handle, column) else { return [] }
    return [UInt8](UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(handle, column))))
  }

  func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }
}
