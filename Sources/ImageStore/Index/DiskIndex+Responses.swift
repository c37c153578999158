internal import HTTPTypes
internal import Text

/// The rows of `responses`.
extension DiskIndex {
  /// Reads the rows by their numbers, since the key would otherwise come from the SQL index: one damaged byte in it may
  /// lead to the row of another image, which is found out by its own key.
  ///
  /// - Parameter boot: the number of the current run of the system.
  func find(key: String, partition: String, variant: String, boot: Int64) throws(SQLiteError) -> [StoredResponse] {
    try beginReading()
    let find = try statement(
      "SELECT \(hasAllColumns ? IndexSchema.responseColumns : IndexSchema.oldResponseColumns) FROM responses ",
      "JOIN (SELECT id AS found FROM responses WHERE key = ?2 AND partition = ?3 AND variant = ?4) ON id = found")
    let found = try find.bind(boot, key, partition, variant).rows {
      StoredResponse($0, hasDecodeMetadata: hasAllColumns)
    }
    for response in found {
      guard ExactString(response.key) == ExactString(key), response.partition == partition, response.variant == variant
      else { throw .damage }
    }
    return found
  }

  func variantNames(key: String, partition: String) throws(SQLiteError) -> [String] {
    let find = try reading(
      "SELECT DISTINCT variant FROM responses WHERE key = ?1 AND partition = ?2 AND variant > '' ORDER BY variant")
    return try find.bind(key, partition).rows { $0.text(0) }
  }

  func contains(id: Int64) throws(SQLiteError) -> Bool {
    let find = try reading("SELECT 1 FROM responses WHERE id = ?1 UNION ALL SELECT 1 FROM doomed WHERE id = ?1")
    return try find.bind(id).first { _ in true } ?? false
  }

  /// The greatest id of a response, pending deletion or partial file that a worker with this instance number has used;
  /// 0 if there is none.
  func greatestID(ofInstance instance: Int32) throws(SQLiteError) -> Int64 {
    let find = try reading(
      """
      SELECT max(id) FROM responses WHERE id BETWEEN ?1 AND ?2 UNION ALL
      SELECT max(id) FROM doomed WHERE id BETWEEN ?1 AND ?2 UNION ALL
      SELECT max(id) FROM partials WHERE id BETWEEN ?1 AND ?2
      """)
    return try find.bind(Int64(instance) << 32, Int64(instance) << 32 | 0xffff_ffff).rows { $0.integer(0) }.max() ?? 0
  }

  /// Inserts the row unless one with its key, partition, variant and `selection` exists.
  ///
  /// FAIL instead of the default ABORT, here and in the triggers: there is no half-done change that ABORT would have to
  /// undo, and SQLite need not copy each page before it changes it.
  func insert(
    _ response: StoredResponse, allocated: Int64, usedAt: Int, deliveredAt: Int, boot: Int64
  ) throws(SQLiteError) -> Bool {
    let insert = try writing(
      """
      INSERT OR FAIL INTO responses(id, key, partition, variant, selection, url, url_hash, host, port, final_url, status,
        headers, request_time, response_time, stored_at, validated_at, expires_at, media_type, format, width, height,
        frames, orientation, bytes, digest, allocated, used_at, delivered_at, uses, boot)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
        ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, 0, ?29)
      ON CONFLICT(key, partition, variant, selection) DO NOTHING
      """)
    let authority = Authority(of: response.url)
    let url = response.url == response.key ? nil : response.url
    let head: [any SQLiteValue] = [
      response.id, response.key, response.partition, response.variant, response.varyKey.text,
      url, url.map(fnv1a) ?? 0, authority?.host ?? "", authority?.port ?? 0, response.finalURL, response.status,
      response.headers.storedText, response.requestTime,
      response.responseTime, response.storedAt, response.validatedAt, response.expiresAt,
    ]
    try insert.bind(head + response.content.values + [allocated, usedAt, deliveredAt, boot]).run()
    guard database.changes == 1 else { return false }
    if response.metadata != nil { try setDecodeMetadata(of: response) }
    return true
  }

  /// Writes the fields that a 304 changed.
  ///
  /// - Parameter id: the row, which may be another row of the same original.
  func update(_ response: StoredResponse, id: Int64) throws(SQLiteError) {
    let update = try writing(
      """
      UPDATE responses SET headers = ?2, request_time = ?3, response_time = ?4, stored_at = ?5, validated_at = ?6,
        expires_at = ?7, final_url = ?8, status = ?9 WHERE id = ?1
      """)
    try update.bind(
      id, response.headers.storedText, response.requestTime, response.responseTime, response.storedAt,
      response.validatedAt, response.expiresAt, response.finalURL, response.status
    ).run()
  }

  /// Records a use. If the row is deleted meanwhile, extends the time of its file instead.
  func touch(_ id: Int64, _ use: RetentionTracker.Use) throws(SQLiteError) {
    let touch = try writing(
      """
      UPDATE responses SET used_at = max(used_at, ?2), delivered_at = max(delivered_at, ?3), uses = uses + ?4
      WHERE id = ?1
      """)
    try touch.bind(id, use.at, use.isDelivery ? use.at : 0, use.times).run()
    if database.changes == 0, use.isDelivery {
      try writing("UPDATE doomed SET due = max(due, ?2) WHERE id = ?1").bind(id, endOfLife(deliveredAt: use.at)).run()
    }
  }

  /// Records that the digest of the file matched in a later run of the system than the one that wrote it.
  func markVerified(_ id: Int64) throws(SQLiteError) {
    try writing("UPDATE responses SET boot = NULL WHERE id = ?1").bind(id).run()
  }

  /// Returns false if the row is deleted already.
  func delete(_ id: Int64) throws(SQLiteError) -> Bool {
    try writing("DELETE FROM responses WHERE id = ?1").bind(id).run()
    return database.changes == 1
  }

  func record(_ id: Int64) throws(SQLiteError) -> FileRecord? {
    try beginReading()
    return try records("WHERE id = ?1").bind(id).first { FileRecord($0) }
  }

  /// The row that `response` would replace.
  func conflictingRow(of response: StoredResponse) throws(SQLiteError) -> FileRecord? {
    try beginReading()
    let find = try records("WHERE key = ?1 AND partition = ?2 AND variant = ?3 AND selection = ?4")
    return try find.bind(response.key, response.partition, response.variant, response.varyKey.text).first {
      FileRecord($0)
    }
  }

  /// The oldest rows that exceed `maxVaryVariants`, without the row of `response`.
  func excessVariants(beside response: StoredResponse) throws(SQLiteError) -> [FileRecord] {
    try beginWriting()
    let find = try records(
      """
      WHERE key = ?1 AND partition = ?2 AND variant = ?3 AND id <> ?4
      ORDER BY response_time DESC, id DESC LIMIT -1 OFFSET ?5
      """)
    return try find.bind(
      response.key, response.partition, response.variant, response.id, StoredResponse.maxVaryVariants - 1
    ).rows { FileRecord($0) }
  }

  /// Up to `limit` of the least recently used rows after a position in that order; empty if there are none.
  ///
  /// Two statements, since SQLite would scan all rows of the position's second for `(used_at, id) > (?1, ?2)`.
  func leastRecentlyUsed(after position: (usedAt: Int, id: Int64), limit: Int) throws(SQLiteError) -> [FileRecord] {
    try beginWriting()
    let findInSecond = try records("WHERE used_at = ?1 AND id > ?2 ORDER BY id LIMIT ?3")
    let inSameSecond = try findInSecond.bind(position.usedAt, position.id, limit).rows { FileRecord($0) }
    if !inSameSecond.isEmpty { return inSameSecond }
    try beginWriting()
    let findLater = try records("WHERE used_at > ?1 ORDER BY used_at, id LIMIT ?2")
    return try findLater.bind(position.usedAt, limit).rows { FileRecord($0) }
  }

  /// The last use, 0 for never, and the number of deliveries, as far as they are written.
  func usage(of id: Int64) throws(SQLiteError) -> (lastUse: Int, uses: Int)? {
    let find = try reading("SELECT iif(uses > 0, used_at, delivered_at), uses FROM responses WHERE id = ?1")
    return try find.bind(id).first { ($0.int(0), $0.int(1)) }
  }

  /// Whether any row is a variant. Only for writers: an index of an older version has no such column.
  func hasVariants() throws(SQLiteError) -> Bool {
    try reading("SELECT variants > 0 FROM totals").first { $0.int(0) == 1 } ?? true
  }

  /// The number of rows in `responses`, and the allocated bytes of all files in the index.
  func totals() throws(SQLiteError) -> (entries: Int, bytes: Int64) {
    try reading("SELECT entries, bytes FROM totals").first { ($0.int(0), $0.integer(1)) } ?? (0, 0)
  }
}

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
