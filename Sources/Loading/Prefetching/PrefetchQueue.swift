internal import HTTPTypes

/// The items of a prefetch on their way to become loads: which is the next.
///
/// For each origin there are so many loads at a time that its transfers never wait for the next item, and not more: a
/// million items are a list of URLs, not a million loads, and an origin that does not answer keeps no place that
/// another could use. Items that have no place among those that may wait go on when there is none left that has one and
/// may go; then the cache serves them, or nothing does.
struct PrefetchQueue {
  private struct Row {
    let origin: Origin?
    var loads = 0
  }

  private let items: [LoadRequest]
  private let order: QueueOrder
  /// Loads at a time for one origin, and in all.
  let mostOfOrigin: Int
  let mostInAll: Int
  private var rowOfItem: [Int32] = []
  private var rowOfOrigin: [Origin?: Int32] = [:]
  private var rows: [Row] = []
  private var waiting = FairQueue()
  /// Here they only take turns.
  private static let lane = FairQueue.QueueClass(priority: .normal, needsDecoder: false)
  /// Items from here on have no place.
  private var nextWithoutPlace: Int
  private var loads = 0

  /// - Parameter places: how many of the items, the first ones, have a place among those that may wait.
  init(_ items: [LoadRequest], limits: SchedulerLimits, places: Int) {
    self.items = items
    order = limits.order
    mostOfOrigin = max(128, 2 * limits.mostPerOrigin)
    mostInAll = max(8192, 2 * limits.mostConcurrent)
    nextWithoutPlace = min(places, items.count)
    rowOfItem.reserveCapacity(items.count)
    for (number, item) in items.enumerated() {
      let origin: Origin? = if case .http(let url) = item.source { url.origin } else { nil }
      let row = rowOfOrigin[origin] ?? Int32(rows.count)
      if row == rows.count {
        rowOfOrigin[origin] = row
        rows.append(Row(origin: origin))
        waiting.admit(row)
      }
      rowOfItem.append(row)
      if number < nextWithoutPlace { waiting.add(Int32(number), of: row, in: Self.lane, place: Int64(number)) }
    }
  }

  var total: Int { items.count }

  /// Whether every item has become a load.
  var isEmpty: Bool { placesHeld == 0 && nextWithoutPlace == items.count }

  /// How many items with a place wait here.
  var placesHeld: Int { waiting.counts.total }

  /// By origin, as far as they have one.
  var heldBack: [(origin: Origin, count: Int)] {
    rows.indices.compactMap { row in
      guard let origin = rows[row].origin, case let count = waiting.count(of: Int32(row)), count > 0 else { return nil }
      return (origin, count)
    }
  }

  /// The item that is to become a load now; its `end` has to follow.
  mutating func next() -> (item: Int32, request: LoadRequest, hasPlace: Bool)? {
    guard loads < mostInAll else { return nil }
    let item: Int32
    let next = waiting.takeNext(order)
    if let next {
      item = next
    } else if nextWithoutPlace < items.count {
      item = Int32(nextWithoutPlace)
      nextWithoutPlace += 1
    } else {
      return nil
    }
    count(1, for: rowOfItem[Int(item)])
    return (item, items[Int(item)], hasPlace: next != nil)
  }

  /// The load of an item has ended.
  mutating func end(_ item: Int32) { count(-1, for: rowOfItem[Int(item)]) }

  func url(of item: Int32) -> String { items[Int(item)].url }

  /// Takes out the items with a place that wait for an origin: it is down.
  mutating func takeAll(of origin: Origin) -> [Int32] {
    guard let row = rowOfOrigin[origin] else { return [] }
    let items = waiting.jobs(of: row)
    for item in items { waiting.remove(item, of: row) }
    return items
  }

  /// Forgets all that have not become loads. Returns how many places they held.
  mutating func dropAll() -> Int {
    let held = placesHeld
    waiting = FairQueue()
    for row in rows.indices { waiting.admit(Int32(row)) }
    nextWithoutPlace = items.count
    return held
  }

  private mutating func count(_ change: Int, for row: Int32) {
    loads += change
    rows[Int(row)].loads += change
    waiting.setEligible(rows[Int(row)].loads < mostOfOrigin, row)
  }
}
