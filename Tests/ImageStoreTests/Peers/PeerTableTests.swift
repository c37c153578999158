import Foundation
import Synchronization
import Testing
import Threads

@testable import ImageStore

/// The peer table as seen by two workers of a directory.
@Suite struct PeerTableTests {
  private let fixture = Fixture()

  private func lease(_ answer: PeerTable.Answer?) -> Lease? {
    if case .acquired(let lease)? = answer { return lease }
    return nil
  }

  private func isHeld(_ answer: PeerTable.Answer?) -> Bool {
    if case .held? = answer { return true }
    return false
  }

  private func take(_ hash: UInt64, on peerTable: PeerTable) -> PeerTable.Answer {
    var leaseRequest = peerTable.leaseRequest(hash)
    return peerTable.acquire(&leaseRequest)
  }

  private func peerTables() async throws -> (DiskTier, PeerTable, DiskTier, PeerTable) {
    let (a, b) = (try await fixture.openTier(), try await fixture.openTier())
    return (a, try #require(a.peerTable), b, try #require(b.peerTable))
  }

  @Test(
    arguments: [UInt64.max, .max - 1, 1 << 63, 0x0101_0101_0101_0101] as [UInt64],
    [0, 1, 2048, PeerTable.Layout.firstClearing] as [Int])
  func `arbitrary values in the table cause nothing worse than an unavailable lease`(word: UInt64, from first: Int)
    async throws
  {
    let (_, a, _, b) = try await peerTables()
    for index in first..<PeerTable.Layout.words { a.words[index].store(word, ordering: .relaxed) }
    for peerTable in [a, b] {
      for hash in 0..<20 as Range<UInt64> { _ = take(hash, on: peerTable) }
      peerTable.heartbeat()
      peerTable.publish(PeerTable.Clearing(.expired, reachesMemory: true))
      _ = peerTable.clearings(since: 0)
      var since = UInt64.max - 3
      _ = peerTable.drainClearings(since: &since)
      peerTable.recordDelivery(of: 1, at: 1_000_000)
      _ = peerTable.unlessDelivered(1, now: 1_000_000) {}
      #expect(peerTable.unlistedBytesOfPeers >= 0)
      #expect(peerTable.beginDecode(1, limit: 1) && peerTable.decodesOfPeers >= 0)
      for other in peerTable.others { peerTable.reclaim(row: other.row, of: other.instance) }
    }
    _ = try await fixture.openTier()
  }

  @Test func `a worker holds a lease until its last reference is released`() async throws {
    let (_, a, _, b) = try await peerTables()
    var leaseRequest = b.leaseRequest(7)
    var held = lease(take(7, on: a))
    #expect(held != nil && a.hasLeases)
    #expect(isHeld(b.acquire(&leaseRequest)))
    #expect(b.progress(of: leaseRequest) == .running(worker: try #require(a.row)))
    #expect(b.holder(of: leaseRequest)?.process == Int(getpid()))
    held = nil
    #expect(!a.hasLeases)
    #expect(b.progress(of: leaseRequest) == .over(failed: true))
    #expect(lease(take(7, on: b)) != nil)
  }

  @Test func `a look-up from before the end of a lease must be repeated`() async throws {
    let (_, a, _, b) = try await peerTables()
    var early = b.leaseRequest(7)
    _ = lease(take(7, on: a))
    guard case .cacheChanged = b.acquire(&early) else { return #expect(Bool(false), "the index may have it") }
    #expect(lease(take(7, on: b)) != nil)
  }

  @Test func `a worker without peers need not repeat a look-up`() async throws {
    let tier = try await fixture.openTier()
    let peerTable = try #require(tier.peerTable)
    var early = peerTable.leaseRequest(7)
    _ = lease(peerTable.acquire(&early))
    #expect(lease(peerTable.acquire(&early)) != nil)
  }

  @Test func `a lease on a stored response succeeds with the commit`() async throws {
    let (tier, a, _, b) = try await peerTables()
    var leaseRequest = b.leaseRequest(7)
    do {
      let lease = try #require(self.lease(take(7, on: a)))
      _ = try await tier.store([1], as: fixture.draft("x"))
      await tier.retainUntilCommit(lease)
    }
    #expect(isHeld(b.acquire(&leaseRequest)))
    await tier.commitNow()
    #expect(b.progress(of: leaseRequest) == .over(failed: false))
  }

  @Test func `a worker does not wait for its own lease`() async throws {
    let (_, a, _, _) = try await peerTables()
    let held = lease(take(7, on: a))
    guard case .none = take(7, on: a) else { return #expect(Bool(false), "it is its own") }
    _ = held
  }

  @Test func `a full bucket gives no lease and no wait`() async throws {
    let (_, a, _, b) = try await peerTables()
    let buckets = UInt64(PeerTable.Layout.buckets)
    let held = (1...7).map { lease(take(5 + $0 * buckets, on: a)) }
    #expect(held.allSatisfy { $0 != nil })
    guard case .none = take(5 + 8 * buckets, on: b) else { return #expect(Bool(false), "the bucket must be full") }
  }

  @Test func `the lease of a dead worker is free after dead peers are detected`() async throws {
    let (living, b) = (try await fixture.openTier(), try await fixture.openTier())
    let peerTable = try #require(living.peerTable)
    let dead = try #require(b.peerTable)
    let held = lease(take(7, on: dead))
    dead.setUnlistedBytes(4096)
    // As after kill -9: its lock is released, its row and its lease remain.
    await b.die()
    #expect(isHeld(take(7, on: peerTable)))
    #expect(peerTable.unlistedBytesOfPeers == 4096)
    await living.detectDeadPeersNow()
    #expect(lease(take(7, on: peerTable)) != nil)
    #expect(peerTable.others.isEmpty && peerTable.unlistedBytesOfPeers == 0)
    #expect(!peerTable.hasPeers)
    _ = held
  }

  @Test func `a worker runs a second decode only while all workers run fewer than the limit`() async throws {
    let (_, a, _, b) = try await peerTables()
    #expect(a.beginDecode(1, limit: 3) && a.beginDecode(2, limit: 3))
    #expect(b.decodesOfPeers == 2)
    #expect(b.beginDecode(1, limit: 3))
    #expect(!b.beginDecode(2, limit: 3) && !a.beginDecode(3, limit: 3))
    #expect(a.decodesOfPeers == 1 && b.decodesOfPeers == 2)
    a.recordDecodes(1)
    #expect(b.beginDecode(2, limit: 3))
    // The largest number counts for its worker.
    #expect(!a.beginDecode(2, limit: 3) && a.beginDecode(2, limit: 4))
    b.recordDecodes(0)
    #expect(a.beginDecode(3, limit: 3))
    #expect(b.beginDecode(1, limit: 3), "a worker never waits for another with its first decode")
  }

  @Test func `a worker without peers runs as many decodes as it may`() async throws {
    let tier = try await fixture.openTier()
    let peerTable = try #require(tier.peerTable)
    for count in 1...9 { #expect(peerTable.beginDecode(count, limit: 1)) }
  }

  @Test func `the decodes of a dead worker no longer count after dead peers are detected`() async throws {
    let (living, other) = (try await fixture.openTier(), try await fixture.openTier())
    let peerTable = try #require(living.peerTable)
    #expect(try #require(other.peerTable).beginDecode(1, limit: 2))
    await other.die()
    #expect(peerTable.beginDecode(1, limit: 2) && !peerTable.beginDecode(2, limit: 2))
    await living.detectDeadPeersNow()
    #expect(peerTable.beginDecode(2, limit: 2))
    // Neither do they for the next worker with its row.
    let next = try await fixture.openTier()
    #expect(try #require(next.peerTable).decodesOfPeers == 2)
    #expect(peerTable.decodesOfPeers == 0)
  }

  @Test func `the former holder of a revoked lease does not end the new lease`() async throws {
    let (_, a, _, b) = try await peerTables()
    var leaseRequest = b.leaseRequest(7)
    var old = lease(take(7, on: a))
    #expect(old != nil)
    b.revoke(leaseRequest, from: try #require(a.row))
    let new = lease(b.acquire(&leaseRequest))
    #expect(new != nil)
    old = nil
    #expect(isHeld(take(7, on: a)))
    _ = new
  }

  @Test func `at most one of several simultaneous requests for the same lease acquires it`() async throws {
    var tiers: [DiskTier] = []
    for _ in 0..<4 { tiers.append(try await fixture.openTier()) }
    let peerTables = tiers.compactMap(\.peerTable)
    let holders = Locked(0)
    let maxHolders = Locked(0)
    await withTaskGroup(of: Void.self) { group in
      for peerTable in peerTables {
        group.addTask {
          for round in 0..<20_000 {
            guard case .acquired(let lease) = take(UInt64(round % 3) * UInt64(PeerTable.Layout.buckets), on: peerTable)
            else { continue }
            // At most one holder of each of the three leases.
            let now = holders.withLock { count in
              count += 1
              return count
            }
            maxHolders.withLock { $0 = max($0, now) }
            holders.withLock { $0 -= 1 }
            withExtendedLifetime(lease) {}
          }
        }
      }
    }
    #expect(maxHolders.withLock { $0 } <= 3)
    #expect(peerTables.allSatisfy { !$0.hasLeases })
  }

  private static let filters: [ClearFilter] = [
    .all, .url("http://a/b", key: "k"), .key(""), .prefix("http://a/\u{0}ü"), .host("a", port: 80),
    .host("a", port: nil),
    .olderThan(seconds: 7), .expired, .every([]), .every([.host("a", port: 80), .prefix("ü"), .url("u", key: "k")]),
  ]

  @Test(arguments: filters) func `a clear is published to the peers and not to the worker itself`(filter: ClearFilter)
    async throws
  {
    let (tier, a, _, b) = try await peerTables()
    let (before, own) = (b.clearCount, a.clearCount)
    _ = await tier.clear(filter, reachesMemory: filter == .expired)
    let clearing = PeerTable.Clearing(filter, reachesMemory: filter == .expired)
    #expect(b.clearings(since: before) == [clearing, clearing])
    #expect(b.clearings(since: b.clearCount).isEmpty)
    #expect(a.clearings(since: own).isEmpty)
  }

  @Test func `a clear that is too long, or was overwritten, is read as a clear of everything`() async throws {
    let (tier, _, _, b) = try await peerTables()
    let everything = PeerTable.Clearing(.all, reachesMemory: true)
    var before = b.clearCount
    _ = await tier.clear(.prefix(String(repeating: "x", count: 2000)), reachesMemory: false)
    #expect(b.clearings(since: before) == [everything, everything])
    before = b.clearCount
    for _ in 0..<PeerTable.Layout.clearings { _ = await tier.clear(.key("x")) }
    #expect(b.clearings(since: before) == [everything])
  }

  @Test func `a worker without peers ignores any number of its own clears`() async throws {
    let tier = try await fixture.openTier()
    let peerTable = try #require(tier.peerTable)
    var count = peerTable.clearCount
    for _ in 0..<PeerTable.Layout.clearings { _ = await tier.clear(.key("x")) }
    #expect(peerTable.drainClearings(since: &count).isEmpty && count == peerTable.clearCount)
    let other = try await fixture.openTier()
    _ = await other.clear(.key("y"))
    let clearing = PeerTable.Clearing(.key("y"), reachesMemory: true)
    #expect(peerTable.drainClearings(since: &count) == [clearing, clearing])
  }

  @Test func `a clear that is still being published is left for the next call`() async throws {
    let (tier, a, _, b) = try await peerTables()
    var count = b.clearCount
    _ = await tier.clear(.key("x"))
    a.words[PeerTable.Layout.clears].add(1, ordering: .sequentiallyConsistent)
    let clearing = PeerTable.Clearing(.key("x"), reachesMemory: true)
    #expect(b.drainClearings(since: &count) == [clearing, clearing])
    #expect(b.drainClearings(since: &count).isEmpty && count == b.clearCount - 1)
    // Its publication was never completed.
    _ = await tier.clear(.key("x"))
    #expect(b.drainClearings(since: &count) == [PeerTable.Clearing(.all, reachesMemory: true), clearing, clearing])
    #expect(count == b.clearCount)
  }

  @Test func `a response that was cleared since its transfer began is not stored`() async throws {
    let (tier, a, other, _) = try await peerTables()
    let begun = a.clearCount
    _ = await other.clear(.key("x"))
    await #expect(throws: StoreError.self) {
      try await tier.store(.bytes([1]), as: fixture.draft("x"), delivered: false, clearCount: begun)
    }
    #expect(await tier.look(up: "x").isEmpty && fixture.imageFiles.isEmpty)
    _ = try await tier.store(.bytes([1]), as: fixture.draft("y"), delivered: false, clearCount: begun)
    _ = try await tier.store(.bytes([1]), as: fixture.draft("x"), delivered: false, clearCount: a.clearCount)
    #expect(await tier.counts.entries == 2)
  }

  @Test func `a file that is being deleted is not delivered, and a delivered file is not deleted`() async throws {
    let (_, a, _, b) = try await peerTables()
    let now = fixture.now
    let isRemoved = b.unlessDelivered(7, now: now) {
      #expect(a.recentDelivery(of: 7, now: now) == nil)
    }
    #expect(isRemoved)
    a.recordDelivery(of: 7, at: now)
    #expect(b.recentDelivery(of: 7, now: now) == now)
    let isRemovedAfter = b.unlessDelivered(7, now: now) {}
    let isRemovedLater = b.unlessDelivered(7, now: now + 60) {}
    #expect(!isRemovedAfter && isRemovedLater)
    #expect(b.recentDelivery(of: 8, now: now) == nil)
  }

  @Test func `a worker that is killed while it deletes a file delays its peers only briefly`() async throws {
    let (_, a, _, b) = try await peerTables()
    a.words[PeerTable.Layout.delivery(7)].store(.max, ordering: .relaxed)
    b.recordDelivery(of: 7, at: fixture.now)
    #expect(a.recentDelivery(of: 7, now: fixture.now) == fixture.now)
    b.words[PeerTable.Layout.delivery(8)].store(.max, ordering: .relaxed)
    for _ in 0..<2 {
      let isRemoved = a.unlessDelivered(8, now: fixture.now) {}
      #expect(isRemoved)
    }
    #expect(b.words[PeerTable.Layout.delivery(8)].load(ordering: .relaxed) == 0)
  }

  @Test func `a delivered file survives a replacement by a worker that starts right after`() async throws {
    let a = try await fixture.openTier()
    let stored = try await a.store([1], as: fixture.draft("x"))
    await a.commitNow()
    fixture.advance(100)
    await a.markDelivered(stored.id, at: fixture.now)
    let b = try await fixture.openTier()
    _ = try await b.store([2], as: fixture.draft("x"))
    await b.commitNow()
    _ = await b.runMaintenance()
    #expect(FileManager.default.fileExists(atPath: a.absolutePath(of: stored)))
  }

  @Test(arguments: [0, 100]) func `a truncated peer table is created again`(length: Int) async throws {
    let a = try await fixture.openTier()
    await a.close()
    let path = fixture.directory + "/test/" + PeerTable.path
    try Data(count: length).write(to: URL(filePath: path))
    let b = try await fixture.openTier()
    #expect(b.peerTable != nil)
  }

  @Test func `the spools of a peer count against the limit`() async throws {
    let limit: Int64 = 80 * 4096
    let (a, b) = (try await fixture.openTier(limit: limit), try await fixture.openTier(limit: limit))
    var spools: [BodySpool] = []
    for blocks in [8, 8, 8, 8, 8, 8, 8, 8, 8, 4] as [Int64] {
      spools.append(try await a.makeSpool(expected: blocks * 4096))
    }
    #expect(await b.counts.bytes == 76 * 4096)
    for number in 0..<5 {
      _ = try await b.store([1], as: fixture.draft("\(number)"))
      await b.commitNow()
    }
    #expect(await b.counts.entries == 4)
    await #expect(throws: StoreError.self) { _ = try await b.makeSpool(expected: 8 * 4096) }
    for spool in spools { await spool.discard() }
    #expect(await b.counts.bytes == 0)
  }

  @Test func `a worker on a full disk works without a peer table`() async throws {
    let tier = try await fixture.openTier(files: FileSystem { $0 == .write ? ENOSPC : nil })
    #expect(tier.peerTable == nil)
    #expect(await tier.look(up: "x").isEmpty)
    #expect(fixture.warnings.withLock { $0.isEmpty })
  }
}
