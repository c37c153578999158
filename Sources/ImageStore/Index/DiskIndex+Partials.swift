internal import HTTPCaching
internal import HTTPTypes

/// The rows of `partials`. A row whose file is being written has `allocated` 0; only the other rows may be taken or
/// removed by any worker.
extension DiskIndex {
  func insert(_ partial: PartialRecord, id: Int64, boot: String, storedAt: Int, expiresAt: Int) throws(SQLiteError) {
    let insert = try writing(
      "INSERT INTO partials VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 0)")
    let authority = Authority(of: partial.url)
    try insert.bind(
      id, partial.identity.key, partial.identity.partition, partial.identity.request, partial.url, fnv1a(partial.url),
      authority?.host ?? "", authority?.port ?? 0, partial.response.url,
      partial.response.validator, partial.response.headers.storedText, partial.response.completeLength.map { Int($0) },
      storedAt, expiresAt, boot
    ).run()
  }

  /// The largest partial file that can be resumed and whose complete body may have at most `maxBytes`.
  func partial(of identity: PartialRecord.Identity, maxBytes: Int64, boot: String, now: Int) throws(SQLiteError) -> (
    id: Int64, partial: PartialRecord
  )? {
    let find = try reading(
      """
      SELECT id, url, final_url, validator, headers, length FROM partials
      WHERE key = ?1 AND partition = ?2 AND request = ?3 AND boot = ?4 AND expires_at > ?5 AND allocated > 0
        AND allocated < ?6 AND (length IS NULL OR length <= ?6)
      ORDER BY allocated DESC LIMIT 1
      """)
    return try find.bind(identity.key, identity.partition, identity.request, boot, now, maxBytes).first { row in
      let response = PartialResponse(
        url: row.text(2), headers: HeaderFields(storedText: row.text(4)), validator: row.text(3),
        completeLength: row.optionalInt(5).map { Int64($0) })
      return (row.integer(0), PartialRecord(response, identity: identity, url: row.text(1)))
    }
  }

  /// Whether the key has a partial file that is not being written.
  func hasPartial(key: String, partition: String) throws(SQLiteError) -> Bool {
    let find = try reading("SELECT 1 FROM partials WHERE key = ?1 AND partition = ?2 AND allocated > 0 LIMIT 1")
    return try find.bind(key, partition).first { _ in true } ?? false
  }

  /// The partial files of an identity that are not being written.
  func partials(of identity: PartialRecord.Identity) throws(SQLiteError) -> [Int64] {
    let find = try writing(
      "SELECT id FROM partials WHERE key = ?1 AND partition = ?2 AND request = ?3 AND allocated > 0")
    return try find.bind(identity.key, identity.partition, identity.request).rows { $0.integer(0) }
  }

  /// Marks a partial file as being written, under a new id. Returns false if another worker was first.
  func acquire(partial id: Int64, as newID: Int64) throws(SQLiteError) -> Bool {
    try writing("UPDATE partials SET id = ?2, allocated = 0 WHERE id = ?1 AND allocated > 0").bind(id, newID).run()
    return database.changes == 1
  }

  /// Marks a partial file as no longer being written. Returns false if the row is deleted.
  func retain(partial id: Int64, allocated: Int64) throws(SQLiteError) -> Bool {
    try writing("UPDATE partials SET allocated = ?2 WHERE id = ?1").bind(id, allocated).run()
    return database.changes == 1
  }

  func remove(partial id: Int64) throws(SQLiteError) {
    try writing("DELETE FROM partials WHERE id = ?1").bind(id).run()
  }

  func contains(partial id: Int64) throws(SQLiteError) -> Bool {
    return try reading("SELECT 1 FROM partials WHERE id = ?1").bind(id).first { _ in true } ?? false
  }

  /// The partial files that are being written, or whose writer died.
  func unfinishedPartials() throws(SQLiteError) -> [Int64] {
    try reading("SELECT id FROM partials WHERE allocated = 0").rows { $0.integer(0) }
  }

  func partials(ofOtherBootThan boot: String) throws(SQLiteError) -> [Int64] {
    return try reading("SELECT id FROM partials WHERE boot <> ?1 AND allocated > 0").bind(boot).rows { $0.integer(0) }
  }

  func expiredPartials(now: Int) throws(SQLiteError) -> [Int64] {
    let find = try reading("SELECT id FROM partials WHERE expires_at <= ?1 AND allocated > 0")
    return try find.bind(now).rows { $0.integer(0) }
  }

  /// The partial files that match the filter. Files that are being written are included unless the filter depends on
  /// time: their responses will be new.
  func partials(matching filter: ClearFilter, now: Int) throws(SQLiteError) -> [Int64] {
    try beginWriting()
    let (condition, values) = filter.condition(now: now)
    let which = filter.dependsOnTime ? "(\(condition)) AND allocated > 0" : condition
    return try query("SELECT id FROM partials WHERE \(which)", values).rows { $0.integer(0) }
  }

  /// The next partial file to be evicted.
  func oldestPartial() throws(SQLiteError) -> (id: Int64, allocated: Int64)? {
    try writing("SELECT id, allocated FROM partials WHERE allocated > 0 ORDER BY stored_at, id LIMIT 1")
      .first { ($0.integer(0), $0.integer(1)) }
  }

  /// The allocated bytes of the partial files that are not being written, and the first expiry; nil if there are none.
  func partialTotals() throws(SQLiteError) -> (bytes: Int64, nextExpiry: Int)? {
    let totals = try reading("SELECT sum(allocated), min(expires_at) FROM partials WHERE allocated > 0")
      .first { ($0.integer(0), $0.optionalInt(1)) }
    guard let (bytes, expiry) = totals, let expiry else { return nil }
    return (bytes, expiry)
  }
}
