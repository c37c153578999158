internal import HTTPTypes
internal import Text

/// The rows of `responses`.
extension DiskIndex {
  /// - Parameter boot: the number of the current run of the system.
  func find(key: String, partition: String, variant: String, boot: Int64) throws(SQLiteError) -> [StoredResponse] {
    let find =
      hasAllColumns
      ? try reading(
        """
        SELECT id, key, partition, variant, selection, url, final_url, status, headers, request_time, response_time,
          stored_at, validated_at, expires_at, media_type, format, width, height, frames, orientation, bytes, digest,
          boot IS NULL OR boot = ?4, checked, thumbhash, color, source_digest, source_bytes, source_format, source_width,
          source_height
        FROM responses WHERE key = ?1 AND partition = ?2 AND variant = ?3
        """)
      : try reading(
        """
        SELECT id, key, partition, variant, selection, url, final_url, status, headers, request_time, response_time,
          stored_at, validated_at, expires_at, media_type, format, width, height, frames, orientation, bytes, digest, ?4 = 0
        FROM responses WHERE key = ?1 AND partition = ?2 AND variant = ?3
        """)
    find.bind(1, key)
    find.bind(2, partition)
    find.bind(3, variant)
    find.bind(4, boot)
    return try find.rows { StoredResponse($0, hasDecodeMetadata: hasAllColumns) }
  }

  func variantNames(key: String, partition: String) throws(SQLiteError) -> [String] {
    let find = try reading(
      "SELECT DISTINCT variant FROM responses WHERE key = ?1 AND partition = ?2 AND variant > '' ORDER BY variant")
    find.bind(1, key)
    find.bind(2, partition)
    return try find.rows { $0.text(0) }
  }

  func contains(id: Int64) throws(SQLiteError) -> Bool {
    let find = try reading("SELECT 1 FROM responses WHERE id = ?1 UNION ALL SELECT 1 FROM doomed WHERE id = ?1")
    find.bind(1, id)
    return try find.first { _ in true } ?? false
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
    find.bind(1, Int64(instance) << 32)
    find.bind(2, Int64(instance) << 32 | 0xffff_ffff)
    return try find.rows { $0.integer(0) }.max() ?? 0
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
    insert.bind(1, response.id)
    insert.bind(2, response.key)
    insert.bind(3, response.partition)
    insert.bind(4, response.variant)
    insert.bind(5, response.varyKey.text)
    insert.bind(6, response.url == response.key ? nil : response.url)
    insert.bind(7, fnv1a(response.url))
    insert.bind(8, authority?.host ?? "")
    insert.bind(9, authority?.port ?? 0)
    insert.bind(10, response.finalURL)
    insert.bind(11, response.status)
    insert.bind(12, response.headers.storedText)
    insert.bind(13, response.requestTime)
    insert.bind(14, response.responseTime)
    insert.bind(15, response.storedAt)
    insert.bind(16, response.validatedAt)
    insert.bind(17, response.expiresAt)
    insert.bind(18, response.mediaType)
    insert.bind(19, response.format)
    insert.bind(20, response.width)
    insert.bind(21, response.height)
    insert.bind(22, response.frames)
    insert.bind(23, response.orientation)
    insert.bind(24, response.byteCount)
    insert.bind(25, response.digest)
    insert.bind(26, allocated)
    insert.bind(27, usedAt)
    insert.bind(28, deliveredAt)
    insert.bind(29, boot)
    try insert.run()
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
    update.bind(1, id)
    update.bind(2, response.headers.storedText)
    update.bind(3, response.requestTime)
    update.bind(4, response.responseTime)
    update.bind(5, response.storedAt)
    update.bind(6, response.validatedAt)
    update.bind(7, response.expiresAt)
    update.bind(8, response.finalURL)
    update.bind(9, response.status)
    try update.run()
  }

  /// Records a use. If the row is deleted meanwhile, extends the time of its file instead.
  func touch(_ id: Int64, _ use: RetentionTracker.Use) throws(SQLiteError) {
    let touch = try writing(
      """
      UPDATE responses SET used_at = max(used_at, ?2), delivered_at = max(delivered_at, ?3), uses = uses + ?4
      WHERE id = ?1
      """)
    touch.bind(1, id)
    touch.bind(2, use.at)
    touch.bind(3, use.isDelivery ? use.at : 0)
    touch.bind(4, use.times)
    try touch.run()
    if database.changes == 0, use.isDelivery {
      let prolong = try writing("UPDATE doomed SET due = max(due, ?2) WHERE id = ?1")
      prolong.bind(1, id)
      prolong.bind(2, endOfLife(deliveredAt: use.at))
      try prolong.run()
    }
  }

  /// Records that the digest of the file matched in a later run of the system than the one that wrote it.
  func markVerified(_ id: Int64) throws(SQLiteError) {
    let update = try writing("UPDATE responses SET boot = NULL WHERE id = ?1")
    update.bind(1, id)
    try update.run()
  }

  /// Returns false if the row is deleted already.
  func delete(_ id: Int64) throws(SQLiteError) -> Bool {
    let delete = try writing("DELETE FROM responses WHERE id = ?1")
    delete.bind(1, id)
    try delete.run()
    return database.changes == 1
  }

  func record(_ id: Int64) throws(SQLiteError) -> FileRecord? {
    try beginReading()
    let find = try records("WHERE id = ?1")
    find.bind(1, id)
    return try find.first { FileRecord($0) }
  }

  /// The row that `response` would replace.
  func conflictingRow(of response: StoredResponse) throws(SQLiteError) -> FileRecord? {
    try beginReading()
    let find = try records("WHERE key = ?1 AND partition = ?2 AND variant = ?3 AND selection = ?4")
    find.bind(1, response.key)
    find.bind(2, response.partition)
    find.bind(3, response.variant)
    find.bind(4, response.varyKey.text)
    return try find.first { FileRecord($0) }
  }

  /// The oldest rows that exceed `maxVaryVariants`, without the row of `response`.
  func excessVariants(beside response: StoredResponse) throws(SQLiteError) -> [FileRecord] {
    try beginWriting()
    let find = try records(
      """
      WHERE key = ?1 AND partition = ?2 AND variant = ?3 AND id <> ?4
      ORDER BY response_time DESC, id DESC LIMIT -1 OFFSET ?5
      """)
    find.bind(1, response.key)
    find.bind(2, response.partition)
    find.bind(3, response.variant)
    find.bind(4, response.id)
    find.bind(5, StoredResponse.maxVaryVariants - 1)
    return try find.rows { FileRecord($0) }
  }

  /// Up to `limit` of the least recently used rows after a position in that order; empty if there are none.
  ///
  /// Two statements, since SQLite would scan all rows of the position's second for `(used_at, id) > (?1, ?2)`.
  func leastRecentlyUsed(after position: (usedAt: Int, id: Int64), limit: Int) throws(SQLiteError) -> [FileRecord] {
    try beginWriting()
    let findInSecond = try records("WHERE used_at = ?1 AND id > ?2 ORDER BY id LIMIT ?3")
    findInSecond.bind(1, position.usedAt)
    findInSecond.bind(2, position.id)
    findInSecond.bind(3, limit)
    let inSameSecond = try findInSecond.rows { FileRecord($0) }
    if !inSameSecond.isEmpty { return inSameSecond }
    try beginWriting()
    let findLater = try records("WHERE used_at > ?1 ORDER BY used_at, id LIMIT ?2")
    findLater.bind(1, position.usedAt)
    findLater.bind(2, limit)
    return try findLater.rows { FileRecord($0) }
  }

  /// The last use, 0 for never, and the number of deliveries, as far as they are written.
  func usage(of id: Int64) throws(SQLiteError) -> (lastUse: Int, uses: Int)? {
    let find = try reading("SELECT iif(uses > 0, used_at, delivered_at), uses FROM responses WHERE id = ?1")
    find.bind(1, id)
    return try find.first { ($0.int(0), $0.int(1)) }
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
