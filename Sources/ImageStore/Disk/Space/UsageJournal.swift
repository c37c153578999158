/// What this worker delivered lately: which files it may not remove, and which uses the index does not know of yet.
struct UsageJournal {
  struct Use: Equatable {
    var at: Int
    var times = 1
    /// Whether a host was given the path, and may count on the file.
    var isDelivery = true

    mutating func add(_ other: Use) {
      at = max(at, other.at)
      times += other.times
      isDelivery = isDelivery || other.isDelivery
    }
  }

  /// Uses since the last `takeUses`.
  private(set) var uses: [Int64: Use] = [:]

  private var times = GracePeriods<Int64>()

  /// Notes that the image was used. A file that was given out is pinned from then on.
  mutating func note(_ id: Int64, _ use: Use) {
    if use.isDelivery { pin(id, at: use.at) }
    uses[id, default: Use(at: use.at, times: 0, isDelivery: false)].add(use)
  }

  /// Pins without counting a use: for a new row, which is written with its first delivery.
  mutating func pin(_ id: Int64, at time: Int) { times.note(id, at: time) }

  func lastDelivery(of id: Int64) -> Int? { times[id] }

  mutating func takeUses() -> [Int64: Use] {
    defer { uses = [:] }
    return uses
  }

  mutating func takeUse(of id: Int64) -> Use? { uses.removeValue(forKey: id) }

  /// Lets go of what was delivered over 60 s ago.
  mutating func forget(now: Int) { _ = times.takeExpired(now: now) }
}
