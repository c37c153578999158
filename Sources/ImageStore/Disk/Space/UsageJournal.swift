/// The recent deliveries of this worker: files that it may not delete, and uses that are not in the index yet.
struct UsageJournal {
  struct Use: Equatable {
    var at: Int
    var times = 1
    /// Whether the path was delivered to a host, which relies on the file.
    var isDelivery = true

    mutating func add(_ other: Use) {
      at = max(at, other.at)
      times += other.times
      isDelivery = isDelivery || other.isDelivery
    }
  }

  /// Uses since the last `drainUses`.
  private(set) var uses: [Int64: Use] = [:]

  private var times = GracePeriods<Int64>()

  /// Records a use. A file that was delivered by path is pinned from then on.
  mutating func record(_ id: Int64, _ use: Use) {
    if use.isDelivery { pin(id, at: use.at) }
    uses[id, default: Use(at: use.at, times: 0, isDelivery: false)].add(use)
  }

  /// Pins without counting a use, for a new row that is written with its first delivery.
  mutating func pin(_ id: Int64, at time: Int) { times.record(id, at: time) }

  func lastDelivery(of id: Int64) -> Int? { times[id] }

  mutating func drainUses() -> [Int64: Use] {
    defer { uses = [:] }
    return uses
  }

  mutating func removeUse(of id: Int64) -> Use? { uses.removeValue(forKey: id) }

  /// Removes deliveries that are over 60 s old.
  mutating func expire(now: Int) { _ = times.removeExpired(now: now) }
}
