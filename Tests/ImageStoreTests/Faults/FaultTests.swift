import Foundation
import Testing
import Threads

@testable import ImageStore

@Suite struct FaultTests {
  private static let codes = [ENOSPC, EIO, EROFS, ENOENT, EACCES, EILSEQ]

  /// Each operation fails with one code; another run may take another one.
  private static let turn = Int.random(in: 0..<codes.count)

  @Test(arguments: codes.indices)
  func `a failure of any operation stores no wrong data and the tier recovers`(index: Int) async throws {
    var undisturbed = EventfulLife()
    let count = try await undisturbed.live(failingAt: .max, with: 0, .once)
    #expect(count > 300)
    for number in stride(from: (index + Self.turn) % Self.codes.count + 1, through: count, by: Self.codes.count) {
      var life = EventfulLife()
      _ = try await life.live(failingAt: number, with: Self.codes[index], .once)
    }
  }

  @Test(arguments: codes)
  func `a failure of all operations from any one on stores no wrong data and the tier recovers`(code: Int32)
    async throws
  {
    for number in stride(from: Self.turn + 1, to: 300, by: 26) {
      var life = EventfulLife()
      _ = try await life.live(failingAt: number, with: code, .fromThenOn)
    }
  }

  @Test(arguments: [ENOSPC, EIO])
  func `a failure of all operations from any one of a replacing store on causes one warning`(code: Int32) async throws {
    var (number, isOver) = (1, false)
    while !isOver {
      let (fixture, faults) = (Fixture(), Faults())
      let tier = try await fixture.openTier(files: faults.fileSystem)
      _ = try await tier.store([1], as: fixture.draft("a"))
      await tier.commitNow()
      faults.fail(at: number, with: code, .fromThenOn)
      for key in ["a", "b"] {
        _ = try? await tier.store([2], as: fixture.draft(key))
        await tier.commitNow()
        fixture.advance(IndexSession.retryInterval + 1)
      }
      isOver = faults.stop() < number
      #expect(fixture.warnings.withLock { $0.count } == (isOver ? 0 : 1), "operation \(number)")
      await tier.close()
      number += 1
    }
    #expect(number > 10)
  }

  @Test(arguments: [(ENOSPC, StoreError.Kind.diskFull), (EIO, .io)])
  func `a clear either succeeds or reports its failure`(code: Int32, kind: StoreError.Kind) async throws {
    let fixture = Fixture()
    let faults = Faults()
    let tier = try await fixture.openTier(files: faults.fileSystem)
    var (number, failed, isOver) = (1, 0, false)
    while !isOver {
      let stored = try await tier.store([1], as: fixture.draft("a"), delivered: true)
      await tier.commitNow()
      faults.fail(at: number, with: code, only: .index)
      let cleared = await tier.clear(.key("a"))
      isOver = faults.stop() < number
      fixture.advance(IndexSession.retryInterval + 1)
      #expect(cleared.failure == nil || cleared.failure?.kind == kind, "operation \(number)")
      #expect(await tier.look(up: "a") == (cleared.failure == nil ? [] : [stored]), "operation \(number)")
      if cleared.failure != nil { failed += 1 }
      number += 1
    }
    #expect(failed > 2)
  }

  @Test func `a full disk is reported as such, causes one warning, and is tried again later`() async throws {
    let fixture = Fixture()
    let full = Locked(true)
    let calls = Locked(0)
    let files = FileSystem { operation in
      calls.withLock { $0 += 1 }
      return operation == .write && full.withLock { $0 } ? ENOSPC : nil
    }
    let tier = try await fixture.openTier(files: files)
    for _ in 0..<3 {
      let error = await #expect(throws: StoreError.self) { try await tier.store([1], as: fixture.draft("a")) }
      #expect(error?.kind == .diskFull)
    }
    let before = calls.withLock { $0 }
    _ = try? await tier.store([1], as: fixture.draft("a"))
    #expect(calls.withLock { $0 } == before, "it fails fast")
    #expect(fixture.warnings.withLock { $0.count } == 1)
    #expect(fixture.imageFiles.isEmpty)
    full.withLock { $0 = false }
    fixture.advance(IndexSession.retryInterval)
    _ = try await tier.store([1], as: fixture.draft("a"))
  }

  @Test func `a full disk evicts the least recently used image`() async throws {
    let fixture = Fixture()
    let faults = Faults()
    let tier = try await fixture.openTier(files: faults.fileSystem)
    _ = try await tier.store([1], as: fixture.draft("a"))
    faults.fail(at: 1, with: ENOSPC, only: .write)
    _ = try await tier.store([2], as: fixture.draft("b"))
    #expect(await tier.look(up: "a").isEmpty)
    #expect(await tier.look(up: "b").count == 1)
    #expect(fixture.warnings.withLock { $0.isEmpty })
  }

  @Test func `after the index finds the disk full, files with lost rows are swept and the tier recovers`() async throws
  {
    let fixture = Fixture()
    let full = Locked(false)
    let tier = try await fixture.openTier(
      files: FileSystem { operation in operation == .index && full.withLock { $0 } ? ENOSPC : nil })
    let old = try await tier.store([0], as: fixture.draft("old"))
    await tier.commitNow()
    _ = try await tier.store([1], as: fixture.draft("a"))
    let spool = try await tier.makeSpool()
    full.withLock { $0 = true }
    await tier.commitNow()
    #expect(fixture.warnings.withLock { $0.count } == 1)
    #expect(fixture.imageFiles.count == 3)
    full.withLock { $0 = false }
    await tier.sweepAll()
    #expect(fixture.imageFiles.filter { !$0.hasSuffix(".tmp") } == [old.file])
    #expect(fixture.imageFiles.count == 2, "what is being spooled stays")
    #expect(await tier.look(up: "old") == [old])
    await spool.discard()
    fixture.advance(IndexSession.retryInterval)
    let later = try await tier.store([2], as: fixture.draft("a"))
    await tier.close()
    #expect(fixture.imageFiles == [old.file, later.file])
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.directory + "/test/workers").isEmpty)
  }

  @Test func `an index that finds the disk full once evicts the least recently used image`() async throws {
    let fixture = Fixture()
    let faults = Faults()
    let tier = try await fixture.openTier(files: faults.fileSystem)
    _ = try await tier.store([1], as: fixture.draft("old"))
    await tier.commitNow()
    _ = try await tier.store([2], as: fixture.draft("lost"))
    faults.fail(at: 1, with: ENOSPC, only: .index)
    await tier.commitNow()
    #expect(faults.stop() > 1)
    let stored = try await tier.store([3], as: fixture.draft("new"))
    await tier.sweepAll()
    #expect(fixture.imageFiles == [stored.file])
    #expect(await tier.counts.evicted == EvictionStatistics(diskFull: 1))
    #expect(fixture.warnings.withLock { $0.isEmpty })
  }

  @Test func `an eviction for the index that has no effect is not repeated`() async throws {
    let fixture = Fixture()
    let faults = Faults()
    let tier = try await fixture.openTier(files: faults.fileSystem)
    for key in ["a", "b"] { _ = try await tier.store([1], as: fixture.draft(key)) }
    await tier.commitNow()
    _ = try await tier.store([2], as: fixture.draft("lost"))
    for warnings in 0...1 {
      faults.fail(at: 1, with: ENOSPC, only: .index)
      await tier.commitNow()
      #expect(fixture.warnings.withLock { $0.count } == warnings)
    }
    _ = faults.stop()
    let error = await #expect(throws: StoreError.self) { try await tier.store([3], as: fixture.draft("c")) }
    #expect(error?.kind == .diskFull)
  }

  @Test func `a delivered file whose row is lost is kept for its 60 s`() async throws {
    let fixture = Fixture()
    fixture.clock.withLock { $0 = Int(Date().timeIntervalSince1970) }
    let faults = Faults()
    let tier = try await fixture.openTier(files: faults.fileSystem)
    _ = await tier.look(up: "opens the index")
    let stored = try await tier.store([1], as: fixture.draft("a"), delivered: true)
    faults.fail(at: 1, with: ENOSPC, only: .index)
    await tier.commitNow()
    // Not earlier than the modification time of the file, however long the test took.
    fixture.clock.withLock { $0 = Int(Date().timeIntervalSince1970) + 50 }
    await tier.markDelivered(stored.id, at: fixture.now)
    await tier.sweepAll()
    fixture.advance(59)
    _ = await tier.runMaintenance()
    #expect(fixture.imageFiles == [stored.file])
    #expect(await tier.counts.bytes == 4096)
    fixture.advance(4)
    _ = await tier.runMaintenance()
    #expect(fixture.imageFiles.isEmpty)
    #expect(await tier.counts.bytes == 0)
  }

  @Test func `stored images can be read while writes fail`() async throws {
    let fixture = Fixture()
    let readOnly = Locked(false)
    let files = FileSystem { operation in operation == .create && readOnly.withLock { $0 } ? EROFS : nil }
    let tier = try await fixture.openTier(files: files)
    let stored = try await tier.store([1], as: fixture.draft("a"))
    readOnly.withLock { $0 = true }
    let error = await #expect(throws: StoreError.self) { try await tier.store([1], as: fixture.draft("b")) }
    #expect(error?.kind == .io)
    #expect(await tier.look(up: "a") == [stored])
    #expect(try await tier.read(stored) == [1])
  }
}
