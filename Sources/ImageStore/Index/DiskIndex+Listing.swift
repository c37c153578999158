/// A position in the order of keys: the columns of a unique index, which never change in a row.
struct KeyPosition: Sendable {
  var key: String
  var partition = ""
  var variant = ""
  var selection = ""
}

/// Queries for listings. Each examines a bounded number of rows, whether they match or not, so that no read transaction
/// lasts long.
extension DiskIndex {
  struct ListedRow: Sendable {
    var entry: CacheEntry
    var matches: Bool
    var position: KeyPosition
  }

  /// The next `limit` rows in the order of keys.
  func entries(
    matching filter: ClearFilter, now: Int, after position: KeyPosition?, limit: Int
  ) throws(SQLiteError) -> [ListedRow] {
    try beginReading()
    let (condition, values) = filter.condition(now: now, firstParameter: 6)
    let find = try query(
      """
      SELECT \(CacheEntry.columns), (\(condition)), entry.selection
      FROM responses AS entry INDEXED BY responses_by_key
      WHERE (entry.key, entry.partition, entry.variant, entry.selection) > (?1, ?2, ?3, ?4)
      ORDER BY entry.key, entry.partition, entry.variant, entry.selection LIMIT ?5
      """,
      [
        position?.key ?? "", position?.partition ?? "", position?.variant ?? "", position?.selection ?? "",
        Int64(limit),
      ] + values)
    return try find.rows { row in
      let entry = CacheEntry(row)
      return ListedRow(
        entry: entry, matches: row.int(CacheEntry.columnCount) == 1,
        position: KeyPosition(
          key: entry.key, partition: entry.partition, variant: entry.variant,
          selection: row.text(CacheEntry.columnCount + 1)))
    }
  }
}
