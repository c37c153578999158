internal import Platform

/// A position in the order of keys: the columns of a unique index, which never change in a row.
struct KeyPosition: Sendable {
  var key: String
  var partition = ""
  var variant = ""
  var selection = ""
  /// Whether the row at the position itself comes next.
  var isIncluded = false
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
    matching filter: ClearFilter, reversed: Bool, now: Int, after position: KeyPosition?, limit: Int
  ) throws(SQLiteError) -> [ListedRow] {
    try beginReading()
    let (condition, values) = filter.condition(now: now, firstParameter: 6)
    let comparison = reversed ? "<" : position?.isIncluded == true ? ">=" : ">"
    let start = position == nil ? "1" : "(key, partition, variant, selection) \(comparison) (?1, ?2, ?3, ?4)"
    let direction = reversed ? "DESC" : "ASC"
    let find = try query(
      """
      SELECT \(CacheEntry.columns), (\(condition)), entry.selection
      FROM responses AS entry INDEXED BY responses_by_key
      WHERE \(start)
      ORDER BY key \(direction), partition \(direction), variant \(direction), selection \(direction) LIMIT ?5
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

  /// All rows that a filter matches which is narrow (`ClearFilter.isNarrow`).
  func entries(
    matchingNarrow filter: ClearFilter, in order: EntryOrder, reversed: Bool, now: Int
  ) throws(SQLiteError) -> [CacheEntry] {
    try beginReading()
    let (condition, values) = filter.condition(now: now)
    let columns = order.expression.map { [$0, "id"] } ?? ["key", "partition", "variant", "selection"]
    let terms = columns.map { "\($0) \(reversed ? "DESC" : "ASC")" }
    let find = try query(
      """
      SELECT \(CacheEntry.columns) FROM responses AS entry WHERE \(condition) ORDER BY \(terms.joined(separator: ", "))
      """, values)
    return try find.rows { CacheEntry($0) }
  }

  struct ListedValue: Sendable {
    var value: SortValue
    var matches: Bool
  }

  /// The values of the next `limit` rows in the order of ids, by which an order other than by key sorts.
  func values(
    of order: EntryOrder, matching filter: ClearFilter, now: Int, after id: Int64, limit: Int
  ) throws(SQLiteError) -> [ListedValue] {
    try beginReading()
    let (condition, values) = filter.condition(now: now, firstParameter: 3)
    let find = try query(
      """
      SELECT id, \(order.expression ?? "0"), (\(condition))
      FROM responses NOT INDEXED WHERE id > ?1 ORDER BY id LIMIT ?2
      """, [id, Int64(limit)] + values)
    return try find.rows { row in
      ListedValue(value: SortValue(value: row.integer(1), id: row.integer(0)), matches: row.int(2) == 1)
    }
  }

  func entry(_ id: Int64) throws(SQLiteError) -> CacheEntry? {
    try beginReading()
    let find = try statement("SELECT \(CacheEntry.columns) FROM responses AS entry ", "WHERE entry.id = ?1 ")
    return try find.bind(id).first { CacheEntry($0) }
  }

  struct UsageRow: Sendable {
    var id: Int64
    var matches: Bool
    /// The groups that the entry belongs to, one of each kind, with its own sizes.
    var groups: [UsageGroup]
  }

  /// The sizes of the next `limit` rows in the order of ids.
  func usage(
    matching filter: ClearFilter, now: Int, after id: Int64, limit: Int
  ) throws(SQLiteError) -> [UsageRow] {
    try beginReading()
    let (condition, values) = filter.condition(now: now, firstParameter: 3)
    let find = try query(
      """
      SELECT id, variant > '', format, host, port, bytes, allocated, (\(condition))
      FROM responses NOT INDEXED WHERE id > ?1 ORDER BY id LIMIT ?2
      """, [id, Int64(limit)] + values)
    return try find.rows { row in
      let (host, port) = (row.text(3), row.int(4))
      let names: [(UsageGroup.Kind, String)] = [
        (.kind, row.int(1) == 1 ? "variants" : "originals"), (.format, row.optionalText(2) ?? "unknown"),
        (.host, [0, 80, 443].contains(port) ? host : "\(host.has(":") ? "[\(host)]" : host):\(port)"),
      ]
      let sum = EntrySum(entries: 1, bytes: row.integer(5), allocated: row.integer(6))
      let groups = names.map { kind, name in UsageGroup(kind: kind, name: name, sum: sum) }
      return UsageRow(id: row.integer(0), matches: row.int(7) == 1, groups: groups)
    }
  }

  /// The number of files that are no entries, and their sizes on disk.
  func otherFiles() throws(SQLiteError) -> OtherFiles {
    func sum(_ sql: StaticString) throws(SQLiteError) -> OtherFiles.Sum {
      try reading(sql).first { OtherFiles.Sum(count: $0.int(0), allocated: $0.integer(1)) } ?? OtherFiles.Sum()
    }
    var files = OtherFiles(pendingDeletions: try sum("SELECT count(*), coalesce(sum(allocated), 0) FROM doomed"))
    if version >= 2 { files.partials = try sum("SELECT count(*), coalesce(sum(allocated), 0) FROM partials") }
    return files
  }
}
