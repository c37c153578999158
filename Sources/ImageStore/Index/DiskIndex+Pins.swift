/// The rows of `pins`. Triggers keep `responses.pinned` and `totals` equal to them.
extension DiskIndex {
  /// The number and the allocated bytes of the pinned responses.
  func pinTotals() throws(SQLiteError) -> PinTotals {
    guard hasPins else { return PinTotals() }
    let totals = try reading("SELECT pinned, pinned_bytes FROM totals")
    return try totals.first { PinTotals(entries: $0.int(0), bytes: $0.integer(1)) } ?? PinTotals()
  }

  /// The number and the allocated bytes of the responses that match the filter and are not pinned yet, and the number of
  /// those that are.
  func unpinned(_ filter: ClearFilter, now: Int) throws(SQLiteError) -> (unpinned: PinTotals, pinned: Int) {
    let (condition, values) = filter.condition(now: now)
    var (unpinned, pinned) = (PinTotals(), 0)
    let find = try query(
      "SELECT pinned, count(*), sum(allocated) FROM responses WHERE \(condition) GROUP BY pinned", values)
    for (isPinned, count, bytes) in try find.rows({ ($0.int(0) == 1, $0.int(1), $0.integer(2)) }) {
      if isPinned { pinned = count } else { unpinned = PinTotals(entries: count, bytes: bytes) }
    }
    return (unpinned, pinned)
  }

  /// The number of rows that a call of `pin` or `unpin` changes at most.
  private static let maxChanges = 4096

  /// Pins some of the responses that match the filter. Returns false if none was left.
  func pinSome(_ filter: ClearFilter, now: Int) throws(SQLiteError) -> Bool {
    try beginWriting()
    let (condition, values) = filter.condition(now: now)
    // Responses that differ only by Vary share a pin.
    try query(
      """
      INSERT OR IGNORE INTO pins SELECT key, partition, variant, url, url_hash, host, port FROM responses
      WHERE pinned = 0 AND (\(condition)) LIMIT \(Self.maxChanges)
      """, values
    ).run()
    return database.changes > 0
  }

  /// Removes some of the pins that match the filter, with those of responses that are not stored any more unless the
  /// filter depends on time. Returns the number of responses that are not pinned any more; nil if no pin was left.
  func unpinSome(_ filter: ClearFilter, now: Int) throws(SQLiteError) -> Int? {
    try beginWriting()
    let before = try pinTotals().entries
    let (condition, values) = filter.condition(now: now)
    let matches =
      filter.dependsOnTime ? "responses WHERE pinned = 1 AND (\(condition))" : "pins WHERE \(condition)"
    try query(
      """
      DELETE FROM pins WHERE (key, partition, variant) IN (
        SELECT key, partition, variant FROM \(matches) LIMIT \(Self.maxChanges))
      """, values
    ).run()
    return database.changes > 0 ? before - (try pinTotals().entries) : nil
  }

  // MARK: The limit

  /// The limit of the worker that last published its own; nil if none has.
  func publishedLimit() throws(SQLiteError) -> Int64? {
    guard hasPins else { return nil }
    return try reading("SELECT disk_limit FROM totals").first { $0.isNull(0) ? nil : $0.integer(0) } ?? nil
  }

  func publishLimit(_ limit: Int64) throws(SQLiteError) {
    try writing("UPDATE totals SET disk_limit = ?1").bind(limit).run()
  }
}

/// A number of pinned responses, with the allocated bytes of their files.
public struct PinTotals: Sendable, Equatable {
  public var entries = 0
  public var bytes: Int64 = 0

  public init(entries: Int = 0, bytes: Int64 = 0) { (self.entries, self.bytes) = (entries, bytes) }
}
