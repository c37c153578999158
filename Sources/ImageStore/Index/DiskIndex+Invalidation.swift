/// Queries for clearing.
extension DiskIndex {
  struct Match {
    var record: FileRecord
    var key: String
    var partition: String
    var isOriginal: Bool
  }

  /// Up to `limit` rows that match the filter, without the pinned ones if it depends on time.
  func matches(_ filter: ClearFilter, now: Int, limit: Int) throws(SQLiteError) -> [Match] {
    try beginWriting()
    let (condition, values) = filter.clearCondition(now: now)
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

  func unpinnedVariants(key: String, partition: String) throws(SQLiteError) -> [FileRecord] {
    try beginWriting()
    let find = try records("WHERE key = ?1 AND partition = ?2 AND variant > '' AND pinned = 0")
    return try find.bind(key, partition).rows { FileRecord($0) }
  }
}

extension ClearFilter {
  /// The condition for the rows to clear: those that match, without the pinned ones if the filter depends on time.
  func clearCondition(now: Int) -> (sql: String, values: [any SQLiteValue]) {
    let (condition, values) = condition(now: now)
    return (dependsOnTime ? "pinned = 0 AND (\(condition))" : condition, values)
  }
}
