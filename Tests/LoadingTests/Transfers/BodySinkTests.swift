import Foundation
import HTTPTransport
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// Large bodies on their way to disk.
struct BodySinkTests {
  private func content(of spooled: SpooledBody, in disk: DiskFixture) throws -> (bytes: [UInt8], digest: [UInt8]) {
    try disk.onDisk {
      let length = Int(spooled.spool.length)
      return (try spooled.spool.bytes(from: 0, count: length + 1), try spooled.spool.digest())
    }
  }

  private func expect(_ spooled: SpooledBody, holds bytes: [UInt8], in disk: DiskFixture) throws {
    let (found, digest) = try content(of: spooled, in: disk)
    #expect(found == bytes)
    #expect(digest == SHA256.digest(of: bytes))
    #expect(spooled.spool.id > 0)
  }

  @Test(arguments: [0, 1, 128 << 10, (128 << 10) + 1, 3 << 20])
  func `a body is written to disk unchanged`(size: Int) throws {
    let disk = try DiskFixture()
    let sink = disk.makeSink()
    let bytes = body(size)
    for piece in bytes.pieces() { _ = sink.append(piece) }
    let spooled = try sink.finish().get()
    #expect(!spooled.isScratch)
    try expect(spooled, holds: bytes, in: disk)
  }

  @Test func `a body that must not be stored goes to the scratch folder`() throws {
    let disk = try DiskFixture()
    let sink = disk.makeSink(keeping: false)
    let bytes = body(300_000)
    for piece in bytes.pieces() { _ = sink.append(piece) }
    let spooled = try sink.finish().get()
    #expect(spooled.isScratch)
    #expect(disk.files(under: "test").isEmpty)
    try expect(spooled, holds: bytes, in: disk)
  }

  @Test func `a body without a consumer leaves no file`() throws {
    let disk = try DiskFixture()
    do {
      let sink = disk.makeSink()
      for piece in body(300_000).pieces() { _ = sink.append(piece) }
      let spooled = try sink.finish().get()
      #expect(disk.files(under: "test").count == 1)
      try disk.onDisk { spooled.spool.drop() }
    }
    #expect(disk.files(under: "test").isEmpty)
  }

  // MARK: - A slow disk

  @Test func `a slow disk pauses and resumes the sender once`() throws {
    let disk = try DiskFixture()
    let resumed = Tally()
    let sink = disk.makeSink(onRoom: { resumed.add() })
    let bytes = body(4 << 20)
    var pieces = bytes.pieces()[...]
    var pauses = 0
    while !pieces.isEmpty {
      let gate = disk.closeGate()
      var sent = 0
      while let piece = pieces.popFirst() {
        sent += piece.count
        if sink.append(piece) == .pause {
          pauses += 1
          break
        }
      }
      #expect(sent <= BodySink.capacity + (256 << 10), "not more than that waits for the disk")
      if !pieces.isEmpty { #expect(resumed.value == pauses - 1, "nobody is told of room that is not there") }
      gate.open()
      resumed.wait(for: pauses)
    }
    #expect(pauses >= 3)
    let spooled = try sink.finish().get()
    #expect(resumed.value == pauses)
    try expect(spooled, holds: bytes, in: disk)
  }

  @Test func `bytes that arrive during a pause do not end it`() throws {
    let disk = try DiskFixture()
    let resumed = Tally()
    let sink = disk.makeSink(onRoom: { resumed.add() })
    let piece = body(128 << 10)
    let gates = (0..<9).map { _ in
      let gate = disk.closeGate()
      _ = piece.withUnsafeBytes { sink.append($0) }
      return gate
    }
    // Two are written: less waits than the limit, and more than half of it.
    for gate in gates.prefix(3) { gate.open() }
    #expect(piece.withUnsafeBytes { sink.append($0) } == .pause)
    #expect(resumed.value == 0)
    for gate in gates { gate.open() }
    resumed.wait(for: 1)
    _ = try sink.finish().get()
    #expect(resumed.value == 1)
  }

  @Test func `a fast disk does not pause the sender`() throws {
    let disk = try DiskFixture()
    let sink = disk.makeSink(onRoom: { Issue.record("nobody paused") })
    for piece in body(2 << 20).pieces() {
      #expect(sink.append(piece) == .proceed)
      try disk.onDisk {}
    }
    _ = try sink.finish().get()
  }

  @Test func `a body that is interrupted during a pause ends`() throws {
    let disk = try DiskFixture()
    let resumed = Tally()
    let sink = disk.makeSink(onRoom: { resumed.add() })
    let gate = disk.closeGate()
    for piece in body(2 << 20).pieces() where sink.append(piece) != .proceed { break }
    let promise = Promise<Result<SpooledBody, StoreError>>()
    sink.finish { promise.fulfil($0) }
    #expect(promise.count == 0)
    gate.open()
    #expect(throws: Never.self) { try promise.value.get() }
    #expect(resumed.value == 1)
  }

  // MARK: - A full cache

  @Test func `a body goes to the scratch folder if the cache is full at its start`() throws {
    let disk = try DiskFixture(limit: 1_000_000)
    let sink = disk.makeSink(expected: 400_000)
    let bytes = body(400_000)
    for piece in bytes.pieces() { _ = sink.append(piece) }
    let spooled = try sink.finish().get()
    #expect(spooled.isScratch)
    try expect(spooled, holds: bytes, in: disk)
    #expect(disk.files(under: "test").isEmpty)
  }

  @Test(arguments: [2_000_000, 3_000_000, 7_000_000, 10_000_000])
  func `a body moves to the scratch folder if it exceeds the cache's limit`(limit: Int64) throws {
    let disk = try DiskFixture(limit: limit)
    let sink = disk.makeSink()
    let bytes = body(1_500_000)
    for piece in bytes.pieces() { _ = sink.append(piece) }
    let spooled = try sink.finish().get()
    #expect(spooled.isScratch)
    try expect(spooled, holds: bytes, in: disk)
    #expect(disk.files(under: "test").isEmpty, "nothing of it stays in the cache")
    let counts = try disk.onDisk { [tier = disk.tier] in tier.assumeIsolated { $0.counts } }
    #expect(counts.bytes == 0)
  }

  @Test func `the remains of a failed write are not part of the body`() throws {
    let disk = try DiskFixture()
    let sink = disk.makeSink()
    let bytes = body(900_000)
    let pieces = bytes.pieces()
    for piece in pieces.prefix(pieces.count / 2) { _ = sink.append(piece) }
    try disk.onDisk {}
    let temporary = try #require(disk.files(under: "test").first)
    // A full disk accepts a part of a write before it refuses the rest.
    disk.cacheFault.withLock {
      $0 = { operation in
        guard operation == .write else { return nil }
        let file = open(temporary, O_WRONLY | O_APPEND)
        write(file, "rest", 4)
        close(file)
        return ENOSPC
      }
    }
    for piece in pieces.dropFirst(pieces.count / 2) { _ = sink.append(piece) }
    let spooled = try sink.finish().get()
    #expect(spooled.isScratch)
    try expect(spooled, holds: bytes, in: disk)
  }

  @Test(arguments: [0, 3_000_000]) func `a body fails if both folders fail, and the sender is not blocked`(limit: Int64)
    throws
  {
    let disk = try DiskFixture(limit: max(limit, 1))
    disk.scratchFault.withLock { $0 = { $0 == .write ? ENOSPC : nil } }
    let paused = Tally()
    let resumed = Tally()
    let sink = disk.makeSink(onRoom: { resumed.add() })
    for piece in body(3 << 20).pieces() where sink.append(piece) == .pause {
      paused.add()
      resumed.wait(for: paused.value)
    }
    try disk.onDisk {}
    #expect(sink.append(body(100)) == .abort, "there is no use in more")
    guard case .failure(let error) = sink.finish() else { Issue.record("there was no room anywhere"); return }
    #expect(error.kind == .diskFull)
    #expect(disk.files(under: "test").isEmpty)
    #expect(disk.files(under: "scratch").isEmpty)
    #expect(resumed.value == paused.value)
  }

  @Test func `a body does not fail if the cache cannot be written`() throws {
    let disk = try DiskFixture()
    disk.cacheFault.withLock { $0 = { $0 == .create ? EROFS : nil } }
    let sink = disk.makeSink()
    let bytes = body(500_000)
    for piece in bytes.pieces() { _ = sink.append(piece) }
    let spooled = try sink.finish().get()
    #expect(spooled.isScratch)
    try expect(spooled, holds: bytes, in: disk)
  }
}
