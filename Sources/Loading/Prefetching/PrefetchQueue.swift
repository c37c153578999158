internal import HTTPTypes

/// Feeds prefetch items into the queue, in the order in which they become loads.
///
/// Each origin has just enough loads to keep its transfers busy, so that a million items are URLs and not a million
/// loads, and an origin that does not answer takes no queue place that another could use. Items beyond `maxQueued` have
/// no reserved place and are submitted last; they succeed only if the cache can serve them.
struct PrefetchQueue {
  private struct Row {
    let origin: Origin?
    var loads = 0
  }

  private let items: [LoadRequest]
  private let order: QueueOrder
  /// The maximum number of concurrent loads for one origin, and in all.
  let maxPerOrigin: Int
  let maxTotal: Int
  private var rowOfItem: [Int32] = []
  private var rowOfOrigin: [Origin?: Int32] = [:]
  private var rows: [Row] = []
  private var waiting = FairQueue()
  /// All items have the same queue class: here the queue only provides the round robin.
  private static let queueClass = FairQueue.QueueClass(priority: .normal, needsDecoder: false)
  /// The first remaining item without a reserved place.
  private var nextWithoutPlace: Int
  private var loads = 0

  /// - Parameter places: the number of items, from the first, that have a reserved queue place.
  init(_ items: [LoadRequest], limits: SchedulerLimits, places: Int) {
    self.items = items
    order = limits.order
    maxPerOrigin = max(128, 2 * limits.maxOriginWindow)
    maxTotal = max(8192, 2 * limits.maxWindow)
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
      if number < nextWithoutPlace { waiting.add(Int32(number), of: row, in: Self.queueClass, sequence: Int64(number)) }
    }
  }

  var total: Int { items.count }

  /// Whether every item has become a load.
  var isEmpty: Bool { placesHeld == 0 && nextWithoutPlace == items.count }

  /// The number of items with a reserved place that are not loads yet.
  var placesHeld: Int { waiting.counts.total }

  /// The same by origin, for items that have one.
  var heldBack: [(origin: Origin, count: Int)] {
    rows.indices.compactMap { row in
      guard let origin = rows[row].origin, case let count = waiting.count(of: Int32(row)), count > 0 else { return nil }
      return (origin, count)
    }
  }

  /// Dequeues the next item to submit; `end` must follow for it.
  mutating func next() -> (item: Int32, request: LoadRequest, hasPlace: Bool)? {
    guard loads < maxTotal else { return nil }
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

  /// Records that the load of an item has ended.
  mutating func end(_ item: Int32) { count(-1, for: rowOfItem[Int(item)]) }

  func url(of item: Int32) -> String { items[Int(item)].url }

  func headers(of item: Int32) -> LoadHeaders { items[Int(item)].fields }

  /// Removes the items with a reserved place of an origin that is down.
  mutating func takeAll(of origin: Origin) -> [Int32] {
    guard let row = rowOfOrigin[origin] else { return [] }
    let items = waiting.jobs(of: row)
    for item in items { waiting.remove(item, of: row) }
    return items
  }

  /// Removes all items that are not loads yet. Returns how many places they had reserved.
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
    waiting.setEligible(rows[Int(row)].loads < maxPerOrigin, row)
  }
}
