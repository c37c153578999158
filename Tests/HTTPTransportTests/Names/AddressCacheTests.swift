import Platform
import Testing

@testable import HTTPTransport

@Suite struct AddressCacheTests {
  private let start = Instant.now
  private let answer = Resolver.Outcome.addresses([IPAddress("192.0.2.1")!])

  @Test(arguments: [(0, 5), (4, 5), (60, 60), (3600, 3600), (100_000, 3600)])
  func `addresses are stored for their time to live within bounds`(timeToLive: Int, kept: Int) {
    var cache = AddressCache()
    cache.insert(answer, for: "a", timeToLive: .seconds(timeToLive), now: start)
    #expect(cache.answer(for: "a", now: start + .seconds(kept) - .milliseconds(1)) == answer)
    #expect(cache.answer(for: "a", now: start + .seconds(kept)) == nil)
  }

  @Test func `a nonexistent name is stored for ten seconds`() {
    var cache = AddressCache()
    cache.insert(.noSuchName, for: "a", timeToLive: .seconds(3600), now: start)
    #expect(cache.answer(for: "a", now: start + .seconds(9)) == .noSuchName)
    #expect(cache.answer(for: "a", now: start + .seconds(10)) == nil)
  }

  @Test func `a later answer replaces an earlier one`() {
    var cache = AddressCache(maxNames: 4)
    cache.insert(.noSuchName, for: "a", timeToLive: .zero, now: start)
    cache.insert(answer, for: "b", timeToLive: .zero, now: start)
    cache.insert(answer, for: "a", timeToLive: .seconds(60), now: start)
    #expect(cache.answer(for: "a", now: start + .seconds(30)) == answer)
    #expect(cache.count == 2)
  }

  @Test func `the number of names is bounded, and names in use stay`() {
    var cache = AddressCache(maxNames: 100)
    cache.insert(answer, for: "popular", timeToLive: .seconds(60), now: start)
    for number in 0..<1000 {
      cache.insert(answer, for: "\(number)", timeToLive: .seconds(60), now: start)
      #expect(cache.count <= 100)
      #expect(cache.answer(for: "popular", now: start) == answer)
    }
    #expect(cache.answer(for: "0", now: start) == nil)
    #expect(cache.answer(for: "999", now: start) == answer)
    // At least half of the capacity is kept.
    #expect(cache.answer(for: "960", now: start) == answer)
  }
}
