import Foundation
import Testing
import Threads

@testable import ImageStore

@Suite struct SharingTests {
  @Test func `a peer sees commits and clears`() async throws {
    let fixture = Fixture()
    let (a, b) = (try await fixture.openTier(), try await fixture.openTier())
    let stored = try await a.store([1], as: fixture.draft("x"))
    await a.commitNow()
    #expect(await b.look(up: "x") == [stored])
    #expect(try await b.read(stored) == [1])
    await b.commitNow()
    #expect(await b.clear(.all).removed == 1)
    #expect(await a.look(up: "x").isEmpty)
  }

  @Test func `a file that a peer may have just delivered survives a clear`() async throws {
    let fixture = Fixture()
    let (a, b) = (try await fixture.openTier(), try await fixture.openTier())
    let stored = try await a.store([1], as: fixture.draft("x"))
    await a.commitNow()
    await a.markDelivered(stored.id, at: fixture.now)
    #expect(await b.clear(.all).removed == 1)
    #expect(fixture.imageFiles == [stored.file])
    await a.flushUses()
    await a.commitNow()
    fixture.advance(10)
    await b.trim()
    #expect(fixture.imageFiles == [stored.file])
    fixture.advance(60)
    await b.trim()
    #expect(fixture.imageFiles.isEmpty)
  }

  @Test func `a file that a peer has just delivered is not evicted`() async throws {
    let fixture = Fixture()
    let (a, b) = (try await fixture.openTier(limit: 4 * 4096), try await fixture.openTier(limit: 4 * 4096))
    let handedOut = try await a.store([1], as: fixture.draft("handed out"), delivered: false)
    let other = try await a.store([1], as: fixture.draft("other"), delivered: false)
    await a.commitNow()
    fixture.advance(100)
    await a.markDelivered(handedOut.id, at: fixture.now)
    #expect(try await a.read(handedOut) == [1])
    for number in 0..<5 {
      _ = try await b.store([1], as: fixture.draft("\(number)"), delivered: false)
      await b.commitNow()
      fixture.advance(1)
    }
    #expect(fixture.imageFiles.contains(handedOut.file))
    #expect(!fixture.imageFiles.contains(other.file))
  }

  @Test func `pending deletions of a closed worker are executed by a peer and do not fill its limit`() async throws {
    let fixture = Fixture()
    let (a, b) = (try await fixture.openTier(limit: 8 * 4096), try await fixture.openTier(limit: 8 * 4096))
    _ = try await b.store([1], as: fixture.draft("b"), delivered: false)
    await b.commitNow()
    for number in 0..<8 {
      // Each replaces the one before, whose path has been delivered.
      _ = try await a.store([UInt8(number)], as: fixture.draft("a"), delivered: true)
      await a.commitNow()
    }
    await a.close()
    fixture.advance(3)
    #expect(await b.runMaintenance() != nil, "it looks again by itself")
    fixture.advance(61)
    for _ in 0..<3 { _ = await b.runMaintenance() }
    #expect(fixture.imageFiles.count <= 2, "what is listed, and no more")
    #expect(await b.counts.bytes == Int64(fixture.imageFiles.count) * 4096)
    _ = try await b.store([9], as: fixture.draft("new"), delivered: false)
  }

  @Test func `a file with readers counts against the limit and is not evicted`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier(limit: 4 * 4096)
    var stored: [StoredResponse] = []
    for number in 0..<4 { stored.append(try await tier.store([1], as: fixture.draft("\(number)"), delivered: false)) }
    for response in stored { #expect(await tier.addReader(of: response)) }
    fixture.advance(100)
    await #expect(throws: StoreError.self) { try await tier.store([1], as: fixture.draft("more"), delivered: false) }
    await tier.removeReader(of: stored[2].id)
    _ = try await tier.store([1], as: fixture.draft("more"), delivered: false)
    #expect(!fixture.imageFiles.contains(stored[2].file))
    #expect(await tier.counts.bytes == 4 * 4096)
    for number in [0, 1, 3] { await tier.removeReader(of: stored[number].id) }
    for number in 0..<4 { _ = try await tier.store([1], as: fixture.draft("again \(number)"), delivered: false) }
    #expect(await tier.counts.bytes == 4 * 4096)
  }

  @Test func `a file with readers survives the deletion of its row`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let stored = try await tier.store([1], as: fixture.draft("a"), delivered: false)
    #expect(await tier.addReader(of: stored))
    _ = await tier.clear(.all)
    for _ in 0..<3 {
      fixture.advance(61)
      _ = await tier.runMaintenance()
      #expect(fixture.imageFiles == [stored.file])
    }
    await tier.removeReader(of: stored.id)
    fixture.advance(61)
    _ = await tier.runMaintenance()
    #expect(fixture.imageFiles.isEmpty)
  }

  @Test func `the limit applies to both workers together`() async throws {
    let fixture = Fixture()
    let (a, b) = (try await fixture.openTier(limit: 4 * 4096), try await fixture.openTier(limit: 4 * 4096))
    for number in 0..<20 {
      _ = try await (number % 2 == 0 ? a : b).store([1], as: fixture.draft("\(number)"))
      await a.commitNow()
      await b.commitNow()
      fixture.advance(1)
    }
    #expect(await a.counts.entries == 4)
    #expect(fixture.bytesOnDisk == 4 * 4096)
  }

  @Test func `the files of a living worker are not swept`() async throws {
    let fixture = Fixture()
    let (living, dying) = (try await fixture.openTier(), try await fixture.openTier())
    let spool = try await living.makeSpool()
    try await spool.append([1])
    let mine = try await dying.makeSpool()
    try await mine.append([1])
    await dying.die()
    let before = fixture.imageFiles.count
    let tier = try await fixture.openTier()
    await tier.sweepOnce()
    #expect(fixture.imageFiles.count == before - 1)
    let stored = try await living.store(.spool(spool), as: fixture.draft("a"), delivered: false)
    await living.commitNow()
    #expect(await tier.look(up: "a") == [stored])
    _ = mine
  }

  @Test func `two workers on two threads store and read without an error`() async throws {
    let fixture = Fixture()
    let executors = [ThreadExecutor(name: "one"), ThreadExecutor(name: "two")]
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, executor) in executors.enumerated() {
        group.addTask {
          let tier = fixture.makeTier(executor: executor)
          try await tier.open()
          installMaintenance(on: executor, tiers: [tier], scratch: nil)
          for step in 0..<200 {
            let content = [UInt8](repeating: UInt8(step), count: 100)
            let stored = try await tier.store(content, as: fixture.draft("\(number)-\(step)"))
            #expect(try await tier.read(stored) == content)
            _ = try? await tier.store(content, as: fixture.draft("shared-\(step % 10)"))
          }
          executor.setAfterBatch(nil)
          await tier.close()
        }
      }
      try await group.waitForAll()
    }
    for executor in executors { executor.stop() }
    let tier = try await fixture.openTier()
    #expect(await tier.counts.entries == 410)
    #expect(fixture.imageFiles.count == 410)
    #expect(fixture.warnings.withLock { $0.isEmpty })
  }

  @Test func `a worker waits for an index that a peer is creating`() async throws {
    let fixture = Fixture()
    _ = try await fixture.openTier()
    nonisolated(unsafe) let other = try Database(path: fixture.directory + "/test/index.sqlite", mode: .readWrite)
    try other.execute("BEGIN IMMEDIATE")
    let steps = Locked(0)
    let tier = try await fixture.openTier(
      files: FileSystem { operation in
        if operation == .index { steps.withLock { $0 += 1 } }
        // The second step has found the index locked.
        if steps.withLock({ $0 }) == 3 { try? other.execute("COMMIT") }
        return nil
      })
    _ = try await tier.store([1], as: fixture.draft("a"))
    #expect(fixture.warnings.withLock { $0.isEmpty })
  }

  @Test func `maintenance after a store does not block the peers`() async throws {
    let fixture = Fixture()
    let (a, b) = (try await fixture.openTier(), try await fixture.openTier())
    _ = try await a.store([1], as: fixture.draft("a"))
    #expect(await a.schedule.trimAt == fixture.now)
    _ = await a.runMaintenance()
    _ = try await b.store([1], as: fixture.draft("b"))
  }

  @Test func `a read-only tier sees later writes of a writer`() async throws {
    let fixture = Fixture()
    let first = try await fixture.openTier()
    _ = try await first.store([1], as: fixture.draft("a"))
    await first.close()
    let reader = try await fixture.openTier(mode: .readOnly)
    #expect(await reader.look(up: "a").count == 1)
    let writer = try await fixture.openTier()
    _ = try await writer.store([1], as: fixture.draft("b"))
    await writer.commitNow()
    fixture.advance(MaintenanceSchedule.surveyInterval)
    _ = await reader.runMaintenance()
    #expect(await reader.look(up: "b").count == 1)
  }

  @Test func `an index that a peer has replaced is reopened`() async throws {
    let fixture = Fixture()
    let a = try await fixture.openTier()
    _ = try await a.store([1], as: fixture.draft("x"))
    await a.commitNow()
    for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
      try FileManager.default.removeItem(atPath: fixture.directory + "/test/" + name)
    }
    let b = try await fixture.openTier()
    let stored = try await b.store([1], as: fixture.draft("y"))
    await b.commitNow()
    fixture.advance(MaintenanceSchedule.surveyInterval)
    _ = await a.runMaintenance()
    #expect(await a.look(up: "y") == [stored])
  }
}
