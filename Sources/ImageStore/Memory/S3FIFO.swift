/// Which entry of a cache goes next, by how often and how lately it was used: S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi,
/// "FIFO queues are all you need for cache eviction", SOSP 2023). A pure value over places, which are small numbers.
///
/// - What is new is on probation, in a queue that may have a tenth of the room. One that was used there goes over into
///   the main queue when its turn comes, the others go: however many come that nobody asks for again, they displace
///   each other.
/// - Of those that went, fingerprints are kept for a while, as many as would fill the main queue. What comes back in
///   that time is no longer on probation, so a new set of entries that are used takes over the second time it is asked
///   for.
/// - The main queue is a clock: whoever was used gets another turn for each use, three at most, so nothing stays for
///   ever.
///
/// A use is one count and moves nothing. Every step is O(1), eviction amortised: each further entry that it looks at
/// loses a use, or its probation.
struct S3FIFO {
  private struct Entry {
    var cost: Int64 = 0
    var fingerprint = 0
    var uses: UInt8 = 0
    var isOnProbation = true
  }

  /// The most uses that count.
  private static let mostUses: UInt8 = 3

  private var standings: [Entry] = []
  private var links = IndexLinkedLists()
  private var probation = IndexLinkedLists.List()
  private var main = IndexLinkedLists.List()
  private var probationCost: Int64 = 0
  private var ghostQueue = DepartedEntries()

  /// What all of them cost.
  private(set) var cost: Int64 = 0

  /// What all of them may cost.
  private(set) var limit: Int64

  init(limit: Int64) {
    self.limit = limit
    ghostQueue.limit = limit - probationLimit
  }

  private var probationLimit: Int64 { limit / 10 }

  mutating func use(_ place: Int) {
    if standings[place].uses < Self.mostUses { standings[place].uses += 1 }
  }

  /// Adds an entry, after making room for it.
  ///
  /// - Parameters:
  ///   - cost: not over the limit.
  ///   - fingerprint: a hash of what the entry is known by. Two that share one are mistaken for each other, which does
  ///     no harm.
  ///   - isKnown: whether it takes the place of one that was there.
  /// - Returns: those that had to go. Their places are free.
  mutating func insert(_ place: Int, cost: Int64, fingerprint: Int, isKnown: Bool) -> [Int] {
    let hasDeparted = ghostQueue.remove(fingerprint)
    let isBack = isKnown || hasDeparted
    var evicted: [Int] = []
    while self.cost + cost > limit, let place = evict(for: isBack ? 0 : cost) { evicted.append(place) }
    while standings.count <= place { standings.append(Entry()) }
    standings[place] = Entry(cost: cost, fingerprint: fingerprint, isOnProbation: !isBack)
    enqueue(place)
    return evicted
  }

  /// - Returns: those that had to go.
  mutating func setLimit(_ limit: Int64) -> [Int] {
    self.limit = limit
    ghostQueue.limit = limit - probationLimit
    var evicted: [Int] = []
    while cost > limit, let place = evict(for: 0) { evicted.append(place) }
    return evicted
  }

  mutating func remove(_ place: Int) {
    cost -= standings[place].cost
    if standings[place].isOnProbation {
      probationCost -= standings[place].cost
      links.remove(place, from: &probation)
    } else {
      links.remove(place, from: &main)
    }
  }

  private mutating func enqueue(_ place: Int) {
    cost += standings[place].cost
    if standings[place].isOnProbation {
      probationCost += standings[place].cost
      links.append(place, to: &probation)
    } else {
      links.append(place, to: &main)
    }
  }

  /// Takes the next one out, if there is any.
  ///
  /// - Parameter newcomer: what the one costs that is about to be on probation.
  private mutating func evict(for newcomer: Int64) -> Int? {
    while !probation.isEmpty && (probationCost + newcomer > probationLimit || main.isEmpty) {
      let place = probation.first
      remove(place)
      if standings[place].uses == 0 {
        ghostQueue.insert(standings[place].fingerprint, cost: standings[place].cost)
        return place
      }
      standings[place].uses = 0
      standings[place].isOnProbation = false
      enqueue(place)
    }
    while !main.isEmpty {
      let place = main.first
      remove(place)
      if standings[place].uses == 0 { return place }
      standings[place].uses -= 1
      enqueue(place)
    }
    return nil
  }
}

/// Fingerprints of entries that went lately, as many as cost `limit` together, first in first out.
private struct DepartedEntries {
  var limit: Int64 = 0

  /// When each departed last.
  private var times: [Int: Int] = [:]
  /// All departures; one that has come back, or departed again since, is skipped.
  private var queue: ArraySlice<(fingerprint: Int, cost: Int64)> = []
  private var departures = 0
  private var cost: Int64 = 0

  mutating func insert(_ fingerprint: Int, cost: Int64) {
    times[fingerprint] = departures
    departures += 1
    queue.append((fingerprint, cost))
    self.cost += cost
    while self.cost > limit, let oldest = queue.popFirst() {
      self.cost -= oldest.cost
      if times[oldest.fingerprint] == departures - queue.count - 1 { times[oldest.fingerprint] = nil }
    }
  }

  /// Whether it departed lately. It has not any more.
  mutating func remove(_ fingerprint: Int) -> Bool { times.removeValue(forKey: fingerprint) != nil }
}
