import Foundation
import Testing
import Threads

@testable import ImageStore

/// Listings and sums of a read-only tier, compared with a simple model.
@Suite struct ListingTests {
  private let fixture = Fixture()

  /// More entries than two pages have room for, with many equal values.
  private func filledTier() async throws -> DiskTier {
    let tier = try await fixture.openTier(verify: .never)
    for number in 0..<1100 {
      fixture.advance(number % 7 == 0 ? 1 : 0)
      let host = "http://h\(number % 5).test\(number % 3 == 0 ? ":81" : "")"
      let draft = fixture.draft(
        "\(host)/\(number % 11 == 0 ? "x" : "")\(number)", variant: number % 13 == 0 ? "w=1" : "",
        format: number % 4 == 0 ? .png : .jpeg, expiresAt: fixture.now + (number % 2 == 0 ? -1 : 1000))
      let stored = try await tier.store([UInt8](repeating: 1, count: number % 17), as: draft)
      for _ in 0..<(number % 3) { await tier.markDelivered(stored.id, at: fixture.now) }
    }
    await tier.flushUses()
    try await tier.endTransaction()
    return tier
  }

  private func listed(
    of reader: DiskTier, _ filter: ClearFilter = .all, _ order: EntryOrder = .key, reversed: Bool = false
  ) async throws -> [CacheEntry] {
    let listing = EntryListing(of: reader, matching: filter, in: order, reversed: reversed, now: fixture.now)
    var entries: [CacheEntry] = []
    while let page = try await listing.nextPage() {
      try await reader.endTransaction()
      entries += page
    }
    return entries
  }

  @Test func `each order lists all entries, forwards and backwards`() async throws {
    let tier = try await filledTier()
    let reader = try await fixture.openTier(mode: .readOnly)
    let all = try await listed(of: reader)
    #expect(all.count == 1100)
    let keys = all.map { Array($0.key.utf8) }
    #expect(keys == keys.sorted { $0.lexicographicallyPrecedes($1) })
    let values: [(EntryOrder, (CacheEntry) -> Int)] = [
      (.size, { -Int($0.content.byteCount) }), (.age, { $0.storedAt }), (.used, { -($0.lastUse ?? 0) }),
      (.uses, { -$0.uses }),
    ]
    for (order, value) in values {
      let sorted = all.sorted { (value($0), $0.id) < (value($1), $1.id) }
      #expect(try await listed(of: reader, .all, order) == sorted, "\(order)")
      #expect(try await listed(of: reader, .all, order, reversed: true) == sorted.reversed(), "\(order)")
    }
    #expect(try await listed(of: reader, .all, .key, reversed: true) == all.reversed())
    await tier.close()
  }

  @Test func `each filter lists what clear would remove`() async throws {
    let tier = try await filledTier()
    let reader = try await fixture.openTier(mode: .readOnly)
    let all = try await listed(of: reader)
    let filters: [ClearFilter] = [
      .host("h1.test", port: nil), .host("h1.test", port: 81), .prefix("http://h2.test/x"), .prefix("http://h3"),
      .prefix("i"), .olderThan(seconds: 100), .expired, .key(all[7].key), .url(all[9].url, key: all[11].key),
      .every([.host("h4.test", port: nil), .expired]), .every([.prefix("http://h4.test/"), .olderThan(seconds: 60)]),
    ]
    for filter in filters {
      let expected = all.filter { entry in
        filter.matches(
          StoredResponse(
            key: entry.key, url: entry.url, requestTime: 0, responseTime: 0, storedAt: entry.storedAt,
            validatedAt: entry.validatedAt, expiresAt: entry.expiresAt, content: entry.content), now: fixture.now)
      }
      #expect(try await listed(of: reader, filter) == expected, "\(filter)")
      #expect(try await listed(of: reader, filter, reversed: true) == expected.reversed(), "\(filter)")
      #expect(
        try await listed(of: reader, filter, .age) == expected.sorted { ($0.storedAt, $0.id) < ($1.storedAt, $1.id) },
        "\(filter)")
    }
    await tier.close()
  }

  @Test func `sums by kind, format and host agree with the entries`() async throws {
    let tier = try await filledTier()
    let reader = try await fixture.openTier(mode: .readOnly)
    let summary = UsageSummary(of: reader, matching: .expired, now: fixture.now)
    while try await summary.step() { try await reader.endTransaction() }
    let all = try await listed(of: reader, .expired)
    let name: (UsageGroup.Kind, CacheEntry) -> String = { kind, entry in
      switch kind {
      case .kind: entry.variant.isEmpty ? "originals" : "variants"
      case .format: entry.content.format?.rawValue ?? "unknown"
      case .host: String(entry.url.dropFirst(7).prefix { $0 != "/" })
      }
    }
    for kind in UsageGroup.Kind.allCases {
      let groups = Dictionary(grouping: all) { name(kind, $0) }.map { name, entries in
        UsageGroup(kind: kind, name: name, sum: entries.reduce(into: EntrySum()) { $0 += $1.sum })
      }
      let sorted = groups.sorted { (-$0.sum.allocated, $0.name) < (-$1.sum.allocated, $1.name) }
      #expect(await summary.groups(of: kind) == sorted)
    }
    await tier.close()
  }

  @Test func `a listing goes on when a writer comes and goes meanwhile`() async throws {
    try await filledTier().close()
    let reader = try await fixture.openTier(mode: .readOnly)
    let before = try await listed(of: reader)
    let listing = EntryListing(of: reader, matching: .all, in: .key, reversed: false, now: fixture.now)
    var entries = try await listing.nextPage() ?? []
    try await reader.endTransaction()
    let writer = try await fixture.openTier()
    let removed = Set(before.suffix(10).map { $0.id })
    for entry in before.suffix(10) { _ = await writer.clear(.key(entry.key)) }
    await writer.close()
    while let page = try await listing.nextPage() {
      try await reader.endTransaction()
      entries += page
    }
    #expect(entries == before.filter { !removed.contains($0.id) })
  }

  @Test func `a damaged index is reported and not replaced`() async throws {
    try await filledTier().close()
    let path = fixture.directory + "/test/index.sqlite"
    let file = try FileSystem().openForUpdating(path, in: FileSystem.workingDirectory)
    // The second half of the file, with the rows.
    let size = try FileSystem().status(path).byteCount
    let garbage = [UInt8](repeating: 0xA5, count: 4096)
    for page in stride(from: size / 2 / 4096, to: size / 4096, by: 1) {
      #expect(pwrite(file, garbage, 4096, off_t(page * 4096)) == 4096)
    }
    closeFile(file)
    let reader = try await fixture.openTier(mode: .readOnly)
    await #expect(throws: StoreError.self) { try await listed(of: reader) }
    #expect(try FileSystem().status(path).byteCount == size)
    #expect(fixture.warnings.withLock { $0 }.isEmpty)
  }
}
