internal import Platform

/// A binary heap of timers. Entries with the same time are dequeued in the order of insertion. Obsolete entries are not
/// removed individually; the caller checks each dequeued entry, and calls `filter` from time to time.
struct TimerQueue<Payload> {
  private struct Entry {
    let at: Instant
    /// The number of entries added before, modulo 2^32.
    let number: UInt32
    let payload: Payload

    func precedes(_ other: Entry) -> Bool { at == other.at ? number < other.number : at < other.at }
  }

  private var entries: [Entry] = []
  private var added: UInt32 = 0

  /// The time of the earliest entry.
  var next: Instant? { entries.first?.at }

  var count: Int { entries.count }

  mutating func add(_ payload: Payload, at instant: Instant) {
    entries.append(Entry(at: instant, number: added, payload: payload))
    added &+= 1
    var child = entries.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard entries[child].precedes(entries[parent]) else { break }
      entries.swapAt(child, parent)
      child = parent
    }
  }

  /// Dequeues the earliest entry if it is due at `now`.
  mutating func take(dueAt now: Instant) -> (at: Instant, payload: Payload)? {
    guard let top = entries.first, top.at <= now else { return nil }
    let last = entries.removeLast()
    if !entries.isEmpty {
      entries[0] = last
      siftDown(from: 0)
    }
    return (top.at, top.payload)
  }

  /// Returns a queue of the entries that satisfy `holds`. O(n).
  func filter(_ holds: (_ at: Instant, _ payload: Payload) -> Bool) -> Self {
    var kept = Self()
    kept.added = added
    kept.entries = entries.filter { holds($0.at, $0.payload) }
    for parent in (0..<kept.entries.count / 2).reversed() { kept.siftDown(from: parent) }
    return kept
  }

  private mutating func siftDown(from start: Int) {
    var parent = start
    while true {
      var smallest = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < entries.count {
        if entries[child].precedes(entries[smallest]) { smallest = child }
      }
      guard smallest != parent else { return }
      entries.swapAt(parent, smallest)
      parent = smallest
    }
  }
}
