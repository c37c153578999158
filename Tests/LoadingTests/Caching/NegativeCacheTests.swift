import HTTPTypes
import Platform
import Testing
import Text

@testable import Loading

struct NegativeCacheTests {
  private let now = Instant.now

  private func subject(_ url: String, _ partition: String = "") -> RequestIdentity {
    RequestIdentity(url: ExactString(url), partition: partition, headers: [:])
  }

  private func remember(
    _ kind: LoadError.Kind = .http, of key: String, _ partition: String = "", maxBytes: Int64 = 100,
    in memory: inout NegativeCache, at now: Instant
  ) {
    memory.remember(LoadError(kind, "no"), of: subject(key, partition), maxBytes: maxBytes, now: now)
  }

  private func kind(
    of key: String, _ partition: String = "", in memory: NegativeCache, acceptsAnything: Bool = false,
    maxBytes: Int64 = 100, at now: Instant
  ) -> LoadError.Kind? {
    memory.failure(of: subject(key, partition), acceptsAnything: acceptsAnything, maxBytes: maxBytes, now: now)?.error
      .kind
  }

  @Test func `a failure is remembered for exactly its time to live`() {
    var memory = NegativeCache()
    memory.timeToLive = .seconds(10)
    remember(of: "x", in: &memory, at: now)
    #expect(kind(of: "x", in: memory, at: now) == .http)
    #expect(kind(of: "x", in: memory, at: now + .milliseconds(9_999)) == .http)
    #expect(kind(of: "x", in: memory, at: now + .seconds(10)) == nil)
    #expect(kind(of: "y", in: memory, at: now) == nil)
  }

  @Test func `a failure applies only to the credentials that it occurred with`() {
    var memory = NegativeCache()
    remember(of: "x", "alice", in: &memory, at: now)
    #expect(kind(of: "x", "alice", in: memory, at: now) == .http)
    #expect(kind(of: "x", "bob", in: memory, at: now) == nil)
    #expect(kind(of: "x", in: memory, at: now) == nil)
  }

  @Test func `an entry is removed when it expires, and the head of its response is not kept at all`() {
    var memory = NegativeCache()
    memory.timeToLive = .seconds(10)
    var error = LoadError(.http, "no")
    error.response = LoadedImage.Response(status: 404, headers: ["server": "long"])
    memory.remember(error, of: subject("x"), maxBytes: 100, now: now)
    let failure = memory.failure(of: subject("x"), acceptsAnything: false, maxBytes: 100, now: now)
    #expect(failure?.error.kind == .http && failure?.error.response == nil)
    memory.forgetOld(now: now + .seconds(9))
    #expect(memory.count == 1)
    memory.forgetOld(now: now + .seconds(10))
    #expect(memory.count == 0 && memory.orderCount == 0)
  }

  @Test func `a time to live of zero disables the cache`() {
    var memory = NegativeCache()
    memory.timeToLive = .zero
    remember(of: "x", in: &memory, at: now)
    #expect(memory.count == 0)
  }

  @Test func `notAnImage does not apply to requests that accept any content`() {
    var memory = NegativeCache()
    remember(.notAnImage, of: "x", in: &memory, at: now)
    #expect(kind(of: "x", in: memory, at: now) == .notAnImage)
    #expect(kind(of: "x", in: memory, acceptsAnything: true, at: now) == nil)
    remember(.http, of: "y", in: &memory, at: now)
    #expect(kind(of: "y", in: memory, acceptsAnything: true, at: now) == .http)
  }

  @Test func `tooLarge does not apply to requests with a larger maximum`() {
    var memory = NegativeCache()
    remember(.tooLarge, of: "x", maxBytes: 100, in: &memory, at: now)
    #expect(kind(of: "x", in: memory, maxBytes: 100, at: now) == .tooLarge)
    #expect(kind(of: "x", in: memory, maxBytes: 99, at: now) == .tooLarge)
    #expect(kind(of: "x", in: memory, maxBytes: 101, at: now) == nil)
  }

  @Test func `another failure of the same image restarts its time`() {
    var memory = NegativeCache()
    memory.timeToLive = .seconds(10)
    remember(of: "x", in: &memory, at: now)
    remember(.redirects, of: "x", in: &memory, at: now + .seconds(6))
    // The first entry has expired and is removed.
    remember(of: "y", in: &memory, at: now + .seconds(12))
    #expect(kind(of: "x", in: memory, at: now + .seconds(12)) == .redirects)
    #expect(memory.count == 2)
  }

  @Test func `expired entries are removed when another is added`() {
    var memory = NegativeCache()
    for number in 0..<100 { remember(of: "\(number)", in: &memory, at: now) }
    remember(of: "x", in: &memory, at: now + .seconds(61))
    #expect(memory.count == 1)
    #expect(memory.orderCount == 1)
  }

  @Test func `one entry or all can be removed`() {
    var memory = NegativeCache()
    for key in ["a", "b", "c", "d"] { remember(of: key, in: &memory, at: now) }
    memory.forget(subject("a"))
    #expect(kind(of: "a", in: memory, at: now) == nil)
    #expect(memory.count == 3)
    #expect(memory.forgetAll() == 3)
    #expect(memory.forgetAll() == 0)
    #expect(memory.orderCount == 0)
  }

  @Test func `beyond the capacity the oldest entries are removed`() {
    var memory = NegativeCache()
    for number in 0..<NegativeCache.capacity + 10 { remember(of: "\(number)", in: &memory, at: now) }
    #expect(memory.count == NegativeCache.capacity)
    #expect(kind(of: "9", in: memory, at: now) == nil)
    #expect(kind(of: "10", in: memory, at: now) == .http)
  }

  @Test func `an image that fails repeatedly takes one entry`() {
    var memory = NegativeCache()
    memory.timeToLive = .seconds(86_400)
    for number in 0..<10_000 { remember(of: "x", in: &memory, at: now + .milliseconds(number)) }
    #expect(memory.count == 1)
    #expect(memory.orderCount < 100)
    #expect(kind(of: "x", in: memory, at: now + .seconds(100)) == .http)
  }
}

struct LoadIndexTests {
  private func label(url: String? = nil, group: String? = nil, slot: String? = nil) -> LoadIndex.Labels {
    LoadIndex.Labels(url: url, group: group, slot: slot)
  }

  @Test func `loads are found by each of their labels, in the order of submission`() {
    var index = LoadIndex()
    for number in [Int32(3), 1, 2] { index.insert(LoadID(number), label(url: "u", group: "g\(number % 2)")) }
    index.insert(LoadID(4), label(slot: "s"))
    #expect(index.loads(url: "u") == [1, 2, 3].map { LoadID($0) })
    #expect(index.loads(group: "g1") == [1, 3].map { LoadID($0) })
    #expect(index.loads(slot: "s") == [LoadID(4)])
    #expect(index.loads(url: "s").isEmpty)
    #expect(index.loads(group: "u").isEmpty)
    #expect(index.loads(slot: "g1").isEmpty)
  }

  @Test func `a removed load is found by none of its labels`() {
    var index = LoadIndex()
    let all = label(url: "u", group: "g", slot: "s")
    index.insert(LoadID(1), all)
    index.insert(LoadID(2), all)
    index.remove(LoadID(1), all)
    index.remove(LoadID(9), all)
    #expect(index.loads(url: "u") == [LoadID(2)])
    index.remove(LoadID(2), all)
    #expect(index.loads(url: "u").isEmpty && index.loads(group: "g").isEmpty && index.loads(slot: "s").isEmpty)
  }
}

struct RetryAfterTests {
  private let now = 1_700_000_000  // Tue, 14 Nov 2023 22:13:20 GMT

  @Test(
    arguments: [
      ("0", 0), ("120", 120), ("007", 7), ("99999999999999999999999999", 365 * 86_400), ("31536001", 365 * 86_400),
      ("Tue, 14 Nov 2023 22:14:20 GMT", 60), ("Tuesday, 14-Nov-23 22:14:20 GMT", 60), ("Tue Nov 14 22:14:20 2023", 60),
      ("Tue, 14 Nov 2023 22:13:19 GMT", 0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
    ])
  func `seconds and dates are parsed`(value: String, seconds: Int) {
    #expect(RetryAfter.parse(value, now: now) == .seconds(seconds))
  }

  @Test(arguments: [nil, "", "-1", "+5", "1.5", "soon", "5, 6", "5s", "٣", "Tue, 14 Nov"])
  func `other values are ignored`(value: String?) {
    #expect(RetryAfter.parse(value, now: now) == nil)
  }
}
