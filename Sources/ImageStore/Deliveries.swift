/// What this worker delivered lately: which files it may not remove, and which uses the index does not know of yet.
struct Deliveries {
  struct Use: Equatable {
    var at: Int
    var times = 1

    mutating func add(_ other: Use) {
      at = max(at, other.at)
      times += other.times
    }
  }

  /// Uses since the last `takeUses`.
  private(set) var uses: [Int64: Use] = [:]

  private var last: [Int64: Int] = [:]
  private var order: [(id: Int64, at: Int)] = []  // each id of `last` once, with a time not after its last delivery
  private var head = 0

  /// Notes that the file was given out. It is pinned from then on.
  mutating func note(_ id: Int64, _ use: Use) {
    pin(id, at: use.at)
    uses[id, default: Use(at: use.at, times: 0)].add(use)
  }

  /// Pins without counting a use: for a new row, which is written with its first delivery.
  mutating func pin(_ id: Int64, at time: Int) {
    if let earlier = last[id] {
      last[id] = max(earlier, time)
    } else {
      last[id] = time
      order.append((id, time))
    }
  }

  func lastDelivery(of id: Int64) -> Int? { last[id] }

  mutating func takeUses() -> [Int64: Use] {
    defer { uses = [:] }
    return uses
  }

  mutating func takeUse(of id: Int64) -> Use? { uses.removeValue(forKey: id) }

  /// Lets go of what was delivered over 60 s ago. Amortised O(1) for each delivery.
  mutating func forget(now: Int) {
    while head < order.count, endOfLife(deliveredAt: order[head].at) <= now {
      let id = order[head].id
      head += 1
      guard let time = last[id] else { continue }
      if endOfLife(deliveredAt: time) <= now {
        last[id] = nil
      } else {
        order.append((id, time))
      }
    }
    if head > 1024 && head * 2 > order.count {
      order.removeFirst(head)
      head = 0
    }
  }
}
