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
/// Enter it as the tier: on its executor's thread, with `assumeIsolated`.
public actor UsageSummary {
  private let tier: DiskTier
  private let filter: ClearFilter
  private let now: Int
  private var sums: [UsageGroup.Kind: [String: EntrySum]] = [:]
  private var lastID = Int64.min

  /// The number of entries that a step examines.
  private static let stepSize = 4096

  public nonisolated var unownedExecutor: UnownedSerialExecutor { tier.unownedExecutor }

  /// - Parameter now: the time at which the filter is applied.
  public init(of tier: DiskTier, matching filter: ClearFilter, now: Int) {
    (self.tier, self.filter, self.now) = (tier, filter, now)
  }

  /// Adds the next entries. Returns false at the end.
  public func step() throws(StoreError) -> Bool {
    let (filter, now, lastID) = (filter, now, lastID)
    let rows = try tier.assumeIsolatedThrowing { tier throws(StoreError) in
      try tier.session.withSettledIndex { index throws(SQLiteError) in
        try index.usage(matching: filter, now: now, after: lastID, limit: Self.stepSize)
      }
    }
    for group in rows.lazy.filter(\.matches).flatMap(\.groups) {
      sums[group.kind, default: [:]][group.name, default: EntrySum()] += group.sum
    }
    if let last = rows.last { self.lastID = last.id }
    return rows.count == Self.stepSize
  }

  /// The groups of a kind, the largest on disk first.
  public func groups(of kind: UsageGroup.Kind) -> [UsageGroup] {
    (sums[kind] ?? [:]).map { UsageGroup(kind: kind, name: $0, sum: $1) }
      .sorted { ($1.sum.allocated, $0.name) < ($0.sum.allocated, $1.name) }
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
