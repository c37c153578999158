import HTTPTypes
import Testing

@testable import ImageStore

@Suite struct MemoryTierTests {
  private func response(_ key: String, at time: Int = 0, varying: HeaderFields = [:]) -> StoredResponse {
    StoredResponse(
      id: Int64(time), key: key, url: key, varyingHeaders: varying, requestTime: time, responseTime: time,
      storedAt: time, validatedAt: time, expiresAt: time, content: ImageDescription(mediaType: "image/png"))
  }

  @Test func `an entry larger than a tenth of the limit is not stored, and the one that it replaces is removed`() {
    var tier = MemoryTier(limit: 100_000)
    let kept = [10_000, 10_001].map { tier.store(response("a"), bytes: bytes($0)) }
    #expect(kept == [true, false])
    let left = tier.look(up: "a")
    #expect(left.isEmpty)
    #expect(tier.counts == MemoryTier.Counts(entries: 0, bytes: 0, limit: 100_000, evicted: 0))
  }

  @Test func `a limit of 0 disables the tier`() {
    var tier = MemoryTier(limit: 0)
    for count in [1, 0] { tier.store(response("a"), bytes: bytes(count)) }
    #expect(tier.counts.entries == 0)
  }

  @Test func `responses with different varying fields coexist, newest first`() {
    var tier = MemoryTier(limit: 1 << 20)
    tier.store(response("a", at: 1, varying: ["accept": "x"]), bytes: [1])
    tier.store(response("a", at: 2, varying: ["accept": "y"]), bytes: [2])
    tier.store(response("a", at: 3, varying: ["accept": "x"]), bytes: [3])
    let (found, foreign) = (tier.look(up: "a"), tier.look(up: "a", partition: "p"))
    #expect(found.map(\.bytes) == [[3], [2]])
    #expect(foreign.isEmpty)
  }

  @Test func `the oldest response is removed if too many differ in their varying fields`() {
    var tier = MemoryTier(limit: 1 << 20)
    for number in 1...40 {
      tier.store(response("a", at: 100 - number, varying: ["accept": "\(number)"]), bytes: bytes(number))
      tier.store(response("b", varying: ["accept": "\(number)"]), bytes: [])
    }
    let found = tier.look(up: "a").map(\.bytes.count)
    // The last one stored is kept, although its response is the oldest.
    #expect(found == Array(1...31) + [40])
    #expect(tier.look(up: "b").count == 32)
    #expect(tier.counts == MemoryTier.Counts(entries: 64, bytes: Int64(found.reduce(0, +)), limit: 1 << 20, evicted: 0))
  }

  @Test func `updates of a replaced response do not change the one that replaced it`() {
    var tier = MemoryTier(limit: 1 << 20)
    let old = response("a", at: 1)
    tier.store(old, bytes: [1])
    tier.store(response("a", at: 2), bytes: [2])
    tier.update(old)
    tier.recordMissingFile(of: old)
    let found = tier.look(up: "a")
    #expect(found.map(\.response) == [response("a", at: 2)])
    tier.recordMissingFile(of: response("a", at: 2))
    let forgotten = tier.look(up: "a")
    #expect(forgotten.map(\.response.id) == [0])
    #expect(forgotten.map(\.bytes) == [[2]])
  }

  @Test func `a variant of a newer original replaces the variants of older ones`() {
    var tier = MemoryTier(limit: 100_000)
    func variant(_ name: String, of original: UInt8, at time: Int) -> StoredResponse {
      var variant = response("a", at: time)
      variant.variant = name
      variant.metadata = DecodeMetadata(
        source: ImageDescription(ImageHeader(.png, width: 1, height: 1), byteCount: 1, digest: [original]))
      return variant
    }
    tier.store(variant("w=1", of: 7, at: 1), bytes: [1])
    tier.store(variant("w=2", of: 7, at: 1), bytes: [1])
    #expect(tier.counts.entries == 2)
    tier.store(variant("w=3", of: 8, at: 2), bytes: [1])
    #expect(tier.counts.entries == 1)
    tier.store(variant("w=1", of: 7, at: 1), bytes: [1])
    #expect(tier.peek(at: "a", variant: "w=3").count == 1)
  }

  @Test func `variants get the times of an original that is stored again with the same content`() {
    var tier = MemoryTier(limit: 1 << 20)
    var variant = response("a", at: 1)
    variant.variant = "w=1"
    variant.metadata = DecodeMetadata(
      source: ImageDescription(ImageHeader(.png, width: 1, height: 1), byteCount: 1, digest: [7]))
    tier.store(variant, bytes: [1])
    var original = response("a", at: 9)
    original.content.digest = [7]
    tier.store(original, bytes: [2])
    #expect(tier.peek(at: "a", variant: "w=1").map(\.response.expiresAt) == [9])
    original.expiresAt = 3
    tier.remove(replacedBy: original)
    #expect(tier.peek(at: "a", variant: "w=1").map(\.response.expiresAt) == [3])
    original.content.digest = [8]
    tier.store(original, bytes: [2])
    #expect(tier.peek(at: "a", variant: "w=1").isEmpty)
  }

  @Test func `a promoted response replaces nothing`() {
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

  @Test func `the facts of an image count for the limit`() {
    var tier = MemoryTier(limit: 1 << 20)
    let text = EXIFValue.text(String(repeating: "a", count: 200))
    let texts = Dictionary(uniqueKeysWithValues: EXIFField.others.prefix(10).map { ($0, text) })
    for number in 1...1000 {
      var image = response("\(number)", at: number)
      tier.store(image, bytes: [])
      image.metadata = DecodeMetadata(facts: .init(exif: texts))
      tier.recordMetadata(of: image)
    }
    #expect(tier.counts.entries > 300 && tier.counts.entries < 500)
  }

  @Test func `a scan of images without a second use does not evict the images in use`() {
    var tier = MemoryTier(limit: 100_000)
    let used = (0..<80).map { "used \($0)" }
    for key in used { tier.store(response(key), bytes: bytes(1000)) }
    for key in used { _ = tier.look(up: key) }
    for number in 0..<10_000 { tier.store(response("\(number)"), bytes: bytes(1000)) }
    let left = used.filter { !tier.peek(at: $0).isEmpty }
    #expect(left == used)
    #expect(tier.counts.evicted == 10_080 - tier.counts.entries)
  }

  @Test func `a peek does not protect an entry from eviction`() {
    var tier = MemoryTier(limit: 100_000)
    tier.store(response("a"), bytes: bytes(1000))
    let seen = tier.peek(at: "a")
    #expect(seen.map(\.bytes) == [bytes(1000)])
    for number in 0..<200 { tier.store(response("\(number)"), bytes: bytes(1000)) }
    let left = tier.peek(at: "a")
    #expect(left.isEmpty)
  }

  @Test func `clear by key matches all partitions, variants and varying fields, and clear by URL matches other keys`() {
    var tier = MemoryTier(limit: 1 << 20)
    func store(_ key: String, url: String, partition: String = "", variant: String = "", varying: HeaderFields = [:]) {
      var response = response(key, varying: varying)
      (response.url, response.partition, response.variant) = (url, partition, variant)
      tier.store(response, bytes: [1])
    }
    func fill() {
      store("a", url: "a")
      store("a", url: "a", partition: "p")
      store("a", url: "a", variant: "w")
      store("a", url: "a", varying: ["accept": "x"])
      store("b", url: "a")
      store("c", url: "c")
    }
    for (filter, count) in [(.key("a"), 4), (.url("a", key: "c"), 6), (.url("a", key: "a"), 5), (.key("x"), 0)]
      as [(ClearFilter, Int)]
    {
      _ = tier.clear(.all, now: 0)
      fill()
      #expect(tier.clear(filter, now: 0).count == count)
      #expect(tier.counts.entries == 6 - count)
    }
  }

  @Test func `a response is found by its new URL after an update`() {
    var tier = MemoryTier(limit: 1 << 20)
    tier.store(response("a"), bytes: [1])
    var moved = response("a")
    moved.url = "b"
    tier.update(moved)
    #expect(tier.clear(.url("b", key: "b"), now: 0) == [moved])
    #expect(tier.counts.entries == 0)
  }

  @Test(arguments: 0..<4) func `the tier contains the last stored response of each key and never exceeds its limit`(
    _: Int
  ) {
    let seed = UInt64.random(in: .min ... .max)
    var random = SeededChance(state: seed)
    var tier = MemoryTier(limit: 40_000)
    var newest: [String: Int] = [:]
    var limit = 40_000
    for step in 0..<3000 {
      let place: Comment = "seed \(seed), step \(step)"
      let key = "k\(random.next() % 30)"
      switch random.next() % 10 {
      case 0..<5:
        let size = Int(random.next() % 4500)
        let isKept = tier.store(response(key), bytes: bytes(size))
        #expect(isKept == (size <= limit / 10), place)
        newest[key] = isKept ? size : nil
      case 5..<8:
        let found = tier.look(up: key)
        #expect(found.isEmpty || found.map(\.bytes.count) == [newest[key]], place)
      case 8:
        let held = tier.counts.entries
        let cleared = tier.clear(.prefix("k2"), now: 0)
        #expect(cleared.allSatisfy { $0.key.hasPrefix("k2") && newest[$0.key] != nil }, place)
        #expect(tier.counts.entries == held - cleared.count, place)
        newest = newest.filter { !$0.key.hasPrefix("k2") }
      default:
        limit = 20_000 + Int(random.next() % 3) * 10_000
        tier.setLimit(Int64(limit))
        newest = newest.filter { $0.value <= limit / 10 }
      }
      let held = (0..<30).flatMap { tier.peek(at: "k\($0)") }
      #expect(held.count == tier.counts.entries, place)
      #expect(held.reduce(0) { $0 + $1.bytes.count } == Int(tier.counts.bytes), place)
      #expect(held.reduce(0) { $0 + max($1.bytes.count, 512) } <= limit, place)
    }
  }
}
