import Foundation
import HTTPTypes
import Testing
import Threads

@testable import ImageStore

@Suite struct PinTests {
  private let limit: Int64 = 1 << 30

  /// Stores images of one block each, oldest first.
  private func fill(_ tier: DiskTier, _ keys: [String], _ fixture: Fixture) async throws {
    for key in keys {
      _ = try await tier.store([1], as: fixture.draft(key))
      fixture.advance(1)
      _ = await tier.runMaintenance()
    }
  }

  private func stored(_ keys: [String], in tier: DiskTier) async -> [String] {
    var found: [String] = []
    for key in keys where await !tier.look(up: key).isEmpty { found.append(key) }
    return found
  }

  @Test func `a pinned image is not evicted, and its bytes count`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier(limit: 10 * 4096)
    try await fill(tier, (0..<10).map { "k\($0)" }, fixture)
    let result = try await tier.pin(.key("k0"), limit: limit)
    #expect(result == .init(matching: 1, added: 1, totals: PinTotals(entries: 1, bytes: 4096)))
    try await fill(tier, (10..<30).map { "k\($0)" }, fixture)
    #expect(await tier.look(up: "k0").count == 1)
    #expect(await tier.counts.pinned == PinTotals(entries: 1, bytes: 4096))
    #expect(await tier.counts.bytes == 10 * 4096)
    #expect(try await tier.unpin(.key("k0")) == 1)
    try await fill(tier, ["more"], fixture)
    #expect(await tier.look(up: "k0").isEmpty)
    #expect(await tier.counts.pinned == PinTotals())
  }

  @Test func `a worker honours the pins and unpins of another worker at once`() async throws {
    let fixture = Fixture()
    let worker = try await fixture.openTier(limit: 10 * 4096)
    try await fill(worker, (0..<10).map { "k\($0)" }, fixture)
    await worker.commitNow()
    let command = try await fixture.openTier(limit: 10 * 4096)
    #expect(try await command.pin(.prefix("k0"), limit: limit).added == 1)
    try await fill(worker, (10..<30).map { "k\($0)" }, fixture)
    #expect(await worker.look(up: "k0").count == 1)
    await worker.commitNow()
    #expect(try await command.unpin(.all) == 1)
    try await fill(worker, (30..<40).map { "k\($0)" }, fixture)
    #expect(await worker.look(up: "k0").isEmpty)
  }

  @Test func `pins that would use more than 90 % of the limit are refused as a whole`() async throws {
    let fixture = Fixture()
    let limit: Int64 = 100 * 4096
    let tier = try await fixture.openTier(limit: limit)
    let keys = (0..<100).map { "k\($0 + 100)" }
    try await fill(tier, keys, fixture)
    for key in keys.prefix(90) { _ = try await tier.pin(.key(key), limit: limit) }
    let again = try await tier.pin(.key(keys[0]), limit: limit)
    #expect(again == .init(matching: 1, added: 0, totals: PinTotals(entries: 90, bytes: 368_640)))
    let error = await #expect(throws: StoreError.self) { _ = try await tier.pin(.prefix("k19"), limit: limit) }
    #expect(error?.kind == .overLimit)
    #expect(error?.message.contains("more than 90 % of the disk limit of 409600 bytes") == true)
    #expect(await tier.counts.pinned.entries == 90)
  }

  @Test func `pinned images are evicted only if they alone exceed the limit, least recently used first`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier(limit: 100 * 4096)
    let keys = (0..<10).map { "k\($0)" }
    try await fill(tier, keys, fixture)
    _ = try await tier.pin(.prefix("k"), limit: limit)
    try await fill(tier, ["a", "b"], fixture)
    fixture.advance(100)
    await tier.setLimit(12 * 4096)
    #expect(await tier.counts.entries == 12)
    await tier.setLimit(10 * 4096)
    #expect(await stored(keys + ["a", "b"], in: tier) == keys)
    await #expect(throws: StoreError.self) { try await tier.store([1], as: fixture.draft("c")) }
    await tier.setLimit(4 * 4096)
    #expect(await stored(keys, in: tier) == ["k6", "k7", "k8", "k9"])
  }

  @Test func `a pin stays when its image is replaced, damaged or revalidated, and with a variant made again`()
    async throws
  {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let first = try await tier.store([1], as: fixture.draft("a"))
    var variant = fixture.draft("a", variant: "v1,w=1")
    variant.metadata = DecodeMetadata(
      source: .init(digest: first.digest, byteCount: 1, format: "jpeg", width: nil, height: nil))
    _ = try await tier.store([2], as: variant)
    #expect(try await tier.pin(.key("a"), limit: limit).added == 2)
    let second = try await tier.store([3], as: fixture.draft("a"))
    #expect(await tier.counts.pinned.entries == 1, "the variant of the old image is removed")
    variant.metadata = DecodeMetadata(
      source: .init(digest: second.digest, byteCount: 1, format: "jpeg", width: nil, height: nil))
    _ = try await tier.store([4], as: variant)
    #expect(await tier.counts.pinned.entries == 2)
    await tier.update(second)
    #expect(await tier.counts.pinned.entries == 2)
    try FileManager.default.removeItem(atPath: tier.absolutePath(of: second))
    #expect(await !tier.check(second))
    #expect(await tier.counts.pinned.entries == 1)
    _ = try await tier.store([3], as: fixture.draft("a"))
    #expect(await tier.counts.pinned.entries == 2)
    await tier.close()
    let next = try await fixture.openTier()
    #expect(await next.counts.pinned == PinTotals(entries: 2, bytes: 8192))
  }

  @Test func `a clear removes pinned images with their pins, unless it depends on time`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    for number in 0..<4 {
      _ = try await tier.store([1], as: fixture.draft("http://h\(number)/", expiresAt: fixture.now))
    }
    _ = try await tier.pin(.key("http://h0/"), limit: limit)
    _ = try await tier.pin(.host("h1", port: 80), limit: limit)
    #expect(await tier.clear(.expired).removed == 2)
    #expect(await tier.clear(.olderThan(seconds: 0)).removed == 0)
    #expect(await tier.counts.pinned.entries == 2)
    #expect(await tier.clear(.host("h1", port: nil)).removed == 1)
    #expect(await tier.clear(.url("http://h0/", key: "http://h0/")).removed == 1)
    #expect(await tier.counts.pinned == PinTotals())
    for number in 0..<2 { _ = try await tier.store([1], as: fixture.draft("http://h\(number)/")) }
    #expect(await tier.counts.pinned == PinTotals(), "the pins have ended")
  }

  @Test func `unpin removes the pin of an image that is not stored any more`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let stored = try await tier.store([1], as: fixture.draft("http://h/a"))
    _ = try await tier.pin(.all, limit: limit)
    try FileManager.default.removeItem(atPath: tier.absolutePath(of: stored))
    #expect(await !tier.check(stored))
    #expect(try await tier.unpin(.expired) == 0)
    #expect(try await tier.unpin(.host("h", port: nil)) == 0)
    _ = try await tier.store([1], as: fixture.draft("http://h/a"))
    #expect(await tier.counts.pinned.entries == 0)
  }

  @Test func `filters by time pin and unpin what matches them`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    _ = try await tier.store([1], as: fixture.draft("old", expiresAt: fixture.now + 10))
    fixture.advance(20)
    _ = try await tier.store([1], as: fixture.draft("new"))
    #expect(try await tier.pin(.expired, limit: limit).added == 1)
    #expect(try await tier.pin(.olderThan(seconds: 0), limit: limit).added == 1)
    #expect(try await tier.unpin(.expired) == 1)
    #expect(try await tier.unpin(.all) == 1)
  }

  @Test func `the index tells the limit of the worker, and not that of another program`() async throws {
    let fixture = Fixture()
    let worker = try await fixture.openTier(limit: 50 * 4096)
    _ = await worker.counts
    _ = await worker.runMaintenance()
    await worker.commitNow()
    let command = fixture.makeTier(limit: .max, publishesLimit: false)
    try await command.open()
    #expect(try await command.publishedLimit() == 50 * 4096)
    await command.setLimit(60 * 4096)
    #expect(try await command.publishedLimit() == 50 * 4096)
    await command.commitNow()
    await worker.setLimit(40 * 4096)
    await worker.commitNow()
    #expect(try await command.publishedLimit() == 40 * 4096)
  }

  @Test func `an index of version 4 can be read, and a writer migrates it`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier(limit: 4 * 4096)
    try await fill(tier, ["a", "b", "c", "d"], fixture)
    await tier.close()
    let index = try Database(path: fixture.directory + "/test/index.sqlite", mode: .readWrite)
    try index.dropVersion6()
    try index.dropVersion5()
    try index.execute("PRAGMA user_version = 4")
    let reader = try await fixture.openTier(mode: .readOnly)
    #expect(await reader.look(up: "a").count == 1)
    #expect(await reader.counts.pinned == PinTotals())
    await reader.close()
    let writer = try await fixture.openTier(limit: 4 * 4096)
    #expect(try await writer.pin(.key("a"), limit: limit).added == 1)
    try await fill(writer, ["e", "f"], fixture)
    #expect(await stored(["a", "b", "c", "d", "e", "f"], in: writer) == ["a", "d", "e", "f"])
    #expect(await writer.clear(.expired).removed == 0)
    #expect(fixture.warnings.withLock { $0 }.isEmpty)
  }
}
