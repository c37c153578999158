/// Queries for clearing.
extension DiskIndex {
  struct Match {
    var record: FileRecord
    var key: String
    var partition: String
    var isOriginal: Bool
  }

  /// Up to `limit` rows that match the filter.
  func matches(_ filter: ClearFilter, now: Int, limit: Int) throws(SQLiteError) -> [Match] {
    try beginWriting()
    let (condition, values) = filter.condition(now: now)
    let find = try query(
      """
      SELECT \(IndexSchema.recordColumns), key, partition, variant = '' FROM responses WHERE \(condition) LIMIT \(limit)
      """, values)
    return try find.rows {
      Match(record: FileRecord($0), key: $0.text(6), partition: $0.text(7), isOriginal: $0.int(8) == 1)
    }
  }

  /// Prepares a statement for a single use and binds its parameters.
  func query(_ sql: String, _ values: [any SQLiteValue]) throws(SQLiteError) -> Statement {
    try database.prepare(sql).bind(values)
  }

  func variants(key: String, partition: String) throws(SQLiteError) -> [FileRecord] {
    try beginWriting()
    let find = try records("WHERE key = ?1 AND partition = ?2 AND variant > ''")
    return try find.bind(key, partition).rows { FileRecord($0) }
  }
}
