import Foundation
import HTTPTypes
import Testing
import Threads

@testable import ImageStore

@Suite struct InvalidationTests {
  private static let urls = [
    "https://a.test/x/1.jpg", "https://a.test:8443/x/2.jpg", "http://A.test/y/3.jpg", "https://user@b.test/x/4.jpg",
    "https://[::1]:81/5.jpg", "data:image/png;base64,AA==", "http://b\u{fc}cher.test/7.jpg",
  ]

  static let cases: [(ClearFilter, [Int])] = [
    (.all, [0, 1, 2, 3, 4, 5, 6]), (.url(urls[1], key: urls[1]), [1]),
    (.url("https://a.test/", key: "https://a.test/"), []),
    (.url(urls[1], key: urls[3]), [1, 3]), (.key(urls[2]), [2]),
    (.prefix("https://a.test"), [0, 1]), (.prefix("http"), [0, 1, 2, 3, 4, 6]), (.prefix(""), [0, 1, 2, 3, 4, 5, 6]),
    (.host("a.test", port: nil), [0, 1, 2]), (.host("A.TEST", port: 443), [0]), (.host("a.test", port: 80), [2]),
    (.host("b.test", port: nil), [3]), (.host("::1", port: 81), [4]), (.host("[::1]", port: nil), [4]),
    (.host("test", port: nil), []), (.host("xn--bcher-kva.test", port: nil), [6]),
    (.olderThan(seconds: 45), [0, 1, 2]), (.olderThan(seconds: 100), []),
    (.expired, [0, 2, 4]), (.every([.host("a.test", port: nil), .expired]), [0, 2]),
    (.every([.url(urls[1], key: urls[3]), .prefix("https://u"), .olderThan(seconds: 0)]), [3]),
  ]

  @Test(arguments: cases) func `clear removes the responses that match the filter in both tiers`(
    filter: ClearFilter, expected: [Int]
  ) async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    var memory = MemoryTier(limit: 1 << 20)
    for (number, url) in Self.urls.enumerated() {
      let draft = fixture.draft(url, expiresAt: fixture.now + (number % 2 == 0 ? 20 : 1000))
      memory.store(try await tier.store([1], as: draft), bytes: [1])
      fixture.advance(10)
    }
    let inMemory = memory.clear(filter, now: fixture.now)
    let onDisk = await tier.clear(filter)
    #expect(onDisk.removed == expected.count)
    #expect(onDisk.bytes == Int64(4096 * expected.count))
    #expect(inMemory.map(\.url).sorted() == expected.map { Self.urls[$0] }.sorted())
    for (number, url) in Self.urls.enumerated() {
      #expect(await tier.look(up: url).isEmpty == expected.contains(number))
    }
    #expect(fixture.imageFiles.count == Self.urls.count - expected.count)
  }

  @Test(arguments: [
    ClearFilter.olderThan(seconds: 5), .expired, .key("a"), .url("a", key: "b"), .prefix("a"), .all,
    .every([.key("a"), .expired]),
  ])
  func `clear removes variants with their original`(filter: ClearFilter) async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    var memory = MemoryTier(limit: 1 << 20)
    memory.store(try await tier.store([1], as: fixture.draft("a", expiresAt: fixture.now + 5)), bytes: [1])
    fixture.advance(10)
    memory.store(try await tier.store([2], as: fixture.draft("a", variant: "w=1")), bytes: [2])
    #expect(await tier.clear(filter).removed == 2)
    #expect(fixture.imageFiles.isEmpty)
    #expect(memory.clear(filter, now: fixture.now).count == 2)
  }

  @Test func `clear counts a response in two tiers once, and one that only the other tier had as well`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let both = try await tier.store(bytes(10), as: fixture.draft("a"))
    var gone = try await tier.store(bytes(10), as: fixture.draft("b"))
    await tier.remove(replacedBy: fixture.draft("b"))
    var never = fixture.draft("c")
    never.content.byteCount = 30
    gone.content.byteCount = 20
    #expect(await tier.clear(.all, counting: [both, gone, never]) == DiskTier.Cleared(removed: 3, bytes: 4096 + 50))
  }

  @Test func `the row of a file delivered in the last 60 s is deleted at once, and the file when they end`()
    async throws
  {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let stored = try await tier.store([1], as: fixture.draft("a"))
    await tier.markDelivered(stored.id, at: fixture.now)
    #expect(await tier.clear(.all).removed == 1)
    #expect(await tier.look(up: "a").isEmpty)
    #expect(fixture.imageFiles == [stored.file])
    fixture.advance(61)
    _ = await tier.runMaintenance()
    #expect(fixture.imageFiles.isEmpty)
    #expect(await tier.counts.bytes == 0)
  }

  @Test func `one clear removes more than a thousand responses`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    for number in 0..<1300 { _ = try await tier.store([], as: fixture.draft("\(number)")) }
    #expect(await tier.clear(.all).removed == 1300)
    #expect(fixture.imageFiles.isEmpty)
  }

  @Test func `the index releases the space of deleted rows, also while peers have it open`() async throws {
    let fixture = Fixture()
    let first = try await fixture.openTier()
    let kept = try await first.store([1], as: fixture.draft("kept"))
    for number in 0..<200 {
      var draft = fixture.draft("gone/\(number)")
      draft.headers.append("x-long", String(repeating: "a", count: 8000))
      _ = try await first.store([], as: draft)
    }
    await first.close()
    #expect(try fixture.indexSize > 3 << 19)
    let (tier, other) = (try await fixture.openTier(), try await fixture.openTier())
    #expect(await tier.look(up: "gone/1").count == 1)
    await tier.commitNow()
    #expect(await other.clear(.prefix("gone/")).removed == 200)
    #expect(try fixture.indexSize < 1 << 18)
    #expect(await tier.look(up: "kept").map(\.id) == [kept.id])
    _ = try await tier.store([2], as: fixture.draft("new"))
    await tier.commitNow()
    #expect(await other.look(up: "kept").map(\.id) == [kept.id])
    #expect(await other.look(up: "new").count == 1)
    #expect(fixture.warnings.withLock { $0 } == [])
  }

  @Test func `the end of a prefix is the next text in byte order`() {
    #expect(ClearFilter.successor(of: "ab") == "ac")
    #expect(ClearFilter.successor(of: "a\u{10FFFF}") == "b")
    #expect(ClearFilter.successor(of: "a\u{D7FF}") == "a\u{E000}")
    #expect(ClearFilter.successor(of: "\u{10FFFF}") == nil)
    #expect(ClearFilter.successor(of: "") == nil)
  }

  @Test func `each filter and the choice of rows to evict use an SQL index`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    _ = try await tier.store([1], as: fixture.draft("a"))
    let filters: [ClearFilter] = [
      .url("a", key: "b"), .key("a"), .prefix("a"), .host("a", port: nil), .host("a", port: 1), .olderThan(seconds: 1),
      .expired,
    ]
    for filter in filters {
      let plan = await tier.plan("SELECT * FROM responses WHERE \(filter.condition(now: 0).sql)")
      #expect(plan.contains("SEARCH responses USING INDEX"), "\(filter): \(plan)")
    }
    let byURL = await tier.plan("SELECT * FROM responses WHERE \(ClearFilter.url("a", key: "b").condition(now: 0).sql)")
    #expect(byURL.contains("responses_by_url") && byURL.contains("responses_by_key"), "\(byURL)")
    let plan = await tier.plan(
      "SELECT id FROM responses WHERE used_at > 1 ORDER BY used_at, id LIMIT 16")
    #expect(plan.contains("SEARCH responses USING COVERING INDEX responses_by_use (used_at>?"), "\(plan)")
    #expect(!plan.contains("TEMP B-TREE"), "\(plan)")
  }
}

extension DiskTier {
  func plan(_ sql: String) -> String {
    let lines = try? session.withIndex { index throws(SQLiteError) in
      try index.database.prepare("EXPLAIN QUERY PLAN \(sql)").rows { $0.text(3) }
    }
    return lines?.joined(separator: "; ") ?? ""
  }
}
