#if os(Linux)
  import CSystem
  import Foundation
  import Testing
  import Threads

  @testable import ImageStore

  /// Files of the directory that are truncated in place while workers have them mapped.
  @Suite struct TruncationTests {
    private let fixture = Fixture()

    private func truncateFile(_ name: String, toPart part: Int) throws {
      let path = fixture.directory + "/test/" + name
      let size = try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
      #expect(size > 0)
      #expect(truncate(path, size * part / 4) == 0)
    }

    @Test(arguments: [0, 1, 2]) func `workers whose peer table is truncated agree on a new one`(part: Int) async throws
    {
      let (a, b) = (try await fixture.openTier(), try await fixture.openTier())
      let held = lease(7, on: try #require(a.peerTable))
      #expect(held != nil)
      try truncateFile(PeerTable.path, toPart: part)
      for tier in [a, b] {
        let peerTable = try #require(tier.peerTable)
        for hash in 0..<5000 as Range<UInt64> { _ = lease(hash, on: peerTable) }
        peerTable.recordDelivery(of: 1, at: fixture.now)
        _ = peerTable.clearings(since: 0)
        peerTable.heartbeat()
        peerTable.setUnlistedBytes(4096)
        #expect(peerTable.unlistedBytesOfPeers >= 0)
      }
      // The new worker finds a truncated file, since the others have not accessed the truncated part.
      let c = try await fixture.openTier()
      for tier in [a, b, c] { await tier.detectDeadPeersNow() }
      let peerTables = try [a, b, c].map { try #require($0.peerTable) }
      #expect(peerTables.allSatisfy { $0.identity == peerTables[0].identity && !$0.isLost })
      #expect(peerTables.allSatisfy { $0.others.count == 2 })
      let new = lease(9, on: peerTables[0])
      #expect(new != nil)
      for peerTable in peerTables[1...] {
        var leaseRequest = peerTable.leaseRequest(9)
        guard case .held = peerTable.acquire(&leaseRequest) else {
          return #expect(Bool(false), "it is the first one's")
        }
      }
      withExtendedLifetime((held, new)) {}
    }

    private func lease(_ hash: UInt64, on peerTable: PeerTable) -> Lease? {
      var leaseRequest = peerTable.leaseRequest(hash)
      if case .acquired(let lease) = peerTable.acquire(&leaseRequest) { return lease }
      return nil
    }

    @Test(arguments: ["a fault in another mapping", "a signal that a process sends"])
    func `any other SIGBUS ends the process as before`(cause: String) async throws {
      _ = try await fixture.openTier()
      let path = fixture.directory + "/other"
      let file = open(path, O_RDWR | O_CREAT, 0o600)
      defer { close(file) }
      #expect(ftruncate(file, 4096) == 0)
      let memory = try #require(mmap(nil, 4096, PROT_READ, MAP_SHARED, file, 0))
      defer { munmap(memory, 4096) }
      #expect(ftruncate(file, 0) == 0)
      let isFault = cause.hasPrefix("a fault")
      let child = csystem_fork()
      if child == 0 {
        // Only plain system calls: other threads may have held locks at the fork.
        if isFault { _exit(Int32(memory.load(as: UInt8.self))) }
        // Swift's own handler, if it is installed, survives the first signal.
        for _ in 0..<3 { kill(getpid(), SIGBUS) }
        _exit(0)
      }
      var status: Int32 = 0
      #expect(waitpid(child, &status, 0) == child)
      // Ended by the signal, or by the handler of ThreadSanitizer.
      #expect(status & 0x7f == SIGBUS || status >> 8 != 0)
    }

    @Test(arguments: ["index.sqlite", "index.sqlite-wal"], [0, 1, 2])
    func `workers whose index is truncated warn once and continue with a new one`(name: String, part: Int) async throws
    {
      // The first rows are in the database, the others in the write-ahead log.
      let first = try await fixture.openTier()
      for number in 0..<120 { _ = try await first.store([1, UInt8(number % 251)], as: fixture.draft("\(number)")) }
      await first.close()
      let tiers = [try await fixture.openTier(), try await fixture.openTier()]
      for number in 120..<140 {
        _ = try await tiers[number % 2].store([1, UInt8(number % 251)], as: fixture.draft("\(number)"))
        await tiers[number % 2].commitNow()
      }
      try truncateFile(name, toPart: part)
      for number in 0..<200 {
        let tier = tiers[number / 3 % 2]
        for found in await tier.look(up: "\(number)") {
          guard let read = try? await tier.read(found) else { continue }
          #expect(read == [1, UInt8(number % 251)] || read == [2, UInt8(number % 251)])
        }
        if number % 2 == 0 { _ = try? await tier.store([2, UInt8(number % 251)], as: fixture.draft("\(number)")) }
        // As after each batch of work.
        _ = await tier.runMaintenance()
      }
      fixture.advance(IndexSession.retryInterval + 1)
      for tier in tiers {
        _ = await tier.runMaintenance()
        let stored = try await tier.store([3], as: fixture.draft("later"))
        await tier.commitNow()
        #expect(await tier.look(up: "later") == [stored])
        await tier.commitNow()
      }
      #expect(await tiers[0].look(up: "later").count == 1)
      let warnings = fixture.warnings.withLock { $0 }
      #expect(1...2 ~= warnings.count)
      #expect(warnings.allSatisfy { $0.contains("the index") || $0.contains("the cache's index") })
    }
  }
#endif
