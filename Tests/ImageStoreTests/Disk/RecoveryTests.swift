import CSQLite
import Foundation
import Testing
import Threads

@testable import ImageStore

@Suite struct RecoveryTests {
  @Test func `after a kill committed images are found, and the files of uncommitted ones are swept`() async throws {
    let fixture = Fixture()
    let dying = try await fixture.openTier()
    let kept = try await dying.store([1], as: fixture.draft("kept"))
    await dying.commitNow()
    let lost = try await dying.store([2], as: fixture.draft("lost"))
    let spool = try await dying.makeSpool()
    try await spool.append([3])
    await dying.die()

    #expect(fixture.imageFiles.count == 3)
    let tier = try await fixture.openTier()
    #expect(await tier.look(up: "kept") == [kept])
    #expect(await tier.look(up: "lost").isEmpty)
    await tier.sweepAll()
    #expect(fixture.imageFiles == [kept.file])
    #expect(!FileManager.default.fileExists(atPath: tier.absolutePath(of: lost)))
    await tier.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.directory + "/test/workers").isEmpty)
    _ = spool
  }

  @Test func `an orphan that may have been delivered in the last 60 s survives the sweep and counts against the limit`()
    async throws
  {
    let fixture = Fixture()
    fixture.clock.withLock { $0 = Int(Date().timeIntervalSince1970) }
    let dying = try await fixture.openTier()
    _ = await dying.look(up: "opens the index")
    let orphan = try await dying.store([1], as: fixture.draft("a"), delivered: true)
    await dying.die()
    // Just after the modification time of the file, however long the test takes.
    let path = dying.absolutePath(of: orphan)
    let modified = try #require(try FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date)
    fixture.clock.withLock { $0 = Int(modified.timeIntervalSince1970) + 1 }
    let tier = try await fixture.openTier()
    await tier.sweepAll()
    #expect(fixture.imageFiles == [orphan.file])
    #expect(await tier.counts.bytes == 4096)
    fixture.advance(62)
    _ = await tier.runMaintenance()
    #expect(fixture.imageFiles.isEmpty)
    #expect(await tier.counts.bytes == 0)
  }

  @Test func `a missing index is created again, and the images of the old one are swept`() async throws {
    let fixture = Fixture()
    let first = try await fixture.openTier()
    _ = try await first.store([1], as: fixture.draft("a"))
    await first.close()
    for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
      try? FileManager.default.removeItem(atPath: fixture.directory + "/test/" + name)
    }
    let tier = try await fixture.openTier()
    #expect(await tier.look(up: "a").isEmpty)
    let stored = try await tier.store([2], as: fixture.draft("b"))
    await tier.sweepAll()
    #expect(fixture.imageFiles == [stored.file])
    #expect(fixture.warnings.withLock { $0 }.isEmpty)
  }

  @Test func `the images of an index that is deleted under a worker are swept`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    _ = try await tier.store([1], as: fixture.draft("a"))
    await tier.commitNow()
    let spool = try await tier.makeSpool()
    try await spool.append([3])
    for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
      try FileManager.default.removeItem(atPath: fixture.directory + "/test/" + name)
    }
    await tier.sweepAll()
    #expect(fixture.imageFiles.count == 1)
    let stored = try await tier.store(.spool(spool), as: fixture.draft("b"), delivered: false)
    await tier.sweepAll()
    #expect(fixture.imageFiles == [stored.file])
    #expect(await tier.look(up: "b") == [stored])
  }

  @Test func `images without rows that were too young for the sweep are deleted by a later worker`() async throws {
    let fixture = Fixture()
    let first = try await fixture.openTier()
    let orphan = try await first.store([1], as: fixture.draft("a"))
    await first.close()
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: Double(fixture.now))],
      ofItemAtPath: first.absolutePath(of: orphan))
    for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
      try? FileManager.default.removeItem(atPath: fixture.directory + "/test/" + name)
    }
    let second = try await fixture.openTier()
    _ = await second.look(up: "a")
    await second.sweepAll()
    #expect(fixture.imageFiles.count == 1)
    await second.close()
    fixture.advance(62)
    let third = try await fixture.openTier()
    #expect(await third.counts.bytes == 4096)
    _ = await third.runMaintenance()
    #expect(fixture.imageFiles.isEmpty)
    await third.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.directory + "/test/workers").isEmpty)
  }

  @Test(arguments: [
    "DROP TABLE responses", "DROP TABLE totals", "ALTER TABLE responses DROP COLUMN uses",
    "CREATE TRIGGER refusal BEFORE INSERT ON responses BEGIN SELECT RAISE(IGNORE); END",
  ])
  func `an index that lacks a table or refuses rows is replaced with one warning`(change: String) async throws {
    let fixture = Fixture()
    let first = try await fixture.openTier()
    _ = try await first.store([1], as: fixture.draft("a"))
    await first.close()
    try Database(path: fixture.directory + "/test/index.sqlite", mode: .readWrite).execute(change)
    let tier = try await fixture.openTier()
    _ = try? await tier.store([2], as: fixture.draft("b"))
    let stored = try await tier.store([3], as: fixture.draft("c"))
    #expect(await tier.look(up: "c") == [stored])
    #expect(fixture.warnings.withLock { $0.count } == 1)
  }

  @Test(arguments: ["folder", "pipe"])
  func `what is no file in place of the index disables the tier with one warning`(kind: String) async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let path = fixture.directory + "/test/index.sqlite"
    #expect((kind == "pipe" ? mkfifo(path, 0o600) : mkdir(path, 0o700)) == 0)
    await #expect(throws: StoreError.self) { try await fixture.openTier() }
    for _ in 0..<3 {
      #expect(await tier.look(up: "a").isEmpty)
      await #expect(throws: StoreError.self) { try await tier.store([1], as: fixture.draft("a")) }
      fixture.advance(IndexSession.retryInterval + 1)
    }
    #expect(fixture.imageFiles.isEmpty)
    #expect(fixture.warnings.withLock { $0.count } == 1)
    try FileManager.default.removeItem(atPath: fixture.directory + "/test/index.sqlite")
    #expect(try await tier.read(tier.store([1], as: fixture.draft("a"))) == [1])
  }

  @Test(arguments: ["garbage", "cut", "empty", "garbled pages"])
  func `a damaged index is replaced with one warning and leads to no wrong byte`(kind: String) async throws {
    let fixture = Fixture(seed: 5)
    let path = fixture.directory + "/test/index.sqlite"
    let first = try await fixture.openTier()
    for number in 0..<200 { _ = try await first.store([UInt8(number)], as: fixture.draft("\(number)")) }
    await first.close()
    let url = URL(filePath: path)
    var content = [UInt8](try Data(contentsOf: url))
    switch kind {
    case "garbage": content = bytes(content.count, 0xa5)
    case "cut": content = Array(content[..<(content.count / 2)])
    case "empty": content = []
    default:
      for place in stride(from: 8192, to: content.count, by: 3) { content[place] ^= 0x5a }
    }
    try Data(content).write(to: url)

    let tier = try await fixture.openTier()
    for number in 0..<200 {
      for found in await tier.look(up: "\(number)") {
        if let read = try? await tier.read(found) { #expect(read == [UInt8(number)]) }
      }
    }
    let stored = try await tier.store([1], as: fixture.draft("new"))
    _ = await tier.clear(.host("nowhere", port: nil))
    _ = try await tier.store([1], as: fixture.draft("newer"))
    #expect(await tier.look(up: "new") == [stored] || kind == "garbled pages")
    #expect(await tier.look(up: "newer").count == 1)
    #expect(fixture.warnings.withLock { $0.count } == (kind == "empty" ? 0 : 1))
  }

  @Test func `an index whose key leads to the row of another image is replaced`() async throws {
    let fixture = Fixture()
    let path = fixture.directory + "/test/index.sqlite"
    let first = try await fixture.openTier()
    for key in ["a", "b"] { _ = try await first.store([1], as: fixture.draft(key)) }
    await first.close()
    // The SQL index is hidden while a row changes, so that it keeps the old key.
    let (root, sql) = try #require(
      try Database(path: path, mode: .readWrite)
        .prepare("SELECT rootpage, sql FROM sqlite_schema WHERE name = 'responses_by_key'")
        .first { ($0.int(0), $0.text(1)) })
    try Database(path: path, mode: .readWrite).execute(
      "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'responses_by_key'")
    try Database(path: path, mode: .readWrite).execute(
      """
      UPDATE responses SET key = 'c' WHERE key = 'a'; PRAGMA writable_schema = ON;
      INSERT INTO sqlite_schema VALUES ('index', 'responses_by_key', 'responses', \(root), '\(sql)')
      """)
    let tier = try await fixture.openTier()
    #expect(await tier.look(up: "a").isEmpty)
    #expect(fixture.warnings.withLock { $0.count } == 1)
    let stored = try await tier.store([2], as: fixture.draft("a"))
    #expect(await tier.look(up: "a") == [stored])
  }

  @Test func `an index of a newer version is not changed, and causes one warning`() async throws {
    let fixture = Fixture()
    let first = try await fixture.openTier()
    let stored = try await first.store([1], as: fixture.draft("a"))
    await first.close()
    let index = try Database(path: fixture.directory + "/test/index.sqlite", mode: .readWrite)
    try index.execute("PRAGMA user_version = \(IndexSchema.version + 1)")
    let steps = Locked(0)
    let counting = FileSystem { operation in
      if operation == .index { steps.withLock { $0 += 1 } }
      return nil
    }
    let tier = try await fixture.openTier(files: counting)
    for _ in 0..<3 {
      #expect(await tier.look(up: "a").isEmpty)
      let before = steps.withLock { $0 }
      await #expect(throws: StoreError.self) { try await tier.store([1], as: fixture.draft("b")) }
      #expect(steps.withLock { $0 } == before, "it is not opened again for each")
      fixture.advance(1000)
    }
    await tier.sweepAll()
    await tier.close()
    #expect(fixture.imageFiles == [stored.file])
    #expect(fixture.warnings.withLock { $0.count } == 1)
    #expect(try index.prepare("SELECT count(*) FROM responses").first { $0.int(0) } == 1)
  }

  @Test func `after a system start the digest of a file is verified once`() async throws {
    let fixture = Fixture()
    fixture.boot.withLock { $0 = "one" }
    let reads = Locked(0)
    let counting = FileSystem { operation in
      if operation == .read { reads.withLock { $0 += 1 } }
      return nil
    }
    let first = try await fixture.openTier()
    for key in ["whole", "lost", "checked"] { _ = try await first.store(bytes(5000, 3), as: fixture.draft(key)) }
    await first.commitNow()
    await first.die()
    fixture.boot.withLock { $0 = "two" }
    let tier = try await fixture.openTier(verify: .random, files: counting)
    let lost = try #require(await tier.look(up: "lost").first)
    // It has its size, but zeros instead of the bytes that never reached the disk.
    try Data(bytes(5000, 0)).write(to: URL(filePath: tier.absolutePath(of: lost)))
    await #expect(throws: StoreError.self) { try await tier.read(lost) }
    #expect(await tier.look(up: "lost").isEmpty)
    for _ in 0..<2 {
      let whole = try #require(await tier.look(up: "whole").first)
      #expect(await tier.check(whole))
      let checked = try #require(await tier.look(up: "checked").first)
      #expect(try await tier.read(checked) == bytes(5000, 3))
      await tier.flushUses()
      await tier.commitNow()
    }
    await tier.close()

    fixture.boot.withLock { $0 = "three" }
    let later = try await fixture.openTier(verify: .random, files: counting)
    let believed = try #require(await later.look(up: "whole").first)
    let before = reads.withLock { $0 }
    var isRead = 0
    for _ in 0..<20 where await later.check(believed) { isRead = reads.withLock { $0 } - before }
    #expect(isRead < 40, "but for one in a hundred")
  }

  @Test func `lock files with names that no worker generates are ignored`() async throws {
    let fixture = Fixture()
    try await fixture.openTier().close()
    for name in ["-0000001.lock", "+0000001.lock", "ffffffff.lock", "0000000g.lock"] {
      try Data().write(to: URL(fileURLWithPath: fixture.directory + "/test/workers/" + name))
    }
    let tier = try await fixture.openTier()
    let stored = try await tier.store([1], as: fixture.draft("a"))
    await tier.sweepAll()
    #expect(await tier.look(up: "a") == [stored])
  }

  @Test func `foreign files are not deleted`() async throws {
    let fixture = Fixture()
    let dying = try await fixture.openTier()
    _ = try await dying.store([1], as: fixture.draft("a"))
    await dying.die()
    let root = URL(filePath: fixture.directory + "/test")
    let names = [
      "README", "00/photo.jpg", "00/0123.tmp", "00/0123456789abcdef-01234567.exe", "workers/note",
      "01/0123456789abcd00-01234567.jpg",  // the name of another shard
    ]
    for name in names {
      let url = root.appending(path: name)
      try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data([1]).write(to: url)
    }
    let tier = try await fixture.openTier()
    _ = await tier.look(up: "a")
    await tier.sweepAll()
    _ = await tier.clear(.all)
    for name in names { #expect(FileManager.default.fileExists(atPath: root.appending(path: name).path)) }
  }

  @Test func `a directory that is deleted meanwhile is created again`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let old = try await tier.store([1], as: fixture.draft("a"))
    await tier.commitNow()
    try FileManager.default.removeItem(atPath: fixture.directory + "/test")
    await #expect(throws: StoreError.self) { try await tier.read(old) }
    let stored = try await tier.store([2], as: fixture.draft("b"))
    #expect(try await tier.read(stored) == [2])
    await tier.close()
    let again = try await fixture.openTier()
    #expect(await again.look(up: "b") == [stored])
    #expect(await again.look(up: "a").isEmpty)
    #expect(fixture.warnings.withLock { $0.isEmpty })
  }

  @Test func `maintenance notices a deleted directory, and the next use creates it again`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    _ = try await tier.store([1], as: fixture.draft("a"))
    await tier.commitNow()
    try FileManager.default.removeItem(atPath: fixture.directory + "/test")
    fixture.advance(MaintenanceSchedule.surveyInterval)
    _ = await tier.runMaintenance()
    #expect(await tier.look(up: "a").isEmpty)
    let stored = try await tier.store([2], as: fixture.draft("b"))
    #expect(await tier.look(up: "b") == [stored])
    #expect(fixture.warnings.withLock { $0.isEmpty })
  }

  @Test func `a worker with the instance number of an earlier one never reuses its file names`() async throws {
    let (first, second) = (Fixture(seed: 3), Fixture(seed: 3))
    let earlier = try await first.openTier()
    var files: Set<String> = []
    for number in 0..<3 { files.insert(try await earlier.store([1], as: first.draft("\(number)")).file) }
    await earlier.close()
    try FileManager.default.removeItem(atPath: second.directory)
    try FileManager.default.moveItem(atPath: first.directory, toPath: second.directory)
    let later = try await second.openTier()
    _ = await later.look(up: "")
    for number in 3..<6 { files.insert(try await later.store([1], as: second.draft("\(number)")).file) }
    #expect(files.count == 6)
    #expect(await later.counts.entries == 6)
  }

  @Test func `opening an unusable directory fails with its path`() async throws {
    let fixture = Fixture()
    let path = fixture.directory + "/test"
    try Data().write(to: URL(filePath: path))
    let error = await #expect(throws: StoreError.self) { try await fixture.makeTier().open() }
    #expect(error?.kind == .unusable(path: path))
    #expect(error?.message.contains(path) == true)
  }

  @Test func `opening a tier on a read-only file system fails`() async throws {
    let fixture = Fixture()
    let files = FileSystem { $0 == .create ? EROFS : nil }
    let error = await #expect(throws: StoreError.self) { try await fixture.makeTier(files: files).open() }
    #expect(error?.kind == .unusable(path: fixture.directory + "/test"))
  }

  @Test func `a file that was delivered before the clock was set back is not kept forever`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier(limit: 4096)
    _ = try await tier.store([1], as: fixture.draft("a"), delivered: true)
    fixture.advance(-86_400)
    _ = try await tier.store([1], as: fixture.draft("b"))
    #expect(await tier.look(up: "a").isEmpty)
    #expect(await tier.counts.entries == 1)
  }

  @Test(arguments: [false, true])
  func `a row or a pending deletion with a time in the future does not stay forever`(isOpenMeanwhile: Bool) async throws
  {
    let fixture = Fixture()
    let year = 365 * 86_400
    var tier = try await fixture.openTier(limit: 2 * 4096)
    _ = await tier.runMaintenance()
    fixture.advance(year)
    _ = try await tier.store([1], as: fixture.draft("ahead"))
    let cleared = try await tier.store([2], as: fixture.draft("cleared"), delivered: true)
    _ = await tier.clear(.key("cleared"))
    _ = await tier.runMaintenance()
    if !isOpenMeanwhile { await tier.close() }
    fixture.advance(-year)
    if !isOpenMeanwhile { tier = try await fixture.openTier(limit: 2 * 4096) }
    _ = await tier.counts
    _ = await tier.runMaintenance()
    fixture.advance(70)
    _ = await tier.runMaintenance()
    #expect(!fixture.imageFiles.contains(cleared.file))
    for key in ["b", "c"] {
      fixture.advance(1)
      _ = try await tier.store([3], as: fixture.draft(key))
    }
    #expect(await tier.look(up: "ahead").isEmpty)
    #expect(await tier.look(up: "b").count == 1)
  }

  @Test func `a clock that jumps ahead evicts nothing`() async throws {
    let fixture = Fixture()
    let tier = try await fixture.openTier()
    let stored = try await tier.store([1], as: fixture.draft("a"))
    _ = await tier.runMaintenance()
    fixture.advance(365 * 86_400)
    _ = await tier.runMaintenance()
    #expect(await tier.look(up: "a") == [stored])
    #expect(try await tier.read(stored) == [1])
  }
}
