internal import Threads

/// The S3-FIFO eviction order, by frequency and recency of use (Yang, Zhang, Qiu, Yue, Rashmi, "FIFO queues are all you
/// need for cache eviction", SOSP 2023). A pure value; entries are identified by small indices.
///
/// - New entries are on probation, in a queue that may use a tenth of the limit. At its end, an entry that was used
///   moves to the main queue and any other is evicted. So entries that are never used again displace only each other.
/// - The ghost queue keeps the fingerprints of entries evicted from probation, as many as would fill the main queue. An
///   entry that returns while its fingerprint is kept skips probation, so a new working set takes over at its second
///   use.
/// - The main queue is a clock: an entry gets another turn for each use, at most three, so no entry stays forever.
///
/// A use increments one counter and moves nothing. Every operation is O(1), eviction amortised: each further entry that
/// it examines loses a use or its probation.
struct S3FIFO {
  private struct Entry {
    var cost: Int64 = 0
    var fingerprint = 0
    var uses: UInt8 = 0
    var isOnProbation = true
  }

  /// The maximum number of uses that count.
  private static let maxUses: UInt8 = 3

  private var entries: [Entry] = []
  private var links: [IndexLinkedList.Link] = []
  private var probation = IndexLinkedList()
  private var main = IndexLinkedList()
  private var probationCost: Int64 = 0
  private var ghostQueue = GhostQueue()

  /// The total cost of the entries.
  private(set) var cost: Int64 = 0

  /// The maximum total cost.
  private(set) var limit: Int64

  init(limit: Int64) {
    self.limit = limit
    ghostQueue.limit = limit - probationLimit
  }

  private var probationLimit: Int64 { limit / 10 }

  mutating func use(_ index: Int) {
    if entries[index].uses < Self.maxUses { entries[index].uses += 1 }
  }

  /// Evicts entries until the new one fits, then adds it.
  ///
  /// - Parameters:
  ///   - cost: must not exceed the limit.
  ///   - fingerprint: a hash of the entry's identity. Two entries with the same fingerprint are confused, which is
  ///     harmless.
  ///   - isKnown: whether it replaces an entry.
  /// - Returns: the evicted entries, whose indices are free.
  mutating func insert(_ index: Int, cost: Int64, fingerprint: Int, isKnown: Bool) -> [Int] {
    let isGhost = ghostQueue.remove(fingerprint)
    let isReturning = isKnown || isGhost
    var evicted: [Int] = []
    while self.cost + cost > limit, let index = evict(for: isReturning ? 0 : cost) { evicted.append(index) }
    while entries.count <= index { entries.append(Entry()) }
    links.reach(Int32(index))
    entries[index] = Entry(cost: cost, fingerprint: fingerprint, isOnProbation: !isReturning)
    enqueue(index)
    return evicted
  }

  /// - Returns: the evicted entries.
  mutating func setLimit(_ limit: Int64) -> [Int] {
    self.limit = limit
    ghostQueue.limit = limit - probationLimit
    var evicted: [Int] = []
    while cost > limit, let index = evict(for: 0) { evicted.append(index) }
    return evicted
  }

  /// Changes the cost of an entry. Nothing is evicted: the next insertion makes room.
  mutating func setCost(_ cost: Int64, of index: Int) {
    let growth = cost - entries[index].cost
    entries[index].cost = cost
    self.cost += growth
    if entries[index].isOnProbation { probationCost += growth }
  }

  mutating func remove(_ index: Int) {
    cost -= entries[index].cost
    if entries[index].isOnProbation {
      probationCost -= entries[index].cost
      probation.remove(Int32(index), in: &links)
    } else {
      main.remove(Int32(index), in: &links)
    }
  }

  private mutating func enqueue(_ index: Int) {
    cost += entries[index].cost
    if entries[index].isOnProbation {
      probationCost += entries[index].cost
      probation.append(Int32(index), in: &links)
    } else {
      main.append(Int32(index), in: &links)
    }
  }

  /// Evicts the next entry; nil if there is none.
  ///
  /// - Parameter newcomer: the cost of the entry that is about to be added to probation.
  private mutating func evict(for newcomer: Int64) -> Int? {
    while !probation.isEmpty && (probationCost + newcomer > probationLimit || main.isEmpty) {
      let index = Int(probation.first)
      remove(index)
      if entries[index].uses == 0 {
        ghostQueue.insert(entries[index].fingerprint, cost: entries[index].cost)
        return index
      }
      entries[index].uses = 0
      entries[index].isOnProbation = false
      enqueue(index)
    }
    while !main.isEmpty {
      let index = Int(main.first)
      remove(index)
      if entries[index].uses == 0 { return index }
      entries[index].uses -= 1
      enqueue(index)
    }
    return nil
  }
}

/// The ghost queue: fingerprints of recently evicted entries, first in first out, with a total cost of at most `limit`.
private struct GhostQueue {
  var limit: Int64 = 0

  /// The number of the last eviction of each fingerprint.
  private var lastEvictions: [Int: Int] = [:]
  /// All evictions. One whose fingerprint has returned or was evicted again is skipped.
  private var queue: ArraySlice<(fingerprint: Int, cost: Int64)> = []
  private var evictionCount = 0
  private var cost: Int64 = 0

  mutating func insert(_ fingerprint: Int, cost: Int64) {
    lastEvictions[fingerprint] = evictionCount
    evictionCount += 1
    queue.append((fingerprint, cost))
    self.cost += cost
    while self.cost > limit, let oldest = queue.popFirst() {
      self.cost -= oldest.cost
      if lastEvictions[oldest.fingerprint] == evictionCount - queue.count - 1 {
        lastEvictions[oldest.fingerprint] = nil
      }
    }
  }

  /// Removes the fingerprint. Returns whether it was in the queue.
  mutating func remove(_ fingerprint: Int) -> Bool { lastEvictions.removeValue(forKey: fingerprint) != nil }
}
