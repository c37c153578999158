import Foundation
import Testing
import Threads

@testable import ImageStore

/// Makes the n-th operation of a file system fail.
private final class Faults: Sendable {
  private let state = Locked((left: Int.max, code: Int32(0), kind: FileSystem.Operation?.none, seen: 0))

  var fileSystem: FileSystem {
    FileSystem { [state] operation in
      state.withLock { state in
        if let kind = state.kind, kind != operation { return nil }
        state.seen += 1
        state.left -= 1
        return state.left == 0 ? state.code : nil
      }
    }
  }

  func fail(at place: Int, with code: Int32, only kind: FileSystem.Operation? = nil) {
    state.withLock { $0 = (place, code, kind, 0) }
  }

  func stop() -> Int {
    state.withLock { state in
      defer { state = (.max, 0, nil, 0) }
      return state.seen
    }
  }
}

@Suite struct FaultTests {
  @Test(arguments: [ENOSPC, EIO, EROFS, EMFILE, EILSEQ])
  func `whichever operation fails, nothing wrong is kept and the tier recovers`(code: Int32) async throws {
    var place = 1
    while true {
      let fixture = Fixture()
      let faults = Faults()
      let tier = try await fixture.openTier(files: faults.fileSystem)
      let kept = try await tier.store(bytes(10), as: fixture.draft("kept"))
      await tier.commitNow()
      faults.fail(at: place, with: code)
      let content = bytes(5000, 3)
      let stored = try? await tier.store(content, as: fixture.draft("a"))
      if let spool = try? await tier.makeSpool() {
        do {
          try await spool.append(content)
          _ = try await tier.store(.spool(spool), as: fixture.draft("b"), delivered: false)
        } catch {
          await spool.discard()
        }
      }
      _ = try? await tier.read(kept)
      _ = await tier.clear(.key("nothing"))
      await tier.commitNow()
      let seen = faults.stop()

      fixture.advance(DiskTier.retryInterval + 1)
      for key in ["a", "b", "kept"] {
        for found in await tier.look(up: key) {
          #expect(try await tier.read(found) == (key == "kept" ? bytes(10) : content), "operation \(place), \(key)")
        }
      }
      let later = try await tier.store([9], as: fixture.draft("later"))
      #expect(await tier.look(up: "later") == [later], "operation \(place)")
      #expect(fixture.warnings.withLock { $0.count } <= 1, "operation \(place)")
      if stored != nil, await tier.look(up: "a").isEmpty, await tier.counts.evicted == Evictions() {
        #expect(await tier.leavesLeftovers, "operation \(place)")
      }
      await tier.close()
      let swept = try await fixture.openTier()
      _ = await swept.counts
      await swept.sweepAll()
      #expect(await swept.counts.bytes == fixture.bytesOnDisk, "operation \(place)")
      if seen < place { break }
      place += 1
    }
    #expect(place > 20)
  }

  @Test func `a full disk is told as such, warned of once, and tried again later`() async throws {
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
    fixture.advance(DiskTier.retryInterval)
    _ = try await tier.store([1], as: fixture.draft("a"))
  }

  @Test func `when the disk is full what is least used makes way`() async throws {
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

  @Test func `what is stored can be read while nothing can be written`() async throws {
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
