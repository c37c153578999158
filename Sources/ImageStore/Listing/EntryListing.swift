internal import Threads

/// Lists the entries of a read-only tier that match a filter, in an order, a page at a time.
///
/// Each entry that is stored during the whole listing is listed exactly once; one that is stored or deleted meanwhile
/// may be listed or not. An order other than by key holds 16 bytes for each entry in memory.
///
/// Enter it as the tier: on its executor's thread, with `assumeIsolated`. A page is read in a transaction that the
/// caller ends with `DiskTier.endTransaction`.
public actor EntryListing {
  private enum State {
    /// The filter can match the few entries of one URL or key only.
    case narrow
    case byKey(after: KeyPosition?)
    /// Collects the values to sort by, in the order of ids.
    case collecting(after: Int64)
    /// - Parameter next: the index of the next of the sorted values.
    case sorted(next: Int)
    case over
  }

  private let tier: DiskTier
  private let filter: ClearFilter
  private let order: EntryOrder
  private let isReversed: Bool
  private let now: Int
  private var state: State
  private var values: [SortValue] = []

  /// The number of entries, and of values, that a page examines.
  private static let (pageSize, valuesOfPage) = (512, 4096)

  public nonisolated var unownedExecutor: UnownedSerialExecutor { tier.unownedExecutor }

  /// - Parameter now: the time at which the filter is applied.
  public init(
    of tier: DiskTier, matching filter: ClearFilter, in order: EntryOrder, reversed isReversed: Bool, now: Int
  ) {
    (self.tier, self.filter, self.order, self.isReversed, self.now) = (tier, filter, order, isReversed, now)
    if filter.isNarrow {
      state = .narrow
    } else if order == .key {
      state = .byKey(after: filter.keyRange?.start(reversed: isReversed))
    } else {
      state = .collecting(after: .min)
    }
  }

  /// The next entries; they may be fewer than a page has room for, and none. Nil at the end.
  public func nextPage() throws(StoreError) -> [CacheEntry]? {
    switch state {
    case .narrow:
      state = .over
      let (filter, order, isReversed, now) = (filter, order, isReversed, now)
      return try read { index throws(SQLiteError) in
        try index.entries(matchingNarrow: filter, in: order, reversed: isReversed, now: now)
      }
    case .byKey(let position): return try nextPage(after: position)
    case .collecting(let id):
      try collect(after: id)
      return []
    case .sorted(let next): return try nextPage(from: next)
    case .over: return nil
    }
  }

  private func nextPage(after position: KeyPosition?) throws(StoreError) -> [CacheEntry] {
    let (filter, isReversed, now) = (filter, isReversed, now)
    let rows = try read { index throws(SQLiteError) in
      try index.entries(
        matching: filter, reversed: isReversed, now: now, after: position, limit: Self.pageSize)
    }
    if rows.count == Self.pageSize, let last = rows.last?.position,
      filter.keyRange?.contains(last.key, reversed: isReversed) ?? true
    {
      state = .byKey(after: last)
    } else {
      state = .over
    }
    return rows.compactMap { $0.matches ? $0.entry : nil }
  }

  private func collect(after id: Int64) throws(StoreError) {
    let (filter, order, now) = (filter, order, now)
    let rows = try read { index throws(SQLiteError) in
      try index.values(of: order, matching: filter, now: now, after: id, limit: Self.valuesOfPage)
    }
    values += rows.lazy.filter(\.matches).map(\.value)
    if rows.count == Self.valuesOfPage, let last = rows.last {
      state = .collecting(after: last.value.id)
    } else {
      values.sort { ($0.value, $0.id) < ($1.value, $1.id) }
      if isReversed { values.reverse() }
      state = .sorted(next: 0)
    }
  }

  private func nextPage(from next: Int) throws(StoreError) -> [CacheEntry] {
    let page = Array(values[next...].prefix(Self.pageSize))
    state = page.isEmpty ? .over : .sorted(next: next + page.count)
    return try read { index throws(SQLiteError) in
      var entries: [CacheEntry] = []
      for value in page { if let entry = try index.entry(value.id) { entries.append(entry) } }
      return entries
    }
  }

  private func read<Result: Sendable>(
    _ work: @Sendable (DiskIndex) throws(SQLiteError) -> Result
  ) throws(StoreError) -> Result {
    try tier.assumeIsolatedThrowing { tier throws(StoreError) in try tier.session.withSettledIndex(work) }
  }
}

/// The value by which an entry is sorted, and its id.
struct SortValue: Sendable {
  var value: Int64
  var id: Int64
}

/// The properties of a filter that let a listing examine fewer entries.
extension ClearFilter {
  /// Whether the filter can match the entries of one URL or key only, which an SQL index finds at once.
  var isNarrow: Bool {
    parts.contains { part in
      switch part {
      case .url, .key: true
      default: false
      }
    }
  }

  /// A range of keys, compared by bytes, that contains all keys that the filter matches.
  struct KeyRange {
    var start: String
    /// The first key after the range; nil if it is open.
    var end: String?

    /// The position before the range; nil if it is that before all keys.
    func start(reversed: Bool) -> KeyPosition? {
      reversed ? end.map { KeyPosition(key: $0) } : KeyPosition(key: start, isIncluded: true)
    }

    /// Whether the range can have keys after this one.
    func contains(_ key: String, reversed: Bool) -> Bool {
      if reversed { return !key.utf8.lexicographicallyPrecedes(start.utf8) }
      return end.map { key.utf8.lexicographicallyPrecedes($0.utf8) } ?? true
    }
  }

  /// Nil if the filter has no range.
  var keyRange: KeyRange? {
    for case .prefix(let prefix) in parts { return KeyRange(start: prefix, end: Self.successor(of: prefix)) }
    return nil
  }
}
