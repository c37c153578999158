import Foundation
import HTTPTypes
import Testing
import Threads

@testable import ImageStore

@Suite struct DiskTierTests {
  @Test func `a use recorded from another thread is entered in the usage journal of an idle tier`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier(verify: .never)
    let stored = try await tier.store([1], as: fixture.draft("a"))
    _ = await tier.runMaintenance()  // what is due after opening
    let entered = Locked<RetentionTracker.Use?>(nil)
    fixture.executor.setAfterBatch {
      let (wake, use) = tier.assumeIsolated { ($0.runMaintenance(), $0.retention.unwritten.uses[stored.id]) }
      entered.withLock { $0 = use }
      entered.notify()
      return wake
    }
    fixture.advance(1)
    #expect(tier.deliverPath(of: stored) != nil)
    let use = entered.wait(timeout: .seconds(60)) { $0 }
    #expect(use == RetentionTracker.Use(at: fixture.now))
    fixture.executor.setAfterBatch(nil)
  }

  @Test func `the usage of a response is known at once, and to other workers after the flush`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier(verify: .never)
    let stored = try await tier.store([1], as: fixture.draft("a"))
    #expect(await tier.usage(of: stored) == DiskTier.Usage(lastUse: nil, count: 0))
    fixture.advance(5)
    await tier.markDelivered(stored.id, at: fixture.now)
    for _ in 0..<3 { #expect(tier.deliverPath(of: stored) != nil) }
    tier.recordUse(of: stored)
    let expected = DiskTier.Usage(lastUse: fixture.now, count: 5)
    #expect(await tier.usage(of: stored) == expected)
    await tier.close()
    let other = try await fixture.openTier()
    #expect(await other.usage(of: stored) == expected)
    var newer = stored
    newer.id = 0
    await other.remove(replacedBy: newer)
    #expect(await other.usage(of: stored) == nil)
  }

  @Test func `a stored response is found at once with every field`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    var draft = fixture.draft("https://a.test/1.jpg", partition: "me", varying: ["accept": "image/*", "x": ""])
    draft.finalURL = "https://b.test/1.jpg"
    draft.content.header = ImageHeader(.jpeg, width: 3, height: 4, frames: 5, orientation: 6)
    draft.headers.append("set-cookie", "a=1")
    draft.headers.append("set-cookie", "b=2")
    let stored = try await tier.store(bytes(5000), as: draft)
    #expect(stored.content.byteCount == 5000)
    #expect(stored.content.digest == SHA256.digest(of: bytes(5000)))
    #expect(await tier.look(up: draft.key, partition: "me") == [stored])
    #expect(try await tier.read(stored) == bytes(5000))
    #expect(await tier.check(stored))
  }

  @Test func `the file of an image is in a shard and has the extension of its format`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    for (format, ending) in [(.jpeg, ".jpg"), (.svg, ".svg"), (nil, ".bin")] as [(ImageFormat?, String)] {
      let stored = try await tier.store([1], as: fixture.draft("k\(ending)", format: format))
      let path = tier.absolutePath(of: stored)
      #expect(path.hasSuffix(ending))
      #expect(path.hasPrefix(fixture.directory + "/test/"))
      #expect(stored.file.firstIndex(of: "/") == stored.file.index(stored.file.startIndex, offsetBy: 2))
      #expect(FileManager.default.fileExists(atPath: path))
    }
  }

  @Test func `directories are accessible only to their owner`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    _ = try await tier.store([1], as: fixture.draft("a"))
    let attributes = try FileManager.default.attributesOfItem(atPath: fixture.directory + "/test")
    #expect((attributes[.posixPermissions] as? Int) == 0o700)
  }

  @Test func `a look-up never crosses partitions or variants`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    _ = try await tier.store([1], as: fixture.draft("a", partition: "x"))
    _ = try await tier.store([2], as: fixture.draft("a", variant: "w=1"))
    #expect(await tier.look(up: "a").isEmpty)
    #expect(await tier.look(up: "a", partition: "x").count == 1)
    #expect(await tier.look(up: "a", variant: "w=1").count == 1)
    #expect(await tier.variants(of: "a") == ["w=1"])
  }

  @Test func `responses with different varying fields coexist, newest first`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let webp = try await tier.store([1], as: fixture.draft("a", varying: ["accept": "image/webp"]))
    fixture.advance(1)
    let any = try await tier.store([2], as: fixture.draft("a", varying: ["accept": "*/*"]))
    #expect(await tier.look(up: "a") == [any, webp])
  }

  @Test func `the oldest response and its file are removed if too many differ in their varying fields`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    _ = try await tier.store([0], as: fixture.draft("a", variant: "w=1", varying: ["accept": "0"]))
    var stored: [StoredResponse] = []
    for number in 1...40 {
      fixture.advance(1)
      stored.append(try await tier.store([1], as: fixture.draft("a", varying: ["accept": "\(number)"])))
    }
    #expect(await tier.look(up: "a") == stored.suffix(32).reversed())
    #expect(await tier.look(up: "a", variant: "w=1").count == 1)
    #expect(fixture.imageFiles.count == 33)
    #expect(await tier.counts.entries == 33)
  }

  @Test func `a response replaces the one of its key and the file`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let old = try await tier.store([1], as: fixture.draft("a"))
    let new = try await tier.store([2], as: fixture.draft("a"))
    #expect(await tier.look(up: "a") == [new])
    #expect(new.file != old.file)
    #expect(fixture.imageFiles == [new.file])
    #expect(await tier.counts.entries == 1)
  }

  @Test func `a replaced file that was delivered is deleted when its 60 s end`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let old = try await tier.store([1], as: fixture.draft("a"), delivered: true)
    let new = try await tier.store([2], as: fixture.draft("a"))
    fixture.advance(60)
    await tier.trim()
    #expect(fixture.imageFiles == [old.file, new.file])
    #expect(await tier.counts.bytes == 8192)
    fixture.advance(1)
    await tier.trim()
    #expect(fixture.imageFiles == [new.file])
    #expect(await tier.counts.bytes == 4096)
  }

  @Test func `a 304 changes header fields and times`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    var stored = try await tier.store([1], as: fixture.draft("a"))
    stored.headers["etag"] = "new"
    stored.expiresAt += 100
    stored.validatedAt += 10
    await tier.update(stored)
    #expect(await tier.look(up: "a") == [stored])
  }

  @Test func `removing the response that another would have replaced is idempotent`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let stored = try await tier.store([1], as: fixture.draft("a"))
    await tier.remove(replacedBy: stored)
    #expect(await tier.look(up: "a") == [stored])
    await tier.remove(replacedBy: fixture.draft("a"))
    await tier.remove(replacedBy: fixture.draft("a"))
    #expect(await tier.look(up: "a").isEmpty)
    #expect(fixture.imageFiles.isEmpty)
    #expect(await tier.counts == DiskTier.Counts(entries: 0, bytes: 0, limit: 1 << 30))
  }

  @Test(arguments: [nil, bytes(9), bytes(11), bytes(10, 8)])
  func `a response whose file is missing, short, long or changed is dropped and never served`(content: [UInt8]?)
    async throws
  {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    for deliversBytes in [true, false] {
      let stored = try await tier.store(bytes(10), as: fixture.draft("a"))
      let path = tier.absolutePath(of: stored)
      if let content {
        try Data(content).write(to: URL(filePath: path))
      } else {
        try FileManager.default.removeItem(atPath: path)
      }
      if deliversBytes {
        let error = await #expect(throws: StoreError.self) { try await tier.read(stored) }
        #expect(error?.kind == .damaged)
      } else {
        #expect(await tier.check(stored) == false)
      }
      #expect(await tier.look(up: "a").isEmpty)
      #expect(fixture.imageFiles.isEmpty)
      #expect(await tier.counts.bytes == 0)
    }
  }

  @Test func `the digest is verified never or at 1 % of deliveries, as configured`() async throws {
    for (verification, expected) in [(DiskTier.Verification.never, 0...0), (.random, 1...1)] {
      let fixture = Fixture(seed: 1)
      let tier = try await fixture.openTier(verify: verification)
      let stored = try await tier.store(bytes(10), as: fixture.draft("a"))
      try Data(bytes(10, 8)).write(to: URL(filePath: tier.absolutePath(of: stored)))
      var refused = 0
      for _ in 0..<2000 where refused == 0 {
        if await !tier.check(stored) { refused += 1 }
      }
      #expect(expected.contains(refused))
    }
  }

  @Test func `a stored response is found after closing and reopening`() async throws {
    let fixture = Fixture()
    let first = try await fixture.openTier()
    let stored = try await first.store(bytes(10), as: fixture.draft("a"))
    await first.close()
    let second = try await fixture.openTier()
    #expect(await second.look(up: "a") == [stored])
    #expect(await second.counts.entries == 1)
    #expect(await first.look(up: "a").isEmpty)
    await second.sweepAll()
    await second.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.directory + "/test/workers").isEmpty)
  }

  @Test func `a namespace is a plain name of at most 64 bytes`() {
    for name in ["default", "a b".replacingOccurrences(of: " ", with: "-"), "ü", String(repeating: "x", count: 64)] {
      #expect(DiskTier.isValidNamespace(name))
    }
    for name in ["", ".", "..", ".a", "a/b", "a\\b", "a\n", "a\0", String(repeating: "x", count: 65)] {
      #expect(!DiskTier.isValidNamespace(name))
    }
  }

  @Test func `a read-only tier serves images and changes nothing`() async throws {
    let fixture = Fixture()
    let writer = try await fixture.openTier()
    let stored = try await writer.store(bytes(10), as: fixture.draft("a"))
    await writer.close()
    let before = try FileManager.default.subpathsOfDirectory(atPath: fixture.directory).sorted()
    let reader = try await fixture.openTier(mode: .readOnly)
    #expect(await reader.look(up: "a") == [stored])
    #expect(try await reader.read(stored) == bytes(10))
    await reader.markDelivered(stored.id, at: fixture.now)
    await reader.remove(replacedBy: fixture.draft("a"))
    #expect(await reader.clear(.all) == DiskTier.Cleared())
    await #expect(throws: StoreError.self) { try await reader.store([1], as: fixture.draft("b")) }
    #expect(await reader.look(up: "a") == [stored])
    await reader.close()
    #expect(try FileManager.default.subpathsOfDirectory(atPath: fixture.directory).sorted() == before)
  }

  @Test func `maintenance commits without being asked`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    installMaintenance(on: fixture.executor, tiers: [tier], scratch: nil)
    let stored = try await tier.store([1], as: fixture.draft("a"))
    let reader = ThreadExecutor(name: "reader")
    let other = fixture.makeTier(executor: reader)
    try await other.open()
    var found: [StoredResponse] = []
    while found.isEmpty {
      found = await other.look(up: "a")
      await other.commitNow()
    }
    #expect(found == [stored])
    await other.close()
    reader.stop()
    fixture.executor.setAfterBatch(nil)
    await tier.close()
  }
}
