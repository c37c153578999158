/// Pairs of a value and an id that are sorted in a temporary file.
final class SortedValues {
  struct Position: Sendable {
    var value: Int64
    var id: Int64
  }

  private let database: TemporaryDatabase

  init() throws(StoreError) { database = try TemporaryDatabase("CREATE TABLE pairs(value INTEGER, id INTEGER)") }

  func insert(_ pairs: [Position]) throws(StoreError) {
    try database.use { database throws(SQLiteError) in
      try database.execute("BEGIN")
      let insert = try database.prepare("INSERT INTO pairs VALUES (?1, ?2)")
      for pair in pairs { try insert.bind(pair.value, pair.id).run() }
      try database.execute("COMMIT")
    }
  }

  /// Sorts the pairs. Must be called after the last `insert` and before `page`.
  func sort() throws(StoreError) {
    try database.use { database throws(SQLiteError) in try database.execute("CREATE INDEX sorted ON pairs(value, id)") }
  }

  /// The next pairs after a position, by value and then by id.
  func page(after position: Position?, reversed: Bool, limit: Int) throws(StoreError) -> [Position] {
    let (comparison, direction) = reversed ? ("<", "DESC") : (">", "ASC")
    let condition = position == nil ? "1" : "(value, id) \(comparison) (?2, ?3)"
    return try database.use { database throws(SQLiteError) in
      let find = try database.prepare(
        "SELECT value, id FROM pairs WHERE \(condition) ORDER BY value \(direction), id \(direction) LIMIT ?1")
      let values: [any SQLiteValue] = position.map { [limit, $0.value, $0.id] } ?? [limit]
      return try find.bind(values).rows { Position(value: $0.integer(0), id: $0.integer(1)) }
    }
  }
}
