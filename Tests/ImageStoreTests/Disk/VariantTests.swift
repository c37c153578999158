import Foundation
import HTTPTypes
import Platform
import Testing
import Threads

@testable import ImageStore

/// Variants and their originals in both tiers, and decode metadata.
@Suite struct VariantTests {
  private func variant(of original: StoredResponse, _ name: String = "v1,w=1") -> StoredResponse {
    var variant = original
    variant.id = 0
    variant.variant = name
    variant.content.digest = []
    variant.metadata = DecodeMetadata(
      source: ImageDescription(
        ImageHeader(.jpeg, width: 3, frames: 34, orientation: 6), byteCount: original.content.byteCount,
        digest: original.content.digest))
    return variant
  }

  @Test func `decode metadata is stored across restarts`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let original = try await tier.store([1], as: fixture.draft("a"))
    var small = variant(of: original)
    small.metadata = DecodeMetadata(
      source: small.metadata?.source, placeholder: .init(thumbHash: [1, 2], color: 0xFFFFFF), isChecked: true)
    small = try await tier.store([2], as: small)
    await tier.close()
    let again = try await fixture.openTier()
    #expect(await again.look(up: "a", variant: "v1,w=1") == [small])
    #expect(await again.look(up: "a") == [original])
    var checked = original
    checked.metadata = DecodeMetadata(isChecked: true)
    await again.recordMetadata(of: checked)
    #expect(await again.look(up: "a") == [checked])
    // Another decode does not know these results and removes none of them.
    checked.metadata = DecodeMetadata(notes: [.damaged, .gainMap])
    await again.recordMetadata(of: checked)
    #expect(await again.look(up: "a").first?.metadata == DecodeMetadata(isChecked: true, notes: [.damaged, .gainMap]))
    let variant = await again.look(up: "a", variant: "v1,w=1").first?.metadata
    #expect(variant?.source?.header == ImageHeader(.jpeg, width: 3, frames: 34, orientation: 6))
  }

  @Test func `a new original removes variants of other content and keeps those of the same content`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let old = try await tier.store([1], as: fixture.draft("a"))
    _ = try await tier.store([10], as: variant(of: old))
    _ = try await tier.store([11], as: variant(of: old, "v1,w=2"))
    fixture.advance(5)
    let same = try await tier.store([1], as: fixture.draft("a"))
    let kept = await tier.look(up: "a", variant: "v1,w=1")
    #expect(kept.map(\.storedAt) == [same.storedAt])
    _ = try await tier.store([2], as: fixture.draft("a"))
    #expect(await tier.variants(of: "a").isEmpty)
    #expect(fixture.imageFiles.count == 1)
  }

  @Test func `originals with different varying fields have separate variants`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let one = try await tier.store([1], as: fixture.draft("a", varying: ["accept": "x"]))
    _ = try await tier.store([10], as: variant(of: one))
    _ = try await tier.store([2], as: fixture.draft("a", varying: ["accept": "y"]))
    #expect(await tier.variants(of: "a") == ["v1,w=1"])
  }

  @Test func `a variant of an original that has been replaced is refused`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let old = try await tier.store([1], as: fixture.draft("a"))
    let new = try await tier.store([2], as: fixture.draft("a"))
    await #expect { try await tier.store([10], as: variant(of: old)) } throws: {
      ($0 as? StoreError)?.kind == .outdated
    }
    _ = try await tier.store([10], as: variant(of: new))
    var again = fixture.draft("a")
    again.content.digest = new.content.digest
    await tier.remove(replacedBy: again)
    _ = try await tier.store([11], as: variant(of: new, "v1,w=2"))
    #expect(await tier.variants(of: "a") == ["v1,w=1", "v1,w=2"])
    await tier.remove(replacedBy: fixture.draft("a"))
    #expect(await tier.variants(of: "a").isEmpty, "of another content")
  }

  @Test func `a 304 for an original or a variant updates all of them`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let original = try await tier.store([1], as: fixture.draft("a"))
    var small = try await tier.store([10], as: variant(of: original))
    small.expiresAt += 100
    small.headers["etag"] = "new"
    await tier.update(small)
    let found = await tier.look(up: "a")
    #expect(found.map(\.expiresAt) == [small.expiresAt] && found[0].headers["etag"] == "new")
    #expect(found[0].content == original.content)
  }

  @Test func `the memory tier treats variants like the disk tier`() {
    var tier = MemoryTier(limit: 1 << 20)
    let fixture = Fixture()
    var original = fixture.draft("a")
    (original.id, original.content.digest) = (1, [1])
    var small = variant(of: original)
    (small.id, small.content.digest) = (2, [2])
    tier.store(original, bytes: [1])
    tier.store(small, bytes: [2])
    original.expiresAt += 7
    tier.update(original)
    #expect(tier.look(up: "a", variant: "v1,w=1").map(\.response.expiresAt) == [original.expiresAt])
    var next = fixture.draft("a")
    (next.id, next.content.digest) = (3, [3])
    tier.remove(replacedBy: next)
    #expect(tier.counts.entries == 0)
  }

  @Test func `an index of version 2 can be read, and a writer migrates it`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    var stored = try await tier.store([1], as: fixture.draft("a"))
    stored.isVerified = false
    await tier.close()
    let index = try Database(path: fixture.directory + "/test/index.sqlite", mode: .readWrite)
    try index.dropVersion6()
    try index.dropVersion4()
    try index.dropVersion3()
    try index.execute("PRAGMA user_version = 2")
    let reader = try await fixture.openTier(mode: .readOnly)
    #expect(await reader.look(up: "a") == [stored])
    await reader.close()
    let writer = try await fixture.openTier()
    let small = try await writer.store([10], as: variant(of: stored))
    #expect(await writer.look(up: "a", variant: "v1,w=1") == [small])
  }
}

extension VariantTests {
  @Test func `an index of version 6 loses its pins in the migration`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    _ = try await tier.store([1], as: fixture.draft("a"))
    await tier.close()
    let index = try Database(path: fixture.directory + "/test/index.sqlite", mode: .readWrite)
    try index.addPins()
    try index.execute("PRAGMA user_version = 6")
    let reader = try await fixture.openTier(mode: .readOnly)
    #expect(await reader.look(up: "a").count == 1)
    await reader.close()
    let writer = try await fixture.openTier()
    _ = try await writer.store([2], as: fixture.draft("b"))
    #expect(await writer.counts.entries == 2)
    #expect(await writer.clear(.olderThan(seconds: 0)).removed == 2)
    #expect(await writer.counts.bytes == 0)
    #expect(fixture.warnings.withLock { $0 }.isEmpty)
  }

  @Test func `an index of version 3 counts its variants after the migration`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let stored = try await tier.store([1], as: fixture.draft("a"))
    _ = try await tier.store([10], as: variant(of: stored))
    await tier.close()
    let index = try Database(path: fixture.directory + "/test/index.sqlite", mode: .readWrite)
    try index.dropVersion6()
    try index.dropVersion4()
    try index.execute("PRAGMA user_version = 3")
    let reader = try await fixture.openTier(mode: .readOnly)
    #expect(await reader.look(up: "a", variant: "v1,w=1").count == 1)
    await reader.close()
    let writer = try await fixture.openTier()
    _ = try await writer.store([2], as: fixture.draft("a"))
    #expect(await writer.look(up: "a", variant: "v1,w=1").isEmpty)
    #expect(await writer.counts.entries == 1)
    #expect(fixture.warnings.withLock { $0 }.isEmpty)
  }
}

@Suite struct PixelFolderTests {
  private func folder(_ fixture: Fixture, space: (Int64, Int64)? = nil) -> PixelFolder {
    var files = FileSystem()
    if let space { files.pretendedSpace = { space } }
    return PixelFolder(
      parent: fixture.directory + "/pixels", executor: fixture.executor, environment: fixture.environment(files))
  }

  private func fill(_ path: String) { _ = FileManager.default.createFile(atPath: path, contents: Data([1])) }
  private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

  @Test func `a folder that another user has created is not used`() throws {
    let path = Fixture().directory + "-pixels"
    #expect(!PixelFolder.isOfOther(path))
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(!PixelFolder.isOfOther(path))
    let other = geteuid() == 0 ? path : "/"
    if geteuid() == 0 { try #require(chown(path, 65_534, 65_534) == 0) }
    #expect(PixelFolder.isOfOther(other))
  }

  @Test func `regions are counted from their delivery to their release`() async throws {
    let fixture = Fixture()
    let pixels = folder(fixture)
    let path = try await pixels.reserve(byteCount: 100)
    fill(path)
    #expect(await pixels.counts == PixelFolder.Counts())
    #expect(await !pixels.release(path))
    await pixels.deliver(path, byteCount: 60)
    #expect(await pixels.counts == PixelFolder.Counts(regions: 1, bytes: 60))
    #expect(await pixels.release(path))
    #expect(!exists(path))
    #expect(await pixels.counts == PixelFolder.Counts())
  }

  @Test func `the next image gets an unused region, filled with zeros`() async throws {
    let fixture = Fixture()
    let pixels = folder(fixture, space: (1 << 40, 1 << 40))
    func delivered(_ count: Int) async throws -> String {
      let path = try await pixels.reserve(byteCount: Int64(count))
      try Data(repeating: 7, count: count).write(to: URL(filePath: path))
      await pixels.deliver(path, byteCount: Int64(count))
      return path
    }
    let path = try await delivered(600_000)
    #expect(await pixels.release(path, isUnused: true))
    #expect(await pixels.counts == PixelFolder.Counts())
    #expect(await !pixels.release(path))
    #expect(try Data(contentsOf: URL(filePath: path)) == Data(repeating: 0, count: 600_000))
    // Neither a larger nor a much smaller image gets it.
    let others = [try await pixels.reserve(byteCount: 599_999), try await pixels.reserve(byteCount: 2_400_004)]
    #expect(!others.contains(path))
    #expect(try await pixels.reserve(byteCount: 2_400_000) == path)
    #expect(try await pixels.reserve(byteCount: 2_400_000) != path)
    await pixels.deliver(path, byteCount: 600_000)
    #expect(await pixels.release(path))
    #expect(!exists(path))
  }

  @Test func `unused regions are deleted after a time, for new ones, and by close`() async throws {
    let fixture = Fixture()
    let pixels = folder(fixture, space: (1 << 40, 1 << 40))
    func unused(at time: Instant) async throws -> String {
      let path = try await pixels.reserve(byteCount: 2)
      fill(path)
      await pixels.deliver(path, byteCount: 1)
      #expect(await pixels.release(path, isUnused: true, now: time))
      return path
    }
    let start = Instant.now
    let path = try await unused(at: start)
    #expect(await !pixels.dropFree(now: start + .seconds(9)) && exists(path))
    #expect(await pixels.dropFree(now: start + .seconds(10)) && !exists(path))
    let second = try await unused(at: start)
    let large = try await pixels.reserve(byteCount: PixelFolder.budget)
    #expect(!exists(second))
    await pixels.drop(large)
    let third = try await unused(at: start)
    await pixels.close()
    #expect(!exists(third))
  }

  @Test func `unused regions give way if there is too little space`() async throws {
    let fixture = Fixture()
    var files = FileSystem()
    let place = Locked("")
    files.pretendedSpace = { FileManager.default.fileExists(atPath: place.withLock { $0 }) ? (0, 1000) : (1000, 1000) }
    let pixels = PixelFolder(
      parent: fixture.directory + "/pixels", executor: fixture.executor, environment: fixture.environment(files))
    let path = try await pixels.reserve(byteCount: 100)
    fill(path)
    await pixels.deliver(path, byteCount: 1)
    #expect(await pixels.release(path, isUnused: true))
    place.withLock { $0 = path }
    _ = try await pixels.reserve(byteCount: 400)
    #expect(!exists(path))
  }

  @Test func `a region larger than half of the free space is refused`() async throws {
    let fixture = Fixture()
    let pixels = folder(fixture, space: (1000, 1000))
    let path = try await pixels.reserve(byteCount: 400)
    await #expect(throws: StoreError.self) { try await pixels.reserve(byteCount: 501) }
    await pixels.drop(path)
    _ = try await pixels.reserve(byteCount: 500)
  }

  @Test func `the budget applies to all regions together`() async throws {
    let fixture = Fixture()
    let pixels = folder(fixture, space: (1 << 40, 1 << 40))
    _ = try await pixels.reserve(byteCount: PixelFolder.budget - 1)
    await #expect(throws: StoreError.self) { try await pixels.reserve(byteCount: 2) }
    _ = try await pixels.reserve(byteCount: 1)
  }

  @Test func `regions are deleted by close, and not while their process is alive`() async throws {
    let fixture = Fixture()
    let first = folder(fixture)
    let path = try await first.reserve(byteCount: 1)
    fill(path)
    await first.deliver(path, byteCount: 1)
    let second = folder(fixture)
    await second.removeDead()
    #expect(exists(path))
    await first.close()
    #expect(!exists(path))
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.directory + "/pixels").isEmpty)
  }
}
