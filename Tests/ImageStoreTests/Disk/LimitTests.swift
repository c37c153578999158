import Foundation
import Platform
import Testing
import Threads

@testable import ImageStore

@Suite struct LimitTests {
  @Test func `the least recently used image is evicted first`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier(limit: 3 * 4096)
    var stored: [StoredResponse] = []
    for key in ["a", "b", "c"] {
      stored.append(try await tier.store([1], as: fixture.draft(key)))
      fixture.advance(1)
    }
    await tier.markDelivered(stored[0].id, at: fixture.now)
    fixture.advance(100)
    _ = try await tier.store([1], as: fixture.draft("d"))
    #expect(await tier.look(up: "a").count == 1)
    #expect(await tier.look(up: "b").isEmpty)
    #expect(
      await tier.counts == DiskTier.Counts(entries: 3, bytes: 3 * 4096, limit: 3 * 4096, evicted: .init(limit: 1)))
    #expect(fixture.bytesOnDisk == 3 * 4096)
  }

  @Test func `an image delivered in the last 60 s is not evicted and may exceed the limit`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier(limit: 2 * 4096)
    for key in ["a", "b", "c"] { _ = try await tier.store([1], as: fixture.draft(key), delivered: true) }
    #expect(await tier.counts.bytes == 3 * 4096)
    let error = await #expect(throws: StoreError.self) { try await tier.store([1], as: fixture.draft("d")) }
    #expect(error?.kind == .overLimit)
    fixture.advance(60)
    await tier.trim()
    #expect(await tier.counts.entries == 3)
    fixture.advance(1)
    _ = await tier.runMaintenance()
    #expect(await tier.counts.entries == 2)
    #expect(await tier.look(up: "a").isEmpty)
  }

  @Test func `maintenance requests a wake-up while the tier exceeds its limit`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier(limit: 4096)
    for key in ["a", "b"] { _ = try await tier.store([1], as: fixture.draft(key), delivered: true) }
    await tier.sweepAll()
    await tier.commitNow()
    let before = Instant.now
    let wake = await tier.runMaintenance()
    #expect(wake.map { before.duration(to: $0) > .seconds(50) } == true)
  }

  @Test(arguments: [8193, 1 << 61, .max - 4095, .max] as [Int64], [8192, 1 << 60] as [Int64])
  func `a reservation larger than the limit is refused and evicts nothing`(expected: Int64, limit: Int64)
    async throws
  {
    if expected <= limit { return }
    let fixture = Fixture()
    let tier = try await fixture.openTier(limit: limit)
    _ = try await tier.store([1], as: fixture.draft("a"))
    let error = await #expect(throws: StoreError.self) { try await tier.makeSpool(expected: expected) }
    #expect(error?.kind == .overLimit)
    #expect(await tier.look(up: "a").count == 1)
  }

  @Test(arguments: [(8192, 4096), (81_920, 8192), (122_879, 8192)])
  func `a body larger than a tenth of the limit and than one block is refused and evicts nothing`(
    limit: Int64, maxBytes: Int
  ) async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier(limit: limit)
    for number in 0..<limit / 4096 - 2 { _ = try await tier.store([1], as: fixture.draft("\(number)")) }
    let before = await tier.counts.entries
    let error = await #expect(throws: StoreError.self) {
      try await tier.store(bytes(maxBytes + 1), as: fixture.draft("large"), delivered: true)
    }
    #expect(error?.kind == .overLimit)
    let spool = try await tier.makeSpool()
    try await spool.append(bytes(maxBytes))
    await #expect(throws: StoreError.self) { try await spool.append([1]) }
    await #expect(throws: StoreError.self) { try await tier.makeSpool(expected: Int64(maxBytes) + 1) }
    #expect(await tier.counts.entries == before)
    _ = try await tier.store(bytes(maxBytes), as: fixture.draft("large"))
    #expect(await tier.look(up: "large").count == 1)
  }

  @Test func `a lower limit takes effect at once`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    for number in 0..<100 { _ = try await tier.store([1], as: fixture.draft("\(number)")) }
    await tier.setLimit(10 * 4096)
    #expect(fixture.bytesOnDisk == 10 * 4096)
    #expect(await tier.counts.evicted == EvictionStatistics(limit: 90))
  }

  @Test func `the tier shrinks by the bytes that are missing from the minimum of free space`() async throws {
    let free = Locked<Int64>(1000 * 4096)
    var files = FileSystem()
    files.pretendedSpace = { (free.withLock { $0 }, 10_000 * 4096) }
    let fixture = Fixture()
    let tier = try await fixture.openTier(minFree: 0.05, files: files)
    for number in 0..<20 { _ = try await tier.store([1], as: fixture.draft("\(number)")) }
    #expect(await tier.counts.entries == 20)
    free.withLock { $0 = 492 * 4096 }
    fixture.advance(10)
    _ = try await tier.store([1], as: fixture.draft("more"))
    #expect(await tier.counts.entries == 12)
    free.withLock { $0 = 1000 * 4096 }
    fixture.advance(10)
    _ = try await tier.store([1], as: fixture.draft("again"))
    #expect(await tier.counts.entries == 13)
    #expect(await tier.counts.evicted == EvictionStatistics(freeSpace: 9))
  }

  @Test func `rapid stores never fill a small file system beyond the minimum of free space`() async throws {
    let fixture = Fixture()
    let minFree = Locked(Int64.max)
    var files = FileSystem()
    files.pretendedSpace = { [unowned fixture] in (100 * 4096 - fixture.bytesOnDisk, 100 * 4096) }
    let tier = try await fixture.openTier(minFree: 0.05, files: files)
    for number in 0..<200 {
      _ = try await tier.store([1], as: fixture.draft("\(number)"))
      if number % 10 == 0 { minFree.withLock { $0 = min($0, 100 * 4096 - fixture.bytesOnDisk) } }
    }
    #expect(minFree.withLock { $0 } == 5 * 4096)
    #expect(await tier.counts.entries == 95)
  }

  @Test func `the tier shrinks without a store if other programs use the free space`() async throws {
    let fixture = Fixture()
    let space = Locked<Int64>(1000 * 4096)
    var files = FileSystem()
    files.pretendedSpace = { [unowned fixture] in (space.withLock { $0 } - fixture.bytesOnDisk, 10_000 * 4096) }
    let tier = try await fixture.openTier(minFree: 0.05, files: files)
    for number in 0..<20 { _ = try await tier.store([1], as: fixture.draft("\(number)")) }
    space.withLock { $0 = 515 * 4096 }
    fixture.advance(10)
    _ = await tier.runMaintenance()
    #expect(await tier.counts.entries == 15)
    #expect(fixture.bytesOnDisk == 15 * 4096)
  }

  @Test func `evictions for a full disk are counted as such`() async throws {
    let full = Locked(false)
    let files = FileSystem { operation in
      full.withLock { full in
        defer { if operation == .write { full = false } }
        return operation == .write && full ? ENOSPC : nil
      }
    }
    let fixture = Fixture()
    let tier = try await fixture.openTier(files: files)
    _ = try await tier.store([1], as: fixture.draft("a"))
    full.withLock { $0 = true }
    let stored = try await tier.store([2], as: fixture.draft("b"))
    #expect(try await tier.read(stored) == [2])
    #expect(await tier.counts.evicted == EvictionStatistics(diskFull: 1))
  }

  @Test func `eviction at the limit frees at most 1 % of the limit more than needed`()
    async throws
  {
    let fixture = Fixture()
    let tier = try await fixture.openTier(limit: 400 * 4096)
    for number in 0..<400 { _ = try await tier.store([1], as: fixture.draft("\(number)")) }
    #expect(await tier.counts.entries == 400)
    _ = try await tier.store([1], as: fixture.draft("more"))
    #expect(await tier.counts.entries == 396)
    for number in 0..<4 { _ = try await tier.store([1], as: fixture.draft("more \(number)")) }
    #expect(await tier.counts.evicted == EvictionStatistics(limit: 5))
  }

  @Test func `eviction finds other rows behind retained ones of the same second`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier(limit: 100 * 4096)
    for number in 0..<50 { _ = try await tier.store([1], as: fixture.draft("a\(number)"), delivered: true) }
    for number in 0..<50 { _ = try await tier.store([1], as: fixture.draft("b\(number)")) }
    for number in 0..<50 { _ = try await tier.store([1], as: fixture.draft("c\(number)")) }
    var left: [String: Int] = [:]
    for prefix in ["a", "b", "c"] {
      for number in 0..<50 { left[prefix, default: 0] += await tier.look(up: "\(prefix)\(number)").count }
    }
    #expect(left == ["a": 50, "b": 0, "c": 50])
  }

  @Test func `a spool counts against the limit as it grows and evicts as needed`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier(limit: 20 * 4096)
    for number in 0..<20 { _ = try await tier.store([1], as: fixture.draft("\(number)")) }
    let spool = try await tier.makeSpool()
    try await spool.append(bytes(4096))
    #expect(await tier.counts.entries == 19)
    try await spool.append(bytes(1))
    #expect(await tier.counts.entries == 18)
    #expect(await tier.counts.bytes == 20 * 4096)
    #expect(fixture.bytesOnDisk == 20 * 4096)
    let stored = try await tier.store(.spool(spool), as: fixture.draft("big"), delivered: false)
    #expect(stored.content.digest == SHA256.digest(of: bytes(4097)))
    #expect(try await tier.read(stored) == bytes(4097))
    #expect(await tier.counts.bytes == 20 * 4096)
    #expect(fixture.imageFiles.allSatisfy { !$0.hasSuffix(".tmp") })
  }

  @Test func `an expected length is reserved at the start and released on discard`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier(limit: 30 * 4096)
    for number in 0..<30 { _ = try await tier.store([1], as: fixture.draft("\(number)")) }
    let spool = try await tier.makeSpool(expected: 3 * 4096)
    #expect(await tier.counts.entries == 27)
    await spool.discard()
    #expect(await tier.counts.bytes == 27 * 4096)
    let error = await #expect(throws: StoreError.self) { try await tier.makeSpool(expected: 1 << 20) }
    #expect(error?.kind == .overLimit)
  }

  @Test func `a spool that exceeds the limit leaves nothing behind`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier(limit: 20 * 4096)
    for number in 0..<19 { _ = try await tier.store([1], as: fixture.draft("\(number)"), delivered: true) }
    let spool = try await tier.makeSpool()
    try await spool.append(bytes(4096))
    await #expect(throws: StoreError.self) { try await spool.append([1]) }
    await #expect(throws: StoreError.self) { try await spool.append([1]) }
    #expect(try await spool.read(from: 0, count: 8192).count == 4096, "what was added can still be read")
    await spool.discard()
    await #expect(throws: StoreError.self) {
      try await tier.store(.spool(spool), as: fixture.draft("b"), delivered: true)
    }
    #expect(fixture.imageFiles.count == 19)
    #expect(await tier.counts.bytes == 19 * 4096)
  }

  @Test func `a dropped spool is removed`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    try await tier.makeSpool().append([1])
    // The last release of the spool may happen on any thread, and leaves the removal to the executor.
    for _ in 0..<10_000 where await tier.counts.bytes > 0 { await Task.yield() }
    #expect(await tier.counts.bytes == 0)
    #expect(fixture.imageFiles.isEmpty)
  }

  /// Random operations, compared with a naive model: a list in order of use, and the times of deliveries.
  @Test(arguments: 0..<3) func `the tier matches a naive model`(_: Int) async throws {
    let seed = UInt64.random(in: .min ... .max)
    var random = SeededChance(state: seed)
    let fixture = Fixture(seed: seed)
    var tier = try await fixture.openTier(limit: 20 * 4096)
    var model = Model(limit: 20 * 4096)
    for step in 0..<500 {
      let place: Comment = "seed \(seed), step \(step)"
      let key = "k\(random.next() % 40)"
      fixture.advance(1)
      model.now = fixture.now
      switch random.next() % 20 {
      case 0..<10:
        let content = bytes(Int(random.next() % 12_000), UInt8(truncatingIfNeeded: step))
        let delivered = random.next() % 4 == 0
        let stored = try? await tier.store(content, as: fixture.draft(key), delivered: delivered)
        #expect((stored != nil) == model.store(key, content, delivered: delivered), place)
      case 10..<15:
        for found in await tier.look(up: key) {
          await tier.markDelivered(found.id, at: fixture.now)
          model.deliver(key)
        }
      case 15:
        let matching = model.entries.filter { $0.key.hasPrefix("k1") }.count
        #expect(await tier.clear(.prefix("k1")).removed == matching, place)
        model.remove { $0.key.hasPrefix("k1") }
      case 16:
        await tier.trim()
        model.trim()
      case 17:
        fixture.advance(Int(random.next() % 50))
        _ = await tier.runMaintenance()
        model.now = fixture.now
        model.runMaintenance()
      case 18:
        await tier.close()
        tier = try await fixture.openTier(limit: 20 * 4096)
        model.trimAt = fixture.now
      default:
        await tier.flushUses()
        await tier.commitNow()
      }
      var keys: Set<String> = []
      for number in 0..<40 {
        for found in await tier.look(up: "k\(number)") {
          keys.insert(found.key)
          let content = try await tier.read(found)
          let isSame = content == model.entries.first { $0.key == found.key }?.content
          #expect(isSame, place)
        }
      }
      #expect(keys == Set(model.entries.map(\.key)), place)
      #expect(await tier.counts.bytes == fixture.bytesOnDisk, place)
      if keys != Set(model.entries.map(\.key)) { return }
    }
  }
}

private struct Model {
  struct Entry {
    var key: String
    var content: [UInt8]
    var deliveredAt = 0
    var size: Int { (content.count + 4095) / 4096 * 4096 }
  }

  var limit: Int
  var now = 0
  var entries: [Entry] = []  // least recently used first
  var pendingDeletions: [Entry] = []
  var trimAt: Int?

  func isRetained(_ entry: Entry) -> Bool { entry.deliveredAt + 61 > now }

  var size: Int { (entries + pendingDeletions).reduce(0) { $0 + $1.size } }

  mutating func evict(for bytes: Int) {
    var place = 0
    while size > limit - bytes && place < entries.count {
      if isRetained(entries[place]) { place += 1 } else { entries.remove(at: place) }
    }
    if size + bytes > limit {
      trimAt = (entries + pendingDeletions).filter(isRetained).map { $0.deliveredAt + 61 }.min()
    }
  }

  mutating func store(_ key: String, _ content: [UInt8], delivered: Bool) -> Bool {
    let new = Entry(key: key, content: content, deliveredAt: delivered ? now : 0)
    if new.size > limit / 10 { return false }
    let trimBefore = trimAt
    evict(for: new.size)
    if size + new.size > limit && !delivered {
      trimAt = trimBefore
      return false
    }
    remove { $0.key == key }
    entries.append(new)
    // Each store deletes the files whose 60 s have ended.
    pendingDeletions = pendingDeletions.filter(isRetained)
    return true
  }

  mutating func deliver(_ key: String) {
    guard let place = entries.firstIndex(where: { $0.key == key }) else { return }
    var entry = entries.remove(at: place)
    entry.deliveredAt = now
    entries.append(entry)
  }

  mutating func remove(_ isChosen: (Entry) -> Bool) {
    pendingDeletions += entries.filter { isChosen($0) && isRetained($0) }
    entries.removeAll(where: isChosen)
  }

  mutating func trim() {
    trimAt = nil
    pendingDeletions = pendingDeletions.filter(isRetained)
    evict(for: 0)
  }

  mutating func runMaintenance() {
    pendingDeletions = pendingDeletions.filter(isRetained)
    if let at = trimAt, at <= now { trim() }
  }
}
