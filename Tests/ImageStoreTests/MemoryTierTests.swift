import HTTPTypes
import Testing

@testable import ImageStore

@Suite struct MemoryTierTests {
  private func response(_ key: String, at time: Int = 0, varying: HeaderFields = [:]) -> StoredResponse {
    StoredResponse(
      id: Int64(time), key: key, url: key, varyingHeaders: varying, requestTime: time, responseTime: time,
      storedAt: time, validatedAt: time, expiresAt: time, mediaType: "image/png")
  }

  @Test func `an entry over a tenth of the limit is not kept, nor what it replaces`() {
    var tier = MemoryTier(limit: 100_000)
    let kept = [10_000, 10_001].map { tier.store(response("a"), bytes: bytes($0)) }
    #expect(kept == [true, false])
    let left = tier.look(up: "a")
    #expect(left.isEmpty)
    #expect(tier.counts == MemoryTier.Counts(entries: 0, bytes: 0, limit: 100_000))
  }

  @Test func `a limit of 0 turns the tier off`() {
    var tier = MemoryTier(limit: 0)
    for count in [1, 0] { tier.store(response("a"), bytes: bytes(count)) }
    #expect(tier.counts.entries == 0)
  }

  @Test func `responses that differ by Vary stand side by side, newest first`() {
    var tier = MemoryTier(limit: 1 << 20)
    tier.store(response("a", at: 1, varying: ["accept": "x"]), bytes: [1])
    tier.store(response("a", at: 2, varying: ["accept": "y"]), bytes: [2])
    tier.store(response("a", at: 3, varying: ["accept": "x"]), bytes: [3])
    let (found, foreign) = (tier.look(up: "a"), tier.look(up: "a", partition: "p"))
    #expect(found.map(\.bytes) == [[3], [2]])
    #expect(foreign.isEmpty)
  }

  @Test func `what is said of a response that was replaced does not change the one in its place`() {
    var tier = MemoryTier(limit: 1 << 20)
    let old = response("a", at: 1)
    tier.store(old, bytes: [1])
    tier.store(response("a", at: 2), bytes: [2])
    tier.update(old)
    tier.forgetFile(of: old)
    let found = tier.look(up: "a")
    #expect(found.map(\.response) == [response("a", at: 2)])
    tier.forgetFile(of: response("a", at: 2))
    let forgotten = tier.look(up: "a")
    #expect(forgotten.map(\.response.id) == [0])
    #expect(forgotten.map(\.bytes) == [[2]])
  }

  @Test func `what is promoted takes nothing's place`() {
    var tier = MemoryTier(limit: 1 << 20)
    tier.store(response("a", at: 2), bytes: [2])
    tier.promote(response("a", at: 1), bytes: [1])
    tier.promote(response("b", at: 1), bytes: [1])
    let found = tier.look(up: "a") + tier.look(up: "b")
    #expect(found.map(\.bytes) == [[2], [1]])
    tier.remove(replacedBy: response("a", at: 3))
    #expect(tier.counts.entries == 1)
  }

  @Test func `an update replaces the response and keeps the bytes`() {
    var tier = MemoryTier(limit: 1 << 20)
    tier.store(response("a"), bytes: [1])
    var changed = response("a")
    changed.expiresAt = 99
    tier.update(changed)
    tier.update(response("b"))
    let found = tier.look(up: "a")
    #expect(found.map(\.response) == [changed])
    #expect(found.map(\.bytes) == [[1]])
    #expect(tier.counts.entries == 1)
  }

  @Test func `the number of empty entries is bounded`() {
    var tier = MemoryTier(limit: 512 * 10)
    for number in 0..<100 { tier.store(response("\(number)"), bytes: []) }
    #expect(tier.counts.entries == 10)
  }

  @Test(arguments: 0..<4) func `the tier behaves like a naive model`(_: Int) {
    let seed = UInt64.random(in: .min ... .max)
    var random = SeededChance(state: seed)
    var tier = MemoryTier(limit: 40_000)
    var model: [(key: String, size: Int)] = []  // least recently used first
    var limit = 40_000
    for step in 0..<3000 {
      let place: Comment = "seed \(seed), step \(step)"
      let key = "k\(random.next() % 30)"
      let cost = { (size: Int) in max(size, 512) }
      switch random.next() % 10 {
      case 0..<5:
        let size = Int(random.next() % 4500)
        tier.store(response(key), bytes: bytes(size))
        model.removeAll { $0.key == key }
        if size <= limit / 10 { model.append((key, size)) }
      case 5..<8:
        let found = tier.look(up: key)
        #expect(found.map(\.bytes.count) == model.filter { $0.key == key }.map(\.size), place)
        if let index = model.firstIndex(where: { $0.key == key }) { model.append(model.remove(at: index)) }
      case 8:
        let cleared = tier.clear(.prefix("k2"), now: 0)
        #expect(Set(cleared.map(\.key)) == Set(model.map(\.key).filter { $0.hasPrefix("k2") }), place)
        model.removeAll { $0.key.hasPrefix("k2") }
      default:
        limit = 20_000 + Int(random.next() % 3) * 10_000
        tier.setLimit(Int64(limit))
        model.removeAll { $0.size > limit / 10 }
      }
      while model.reduce(0, { $0 + cost($1.size) }) > limit { model.removeFirst() }
      #expect(tier.counts.entries == model.count, place)
      #expect(tier.counts.bytes == Int64(model.reduce(0) { $0 + $1.size }), place)
    }
  }
}
