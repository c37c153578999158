/// The files of deleted rows that are deleted later, and times in the future.
extension DiskIndex {
  /// Schedules the deletion of a deleted row's file at `due`.
  func schedulePendingDeletion(_ record: FileRecord, due: Int) throws(SQLiteError) {
    let insert = try writing("INSERT OR REPLACE INTO doomed VALUES (?1, ?2, ?3, ?4)")
    try insert.bind(record.id, record.file, record.allocated, due).run()
  }

  /// The files whose scheduled deletion is due.
  func due(now: Int, limit: Int) throws(SQLiteError) -> [(id: Int64, file: String)] {
    let find = try writing("SELECT id, file FROM doomed WHERE due <= ?1 ORDER BY due LIMIT ?2")
    return try find.bind(now, limit).rows { ($0.integer(0), $0.text(1)) }
  }

  func nextDue() throws(SQLiteError) -> Int? {
    try reading("SELECT due FROM doomed ORDER BY due LIMIT 1").first { $0.int(0) }
  }

  func removePendingDeletion(_ id: Int64) throws(SQLiteError) {
    try writing("DELETE FROM doomed WHERE id = ?1").bind(id).run()
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
    return try find.bind(now + Self.tolerance, endOfLife(deliveredAt: now) + Self.tolerance).first { $0.int(0) == 1 }
      ?? false
  }

  /// Sets all times in the future to `now`.
  func clampFutureTimestamps(to now: Int) throws(SQLiteError) {
    let use = try writing(
      "UPDATE responses SET used_at = ?2, delivered_at = min(delivered_at, ?2) WHERE used_at > ?1")
    try use.bind(now + Self.tolerance, now).run()
    let end = try writing("UPDATE doomed SET due = ?2 WHERE due > ?1")
    try end.bind(endOfLife(deliveredAt: now) + Self.tolerance, endOfLife(deliveredAt: now)).run()
    let partial = try writing(
      "UPDATE partials SET expires_at = expires_at - stored_at + ?2, stored_at = ?2 WHERE stored_at > ?1")
    try partial.bind(now + Self.tolerance, now).run()
  }
}
