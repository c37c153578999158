import Foundation
import HTTPCaching
import HTTPTypes
import Platform
import Testing
import Threads

@testable import ImageStore

/// Partial bodies: which requests may resume them, and when they are removed.
@Suite struct PartialTests {
  private let fixture = Fixture()

  private func identity(_ key: String = "a", partition: String = "", request: UInt8 = 1) -> PartialRecord.Identity {
    PartialRecord.Identity(key: key, partition: partition, request: bytes(32, request))
  }

  private func partial(_ identity: PartialRecord.Identity, url: String = "http://h/a", length: Int64? = nil)
    -> PartialRecord
  {
    let response = PartialResponse(
      url: url + "?end", headers: ["etag": "\"v\"", "content-type": "image/png"], validator: "\"v\"",
      completeLength: length)
    return PartialRecord(response, identity: identity, url: url)
  }

  private func begin(
    _ identity: PartialRecord.Identity, _ count: Int = 5000, url: String = "http://h/a", length: Int64? = nil,
    in tier: DiskTier
  ) async throws -> BodySpool {
    let spool = try await tier.makeSpool(of: partial(identity, url: url, length: length))
    try await spool.append(bytes(count, 3))
    return spool
  }

  /// Creates a partial body and retains it for resuming.
  private func leave(
    _ identity: PartialRecord.Identity, _ count: Int = 5000, url: String = "http://h/a", in tier: DiskTier
  ) async throws {
    try await begin(identity, count, url: url, in: tier).retainForResume()
  }

  // MARK: - Resuming

  @Test func `a retained partial body is resumed once, with its record and its bytes`() async throws {
    let tier = try await fixture.openTier()
    try await begin(identity(), length: 9000, in: tier).retainForResume()
    #expect(await tier.counts.bytes == 8192)
    let (found, spool) = try #require(await tier.resumePartial(identity()))
    #expect(found == partial(identity(), length: 9000))
    #expect(await spool.byteCount == 5000)
    #expect(await tier.resumePartial(identity()) == nil)
    #expect(await tier.counts.bytes == 8192)
    try await spool.append(bytes(4000, 4))
    let stored = try await tier.store(.spool(spool), as: fixture.draft("a"), delivered: false)
    #expect(stored.content.digest == SHA256.digest(of: bytes(5000, 3) + bytes(4000, 4)))
    #expect(try await tier.read(stored) == bytes(5000, 3) + bytes(4000, 4))
    #expect(fixture.imageFiles == [stored.file])
    #expect(await tier.counts.bytes == 12288)
    await tier.commitNow()
    #expect(await tier.resumePartial(identity()) == nil)
  }

  @Test func `a resumed partial body can be extended and retained again`() async throws {
    let tier = try await fixture.openTier()
    try await leave(identity(), in: tier)
    let first = try #require(await tier.resumePartial(identity()))
    try await first.spool.append(bytes(3000, 4))
    await first.spool.retainForResume()
    let second = try #require(await tier.resumePartial(identity()))
    #expect(try await second.spool.read(from: 0, count: 10_000) == bytes(5000, 3) + bytes(3000, 4))
    #expect(try await second.spool.finalizeDigest() == SHA256.digest(of: bytes(5000, 3) + bytes(3000, 4)))
    await second.spool.discard()
    #expect(fixture.imageFiles.isEmpty)
    #expect(await tier.counts.bytes == 0)
  }

  @Test(arguments: [1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5_000_000])
  func `the digest is right if bytes are added while the earlier bytes are read`(count: Int) async throws {
    let tier = try await fixture.openTier()
    try await leave(identity(), count, in: tier)
    let (_, spool) = try #require(await tier.resumePartial(identity()))
    for step in 0..<5 {
      try await spool.append(bytes(1000, UInt8(step)))
      // Lets the executor read one more piece.
      _ = await tier.counts
    }
    let whole = bytes(count, 3) + (0..<5).flatMap { bytes(1000, UInt8($0)) }
    #expect(try await spool.finalizeDigest() == SHA256.digest(of: whole))
  }

  @Test func `a request of another identity does not resume a partial body`() async throws {
    let tier = try await fixture.openTier()
    try await leave(identity("a", partition: "user a", request: 1), in: tier)
    for other in [
      identity("b", partition: "user a"), identity(partition: "user b"), identity(),
      identity(partition: "user a", request: 2),
    ] {
      #expect(await tier.resumePartial(other) == nil)
    }
    #expect(await tier.resumePartial(identity(partition: "user a")) != nil)
  }

  @Test func `a partial body is found by its key and partition`() async throws {
    let dying = try await fixture.openTier()
    let spool = try await begin(identity("killed"), in: dying)
    #expect(await !dying.hasPartial(key: "killed", partition: ""))
    try await leave(identity("left", partition: "user a"), in: dying)
    #expect(await dying.hasPartial(key: "left", partition: "user a"))
    #expect(await !dying.hasPartial(key: "left", partition: ""))
    await dying.die()
    let tier = try await fixture.openTier()
    #expect(await tier.hasPartial(key: "left", partition: "user a"))
    #expect(await tier.takeUpPatiently(identity("left", partition: "user a")) != nil)
    #expect(await !tier.hasPartial(key: "left", partition: "user a"))
    _ = spool
  }

  @Test func `a partial body that is being written cannot be resumed`() async throws {
    let tier = try await fixture.openTier()
    let other = try await fixture.openTier()
    let spool = try await begin(identity(), in: tier)
    #expect(await tier.resumePartial(identity()) == nil)
    #expect(await other.resumePartial(identity()) == nil)
    await other.sweepOnce()
    #expect(fixture.imageFiles.count == 1)
    await spool.discard()
    #expect(fixture.imageFiles.isEmpty)
  }

  @Test func `two workers never resume the same partial body`() async throws {
    let executors = [ThreadExecutor(name: "one"), ThreadExecutor(name: "two")]
    let tiers = executors.map { fixture.makeTier(executor: $0) }
    for (tier, executor) in zip(tiers, executors) {
      try await tier.open()
      installMaintenance(on: executor, tiers: [tier], scratch: nil)
    }
    for round in 0..<30 {
      try await leave(identity("\(round)"), in: tiers[round % 2])
      let taken = await withTaskGroup(of: Bool.self) { group in
        for tier in tiers { group.addTask { await tier.resumePartial(identity("\(round)")) != nil } }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(taken == 1)
    }
    for executor in executors { executor.stop() }
  }

  @Test func `the largest of several partial bodies is resumed`() async throws {
    let tier = try await fixture.openTier()
    for count in [5000, 20_000, 9000] { try await leave(identity(), count, in: tier) }
    let (_, spool) = try #require(await tier.resumePartial(identity()))
    #expect(await spool.byteCount == 20_000)
  }

  @Test func `a partial body larger than the maximum of the request is left for other requests`() async throws {
    let tier = try await fixture.openTier()
    try await begin(identity("known"), length: 9000, in: tier).retainForResume()
    try await leave(identity("unknown"), 4 * 4096, in: tier)
    #expect(await tier.resumePartial(identity("known"), maxBytes: 8999) == nil)
    #expect(await tier.resumePartial(identity("unknown"), maxBytes: 4 * 4096) == nil)
    #expect(await tier.resumePartial(identity("known"), maxBytes: 9000) != nil)
    #expect(await tier.resumePartial(identity("unknown"), maxBytes: 5 * 4096) != nil)
  }

  @Test func `a partial body of complete length is not resumed`() async throws {
    let tier = try await fixture.openTier()
    try await begin(identity(), length: 5000, in: tier).retainForResume()
    #expect(await tier.resumePartial(identity()) == nil)
    #expect(fixture.imageFiles.isEmpty)
  }

  @Test func `a partial body that is empty or has no row is not retained`() async throws {
    let tier = try await fixture.openTier()
    try await tier.makeSpool(of: partial(identity())).retainForResume()
    let plain = try await tier.makeSpool()
    try await plain.append([1])
    await plain.retainForResume()
    #expect(fixture.imageFiles.isEmpty)
    #expect(await tier.counts.bytes == 0)
  }

  @Test func `a row without its file is dropped`() async throws {
    let tier = try await fixture.openTier()
    try await leave(identity(), in: tier)
    for path in fixture.imageFiles { try FileManager.default.removeItem(atPath: fixture.directory + "/test/" + path) }
    #expect(await tier.resumePartial(identity()) == nil)
    #expect(await tier.counts.bytes == 0)
    #expect(!tier.mayHavePartials)
  }

  // MARK: - Other workers and system starts

  @Test func `a partial body that a killed worker was writing is resumed by the next worker`() async throws {
    let dying = try await fixture.openTier()
    let spool = try await begin(identity(), in: dying)
    let plain = try await dying.makeSpool()
    try await plain.append([1])
    await dying.die()
    let tier = try await fixture.openTier()
    #expect(tier.mayHavePartials)
    let taken = await tier.takeUpPatiently(identity())
    #expect(await taken?.spool.byteCount == 5000)
    await tier.sweepAll()
    #expect(fixture.imageFiles.count == 1)
    _ = (spool, plain)
  }

  @Test func `the sweep keeps the partial body of a dead worker`() async throws {
    let dying = try await fixture.openTier()
    let spool = try await begin(identity(), in: dying)
    await dying.die()
    let tier = try await fixture.openTier()
    await tier.sweepAll()
    #expect(await tier.counts.bytes == 8192)
    #expect(fixture.imageFiles.count == 1)
    await tier.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.directory + "/test/workers").isEmpty)
    let later = try await fixture.openTier()
    await later.sweepAll()
    #expect(await later.resumePartial(identity()) != nil)
    _ = spool
  }

  @Test(arguments: [false, true]) func `a worker that closes while it writes retains the partial body`(isRetained: Bool)
    async throws
  {
    let ending = try await fixture.openTier()
    var spool: BodySpool? = try await begin(identity(), in: ending)
    await ending.close()
    try await spool?.append(bytes(1000, 4))
    if isRetained { await spool?.retainForResume() }
    spool = nil
    let tier = try await fixture.openTier()
    #expect(await tier.takeUpPatiently(identity())?.spool.byteCount == 6000)
  }

  @Test func `partial bodies from before a system start are not resumed`() async throws {
    let ended = try await fixture.openTier()
    try await leave(identity("left"), in: ended)
    await ended.close()
    let dying = try await fixture.openTier()
    let spool = try await begin(identity("killed"), in: dying)
    await dying.die()
    fixture.boot.withLock { $0 = "second" }
    let tier = try await fixture.openTier()
    #expect(await tier.takeUpPatiently(identity("killed")) == nil)
    #expect(await tier.resumePartial(identity("left")) == nil)
    await tier.sweepAll()
    #expect(fixture.imageFiles.isEmpty)
    #expect(await tier.counts.bytes == 0)
    _ = spool
  }

  @Test func `a worker resumes only its own partial bodies if the system does not identify its runs`() async throws {
    fixture.boot.withLock { $0 = nil }
    let tier = try await fixture.openTier()
    try await leave(identity("a"), in: tier)
    try await leave(identity("b"), in: tier)
    let other = try await fixture.openTier()
    #expect(await other.resumePartial(identity("a")) == nil)
    #expect(await tier.resumePartial(identity("a")) != nil)
    await tier.close()
    let later = try await fixture.openTier()
    #expect(await later.resumePartial(identity("b")) == nil)
  }

  @Test func `a cache of version 1 can be read and is migrated`() async throws {
    let first = try await fixture.openTier()
    var stored = try await first.store([1], as: fixture.draft("a"))
    await first.close()
    let path = fixture.directory + "/test/index.sqlite"
    let index = try Database(path: path, mode: .readWrite)
    try index.dropVersion6()
    try index.dropVersion4()
    try index.dropVersion3()
    try index.execute("DROP TABLE partials; PRAGMA user_version = 1")
    stored.isVerified = false
    let reading = try await fixture.openTier(mode: .readOnly)
    #expect(await reading.look(up: "a") == [stored])
    #expect(await reading.resumePartial(identity()) == nil)
    await reading.close()
    let tier = try await fixture.openTier()
    #expect(await tier.look(up: "a") == [stored])
    try await leave(identity(), in: tier)
    #expect(await tier.resumePartial(identity()) != nil)
    #expect(fixture.warnings.withLock { $0 }.isEmpty)
  }

  // MARK: - Removal

  @Test func `partial bodies use at most a quarter of the limit, and the oldest are removed first`() async throws {
    let tier = try await fixture.openTier(limit: 80 * 4096)
    for number in 0..<5 {
      try await leave(identity("\(number)"), 5 * 4096, in: tier)
      fixture.advance(1)
    }
    #expect(await tier.counts.bytes == 20 * 4096)
    #expect(await tier.resumePartial(identity("0")) == nil)
    #expect(await tier.resumePartial(identity("1")) != nil)
    await tier.setLimit(40 * 4096)
    #expect(await tier.resumePartial(identity("2")) == nil)
    #expect(await tier.resumePartial(identity("3")) != nil)
  }

  @Test func `partial bodies are evicted before images`() async throws {
    let tier = try await fixture.openTier(limit: 8 * 4096)
    let old = try await tier.store(bytes(4096), as: fixture.draft("old"))
    fixture.advance(1)
    try await leave(identity("a"), 4096, in: tier)
    fixture.advance(1)
    try await leave(identity("b"), 4096, in: tier)
    for number in 0..<6 { _ = try await tier.store(bytes(4096), as: fixture.draft("\(number)")) }
    #expect(await tier.look(up: "old") == [old])
    #expect(await tier.resumePartial(identity("a")) == nil)
    #expect(await tier.counts.bytes <= 8 * 4096)
    #expect(fixture.bytesOnDisk <= 8 * 4096)
  }

  @Test func `partial bodies expire after a day`() async throws {
    let tier = try await fixture.openTier()
    try await leave(identity(), in: tier)
    fixture.advance(PartialFiles.lifetime - 1)
    _ = await tier.runMaintenance()
    let (_, spool) = try #require(await tier.resumePartial(identity()))
    await spool.retainForResume()
    fixture.advance(1)
    #expect(await tier.resumePartial(identity()) == nil)
    _ = await tier.runMaintenance()
    #expect(fixture.imageFiles.isEmpty)
    #expect(await tier.counts.bytes == 0)
  }

  @Test func `removing the partial bodies of a stored response spares one that is being written`() async throws {
    let tier = try await fixture.openTier()
    for _ in 0..<2 { try await leave(identity(), in: tier) }
    try await leave(identity(request: 2), in: tier)
    let spool = try await begin(identity(), in: tier)
    await tier.removePartials(of: identity())
    #expect(fixture.imageFiles.count == 2)
    #expect(await tier.resumePartial(identity()) == nil)
    #expect(await tier.resumePartial(identity(request: 2)) != nil)
    await spool.retainForResume()
    #expect(await tier.resumePartial(identity()) != nil)
  }

  static let filters: [(ClearFilter, isMatch: Bool)] = [
    (.all, true), (.key("a"), true), (.key("b"), false), (.prefix("a"), true), (.prefix("b"), false),
    (.url("http://h/a", key: "x"), true), (.url("http://h/b", key: "a"), true), (.url("http://h/b", key: "b"), false),
    (.host("h", port: nil), true), (.host("h", port: 81), false), (.host("g", port: nil), false),
    (.olderThan(seconds: 5), true), (.olderThan(seconds: 500), false), (.expired, false),
  ]

  @Test(arguments: filters) func `clear removes the partial bodies that match the filter`(
    filter: ClearFilter, isMatch: Bool
  ) async throws {
    let tier = try await fixture.openTier()
    try await leave(identity(), in: tier)
    let spool = try await begin(identity(), in: tier)
    fixture.advance(10)
    #expect(await tier.clear(filter) == DiskTier.Cleared())
    // The file that is being written is removed when it breaks, unless the filter depends on time.
    await spool.retainForResume()
    #expect(fixture.imageFiles.count == (!isMatch ? 2 : filter.dependsOnTime ? 1 : 0))
    #expect(await (tier.resumePartial(identity()) == nil) == (isMatch && !filter.dependsOnTime))
  }

  @Test(arguments: [FileSystem.Operation.rename, .open, .status, .index])
  func `a failure to resume loses at most the partial body`(operation: FileSystem.Operation) async throws {
    let isFailing = Locked(false)
    let files = FileSystem { asked in isFailing.withLock { $0 } && asked == operation ? EIO : nil }
    let tier = try await fixture.openTier(files: files)
    try await leave(identity(), in: tier)
    isFailing.withLock { $0 = true }
    #expect(await tier.resumePartial(identity()) == nil)
    isFailing.withLock { $0 = false }
    fixture.advance(60)
    _ = await tier.resumePartial(identity())
    let stored = try await tier.store([1], as: fixture.draft("x"))
    #expect(await tier.look(up: "x") == [stored])
  }
}

extension DiskTier {
  /// Retries, since a child process that another test forks also holds the lock of a dead worker until it executes its
  /// program.
  fileprivate func takeUpPatiently(_ identity: PartialRecord.Identity) -> (partial: PartialRecord, spool: BodySpool)? {
    let deadline = Instant.now + .seconds(60)
    while true {
      if let taken = resumePartial(identity) { return taken }
      guard hasPeers, .now < deadline else { return nil }
      usleep(5000)
      schedule.surveyAt = .distantPast
      detectDeadPeers()
    }
  }
}
