internal import Threads

/// The number and the sizes of entries.
public struct EntrySum: Sendable, Equatable {
  public var entries = 0
  public var bytes: Int64 = 0
  /// The sizes of their files on disk.
  public var allocated: Int64 = 0

  public init() {}

  init(entries: Int, bytes: Int64, allocated: Int64) {
    (self.entries, self.bytes, self.allocated) = (entries, bytes, allocated)
  }

  public static func += (sum: inout EntrySum, other: EntrySum) {
    sum.entries += other.entries
    sum.bytes += other.bytes
    sum.allocated += other.allocated
  }
}

extension CacheEntry {
  public var sum: EntrySum { EntrySum(entries: 1, bytes: content.byteCount, allocated: allocated) }
}

/// The sum of the entries that have something in common.
public struct UsageGroup: Sendable, Equatable {
  public enum Kind: String, Sendable, CaseIterable {
    /// `originals` or `variants`.
    case kind
    case format
    /// The host of the URL, with the port if it is not that of the scheme.
    case host
  }

  public var kind: Kind
  public var name: String
  public var sum: EntrySum
}

/// Adds up the entries of a read-only tier by kind, format and host, a page at a time.
///
/// The sums are in a temporary file, so memory is bounded for any number of hosts. Enter it as the tier: on its
/// executor's thread, with `assumeIsolated`.
public actor UsageSummary {
  private let tier: DiskTier
  private let filter: ClearFilter
  private let now: Int
  private let sums: UsageSums
  private var lastID = Int64.min

  /// The number of entries that a step examines.
  private static let stepSize = 4096

  public nonisolated var unownedExecutor: UnownedSerialExecutor { tier.unownedExecutor }

  /// - Parameter now: the time at which the filter is applied.
  public init(of tier: DiskTier, matching filter: ClearFilter, now: Int) throws(StoreError) {
    (self.tier, self.filter, self.now) = (tier, filter, now)
    sums = try UsageSums()
  }

  /// Adds the next entries. Returns false at the end.
  public func step() throws(StoreError) -> Bool {
    let (filter, now, lastID) = (filter, now, lastID)
    let rows = try tier.assumeIsolatedThrowing { tier throws(StoreError) in
      try tier.session.withSettledIndex { index throws(SQLiteError) in
        try index.usage(matching: filter, now: now, after: lastID, limit: Self.stepSize)
      }
    }
    try sums.add(rows.flatMap { $0.matches ? $0.groups : [] })
    if let last = rows.last { self.lastID = last.id }
    return rows.count == Self.stepSize
  }

  /// The next groups of a kind, the largest on disk first.
  public func groups(of kind: UsageGroup.Kind, after group: UsageGroup?, limit: Int) throws(StoreError) -> [UsageGroup]
  {
    try sums.page(of: kind, after: group, limit: limit)
  }
}

/// Sums of sizes in a temporary file of SQLite, as in `SortedValues`.
private final class UsageSums {
  private let database: TemporaryDatabase

  init() throws(StoreError) {
    database = try TemporaryDatabase(
      """
      CREATE TABLE sums(
        kind TEXT, name TEXT, entries INTEGER, bytes INTEGER, allocated INTEGER, PRIMARY KEY (kind, name)) WITHOUT ROWID
      """)
  }

  func add(_ groups: [UsageGroup]) throws(StoreError) {
    // Add up in memory first: neighbours have the same host more often than not.
    var sums: [String: UsageGroup] = [:]
    for group in groups {
      let key = "\(group.kind.rawValue) \(group.name)"
      sums[key, default: UsageGroup(kind: group.kind, name: group.name, sum: EntrySum())].sum += group.sum
    }
    try database.use { database throws(SQLiteError) in
      try database.execute("BEGIN")
      let add = try database.prepare(
        """
        INSERT INTO sums VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT(kind, name) DO UPDATE SET
          entries = entries + ?3, bytes = bytes + ?4, allocated = allocated + ?5
        """)
      for group in sums.values {
        let sum = group.sum
        try add.bind(group.kind.rawValue, group.name, sum.entries, sum.bytes, sum.allocated).run()
      }
      try database.execute("COMMIT")
    }
  }

  func page(of kind: UsageGroup.Kind, after group: UsageGroup?, limit: Int) throws(StoreError) -> [UsageGroup] {
    try database.use { database throws(SQLiteError) in
      try database.execute("CREATE INDEX IF NOT EXISTS sorted ON sums(kind, -allocated, name)")
      let condition = group == nil ? "1" : "(-allocated, name) > (?3, ?4)"
      let find = try database.prepare(
        """
        SELECT name, entries, bytes, allocated FROM sums INDEXED BY sorted WHERE kind = ?1 AND \(condition)
        ORDER BY -allocated, name LIMIT ?2
        """)
      let values: [any SQLiteValue] = [kind.rawValue, limit] + (group.map { [-$0.sum.allocated, $0.name] } ?? [])
      return try find.bind(values).rows {
        UsageGroup(
          kind: kind, name: $0.text(0),
          sum: EntrySum(entries: $0.int(1), bytes: $0.integer(2), allocated: $0.integer(3)))
      }
    }
  }
}

/// The files of the index that are no entries.
public struct OtherFiles: Sendable, Equatable {
  public struct Sum: Sendable, Equatable {
    public var count = 0
    public var allocated: Int64 = 0
  }

  /// Files of removed entries that are deleted when the 60 s after their last delivery end.
  public var pendingDeletions = Sum()
  /// The beginnings of interrupted transfers.
  public var partials = Sum()
}

extension DiskTier {
  public func otherFiles() throws(StoreError) -> OtherFiles {
    try session.withSettledIndex { index throws(SQLiteError) in try index.otherFiles() }
  }
}
