/// Queries for clearing, and the files whose deletion is pending.
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
  func query(_ sql: String, _ values: [ClearFilter.Value]) throws(SQLiteError) -> Statement {
    let statement = try database.prepare(sql)
    for (parameter, value) in zip(Int32(1)..., values) {
      switch value {
      case .integer(let value): statement.bind(parameter, value)
      case .text(let value): statement.bind(parameter, value)
      }
    }
    return statement
  }

  func variants(key: String, partition: String) throws(SQLiteError) -> [FileRecord] {
    try beginWriting()
    let find = try records("WHERE key = ?1 AND partition = ?2 AND variant > ''")
    find.bind(1, key)
    find.bind(2, partition)
    return try find.rows { FileRecord($0) }
  }

  /// Schedules the deletion of a deleted row's file at `due`.
  func schedulePendingDeletion(_ record: FileRecord, due: Int) throws(SQLiteError) {
    let insert = try writing("INSERT OR REPLACE INTO doomed VALUES (?1, ?2, ?3, ?4)")
    insert.bind(1, record.id)
    insert.bind(2, record.file)
    insert.bind(3, record.allocated)
    insert.bind(4, due)
    try insert.run()
  }

  /// The files whose scheduled deletion is due.
  func due(now: Int, limit: Int) throws(SQLiteError) -> [(id: Int64, file: String)] {
    let find = try writing("SELECT id, file FROM doomed WHERE due <= ?1 ORDER BY due LIMIT ?2")
    find.bind(1, now)
    find.bind(2, limit)
    return try find.rows { ($0.integer(0), $0.text(1)) }
  }

  func nextDue() throws(SQLiteError) -> Int? {
    try reading("SELECT due FROM doomed ORDER BY due LIMIT 1").first { $0.int(0) }
  }

  // MARK: Times in the future

  /// How far in the future a time may be, in seconds.
  private static let tolerance = 60

  /// Whether the index contains times in the future, left by a clock that was ahead.
  func isAhead(of now: Int) throws(SQLiteError) -> Bool {
    let find = try reading(
      """
      SELECT EXISTS (SELECT 1 FROM responses WHERE used_at > ?1) OR EXISTS (SELECT 1 FROM doomed WHERE due > ?2)
        OR EXISTS (SELECT 1 FROM partials WHERE stored_at > ?1)
      """)
    find.bind(1, now + Self.tolerance)
    find.bind(2, endOfLife(deliveredAt: now) + Self.tolerance)
    return try find.first { $0.int(0) == 1 } ?? false
  }

  /// Sets all times in the future to `now`.
  func clampFutureTimestamps(to now: Int) throws(SQLiteError) {
    let use = try writing(
      "UPDATE responses SET used_at = ?2, delivered_at = min(delivered_at, ?2) WHERE used_at > ?1")
    use.bind(1, now + Self.tolerance)
    use.bind(2, now)
    try use.run()
    let end = try writing("UPDATE doomed SET due = ?2 WHERE due > ?1")
    end.bind(1, endOfLife(deliveredAt: now) + Self.tolerance)
    end.bind(2, endOfLife(deliveredAt: now))
    try end.run()
    let partial = try writing(
      "UPDATE partials SET expires_at = expires_at - stored_at + ?2, stored_at = ?2 WHERE stored_at > ?1")
    partial.bind(1, now + Self.tolerance)
    partial.bind(2, now)
    try partial.run()
  }

  func removePendingDeletion(_ id: Int64) throws(SQLiteError) {
    let delete = try writing("DELETE FROM doomed WHERE id = ?1")
    delete.bind(1, id)
    try delete.run()
  }
}
