import Foundation
import Testing

@testable import ImageStore

/// The eviction order without a cache: entries are numbers.
@Suite struct S3FIFOTests {
  @Test func `a scan of 1,000,000 entries does not evict the entries in use`() {
    var cache = OrderedCache(limit: 1000)
    let used = 0..<900
    for _ in 0..<2 { for entry in used { cache.ask(for: entry) } }
    for entry in 1_000_000..<2_000_000 { cache.ask(for: entry) }
    #expect(used.allSatisfy(cache.holds))
  }

  @Test func `an entry stays after one use and is evicted without any`() {
    var cache = OrderedCache(limit: 100)
    for entry in 0..<50 { cache.ask(for: entry) }
    for entry in 0..<25 { cache.ask(for: entry) }
    for entry in 1000..<2000 { cache.ask(for: entry) }
    #expect((0..<50).filter(cache.holds) == Array(0..<25))
  }

  @Test func `large entries without a use do not displace small entries in use`() {
    var cache = OrderedCache(limit: 1000)
    for _ in 0..<2 { for entry in 0..<900 { cache.ask(for: entry) } }
    for entry in 10_000..<11_000 { cache.ask(for: entry, cost: 100) }
    #expect((0..<900).allSatisfy(cache.holds))
  }

  @Test func `a new working set takes over in three rounds and the old one is evicted`() {
    var cache = OrderedCache(limit: 1000)
    for _ in 0..<20 { for entry in 0..<900 { cache.ask(for: entry) } }
    var hits: [Int] = []
    for _ in 0..<8 { hits.append((5000..<5900).count { cache.ask(for: $0) }) }
    #expect(hits.prefix(2).reduce(0, +) < 900, "hits in each round: \(hits)")
    #expect(hits.dropFirst(5).allSatisfy { $0 == 900 }, "hits in each round: \(hits)")
    #expect((0..<900).count(where: cache.holds) <= 100)
  }

  @Test func `an entry that is no longer used is evicted eventually`() {
    var cache = OrderedCache(limit: 100)
    for _ in 0..<100 { cache.ask(for: 0) }
    // Each is used twice: a working set that changes slowly.
    for entry in 1..<2000 { for _ in 0..<2 { cache.ask(for: entry) } }
    #expect(!cache.holds(0))
  }

  @Test func `a loop larger than the cache has hits, and has none with an LRU order`() {
    var cache = OrderedCache(limit: 1000)
    var recent = RecentCache(limit: 1000)
    var hits = (0, 0)
    for _ in 0..<20 {
      for entry in 0..<1500 {
        if cache.ask(for: entry) { hits.0 += 1 }
        if recent.ask(for: entry) { hits.1 += 1 }
      }
    }
    #expect(hits.1 == 0)
    #expect(hits.0 > 3000, "\(hits.0) of 30000")
  }

  /// Requests that follow Zipf's law: 200,000 requests for 20,000 entries, of which 5 % fit. The second case adds
  /// 40,000 entries that are requested once, in four bursts. Hits in percent.
  @Test(
    arguments: [(0.7, false, 33, 23), (1.0, false, 68, 61), (0.7, true, 33, 21), (1.0, true, 68, 59)]
      as [(Double, Bool, Int, Int)])
  func `Zipf-distributed requests have more hits than with an LRU order`(
    exponent: Double, hasScan: Bool, percent: Int, percentByRecency: Int
  ) {
    var random = SeededChance(state: 42)
    let zipf = Zipf(count: 20_000, exponent: exponent)
    var cache = OrderedCache(limit: 1_000_000)
    var recent = RecentCache(limit: 1_000_000)
    var hits = (0, 0)
    for step in 0..<200_000 {
      let entry = zipf.next(&random)
      let cost = 500 + entry &* 7919 % 1000
      if cache.ask(for: entry, cost: cost) { hits.0 += 1 }
      if recent.ask(for: entry, cost: cost) { hits.1 += 1 }
      if hasScan, step % 50_000 < 10_000 {
        cache.ask(for: 1_000_000 + step, cost: cost)
        recent.ask(for: 1_000_000 + step, cost: cost)
      }
    }
    #expect(hits.0 * 100 / 200_000 == percent)
    #expect(hits.1 * 100 / 200_000 == percentByRecency)
  }

  @Test(arguments: 0..<4) func `the order matches a naive model, and the limit holds at each step`(_: Int) {
    let seed = UInt64.random(in: .min ... .max)
    var random = SeededChance(state: seed)
    var cache = OrderedCache(limit: 1000)
    var model = NaiveCache(limit: 1000)
    for step in 0..<5000 {
      let entry = Int(random.next() % 60)
      switch random.next() % 40 {
      case 0:
        let limit = [0, 300, 1000][Int(random.next() % 3)]
        cache.setLimit(limit)
        model.setLimit(limit)
      case 1..<4:
        cache.remove(entry)
        model.remove(entry)
      default:
        let cost = 1 + Int(random.next() % 50)
        cache.ask(for: entry, cost: cost)
        model.ask(for: entry, cost: cost)
      }
      let expected = Set((model.probation + model.main).map(\.entry))
      let isSame = cache.entries == expected && cache.cost <= cache.limit
      #expect(isSame, "seed \(seed), step \(step)")
      if !isSame { return }
    }
  }
}

/// A cache of numbers with the eviction order under test.
private struct OrderedCache {
  private var order: S3FIFO
  private var places: [Int: Int] = [:]
  private var occupants: [Int] = []
  private var free: [Int] = []

  init(limit: Int) { order = S3FIFO(limit: Int64(limit)) }

  var entries: Set<Int> { Set(places.keys) }
  var cost: Int64 { order.cost }
  var limit: Int64 { order.limit }

  func holds(_ entry: Int) -> Bool { places[entry] != nil }

  @discardableResult
  mutating func ask(for entry: Int, cost: Int = 1) -> Bool {
    if let place = places[entry] {
      order.use(place)
      return true
    }
    guard cost <= limit else { return false }
    let place = free.popLast() ?? occupants.count
    if place == occupants.count { occupants.append(entry) } else { occupants[place] = entry }
    vacate(order.insert(place, cost: Int64(cost), fingerprint: entry, isKnown: false))
    places[entry] = place
    return false
  }

  mutating func remove(_ entry: Int) {
    guard let place = places[entry] else { return }
    order.remove(place)
    vacate([place])
  }

  mutating func setLimit(_ limit: Int) { vacate(order.setLimit(Int64(limit))) }

  private mutating func vacate(_ gone: [Int]) {
    for place in gone { places[occupants[place]] = nil }
    free += gone
  }
}

/// A naive model of the same rules, with linear searches.
private struct NaiveCache {
  struct Item {
    var entry: Int
    var cost: Int
    var uses = 0
  }

  var limit: Int
  var probation: [Item] = []
  var main: [Item] = []
  /// All entries evicted from probation; those that have returned are marked.
  var departed: [(item: Item, hasReturned: Bool)] = []

  mutating func ask(for entry: Int, cost: Int) {
    if let index = probation.firstIndex(where: { $0.entry == entry }) { return probation[index].uses += 1 }
    if let index = main.firstIndex(where: { $0.entry == entry }) { return main[index].uses += 1 }
    guard cost <= limit else { return }
    let past = departed.lastIndex { $0.item.entry == entry && !$0.hasReturned }
    if let past { departed[past].hasReturned = true }
    evict(for: cost, onProbation: past == nil)
    let item = Item(entry: entry, cost: cost)
    if past == nil { probation.append(item) } else { main.append(item) }
  }

  mutating func remove(_ entry: Int) {
    probation.removeAll { $0.entry == entry }
    main.removeAll { $0.entry == entry }
  }

  mutating func setLimit(_ limit: Int) {
    self.limit = limit
    evict(for: 0, onProbation: false)
  }

  private func cost(_ items: [Item]) -> Int { items.reduce(0) { $0 + $1.cost } }

  private mutating func evict(for cost: Int, onProbation: Bool) {
    while self.cost(probation) + self.cost(main) + cost > limit {
      if !probation.isEmpty, main.isEmpty || self.cost(probation) + (onProbation ? cost : 0) > limit / 10 {
        var item = probation.removeFirst()
        if item.uses > 0 {
          item.uses = 0
          main.append(item)
        } else {
          departed.append((item, false))
          while self.cost(departed.map(\.item)) > limit - limit / 10 { departed.removeFirst() }
        }
      } else {
        guard !main.isEmpty else { return }
        var item = main.removeFirst()
        if item.uses > 0 {
          item.uses = min(item.uses, 3) - 1
          main.append(item)
        }
      }
    }
  }
}

/// An LRU cache, for comparison.
private struct RecentCache {
  let limit: Int
  private var entries: [Int: (cost: Int, usedAt: Int)] = [:]
  private var uses: ArraySlice<(entry: Int, at: Int)> = []
  private var cost = 0
  private var time = 0

  init(limit: Int) { self.limit = limit }

  @discardableResult
  mutating func ask(for entry: Int, cost: Int = 1) -> Bool {
    time += 1
    let isThere = entries[entry] != nil
    if !isThere { self.cost += cost }
    entries[entry] = (cost, time)
    uses.append((entry, time))
    while self.cost > limit, let oldest = uses.popFirst() {
      guard let known = entries[oldest.entry], known.usedAt == oldest.at else { continue }
      entries[oldest.entry] = nil
      self.cost -= known.cost
    }
    return isThere
  }
}

/// Random numbers from 0 that follow Zipf's law: lower numbers are more frequent.
private struct Zipf {
  private var sums: [Double] = []

  init(count: Int, exponent: Double) {
    var sum = 0.0
    for rank in 1...count {
      sum += 1 / pow(Double(rank), exponent)
      sums.append(sum)
    }
  }

  func next(_ random: inout SeededChance) -> Int {
    let wanted = Double(random.next() >> 11) / Double(1 << 53) * sums[sums.count - 1]
    var (low, high) = (0, sums.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if sums[middle] < wanted { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
