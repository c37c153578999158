internal import Threads

/// Lists the entries of a tier that match a filter, a page at a time.
///
/// Each entry that is stored during the whole listing is listed exactly once; one that is stored or deleted meanwhile
/// may be listed or not. Memory is bounded: neither the entries nor their order are held in memory.
///
/// Enter it as the tier: on its executor's thread, with `assumeIsolated`. A page is read in a transaction that the
/// caller ends with `DiskTier.endTransaction`.
public actor EntryListing {
  private let tier: DiskTier
  private let filter: ClearFilter
  private let now: Int
  private var position: KeyPosition?
  private var isOver = false

  /// The number of rows that a page examines.
  private static let pageSize = 512

  public nonisolated var unownedExecutor: UnownedSerialExecutor { tier.unownedExecutor }

  /// - Parameter now: the time at which the filter is applied.
  public init(of tier: DiskTier, matching filter: ClearFilter, now: Int) {
    (self.tier, self.filter, self.now) = (tier, filter, now)
  }

  /// The next entries; they may be fewer than a page has room for, and none. Nil at the end.
  public func nextPage() throws(StoreError) -> [CacheEntry]? {
    if isOver { return nil }
    let (filter, now, position) = (filter, now, position)
    let rows = try tier.assumeIsolatedThrowing { tier throws(StoreError) in
      try tier.session.withSettledIndex { index throws(SQLiteError) in
        try index.entries(matching: filter, now: now, after: position, limit: Self.pageSize)
      }
    }
    isOver = rows.count < Self.pageSize
    self.position = rows.last?.position
    return rows.compactMap { $0.matches ? $0.entry : nil }
  }
}
