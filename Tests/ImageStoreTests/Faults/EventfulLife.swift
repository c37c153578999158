import Foundation
import HTTPCaching
import HTTPTypes
import Testing
import Threads

@testable import ImageStore

/// A scenario with every operation of a disk tier: store, replace, read, evict, clear, spool, retain, resume, close and
/// open. Each step may fail; its reported result must then be true.
struct EventfulLife {
  let fixture = Fixture()
  let faults = Faults()
  /// The contents that each key may have: those passed to the tier, newest last. Empty if none.
  private var contents: [String: [[UInt8]]] = [:]
  private var cleared: Set<String> = []
  private var place: Comment = ""
  private var tornByDeath: BodySpool?

  private let identity = PartialRecord.Identity(key: "partial", partition: "", request: bytes(32))
  private let half = bytes(6000, 21)

  /// Runs the scenario with the n-th operation failing, and checks the final state. Returns the number of operations.
  mutating func live(failingAt number: Int, with code: Int32, _ extent: Faults.Extent) async throws -> Int {
    place = "operation \(number) fails with \(code), \(extent)"
    // Another worker has died, with an image without a row and a temporary file.
    let dead = try await fixture.openTier()
    try await put("old", bytes(3000, 1), into: dead)
    await dead.commitNow()
    _ = try await dead.store(bytes(5000, 2), as: fixture.draft("unlisted"))
    let torn = try await dead.makeSpool()
    try await torn.append(bytes(10))
    await dead.die()
    tornByDeath = torn

    let tier = fixture.makeTier(limit: 60 * 4096, files: faults.fileSystem)
    faults.fail(at: number, with: code, extent)
    await firstHalf(of: tier)
    await tier.close()
    fixture.advance(IndexSession.retryInterval + 1)
    await secondHalf(of: tier)
    let seen = faults.stop()

    fixture.advance(IndexSession.retryInterval + 1)
    try await check(tier)
    return seen
  }

  private mutating func firstHalf(of tier: DiskTier) async {
    _ = try? await tier.open()
    await read("old", from: tier)
    for number in 0..<4 { try? await put("small \(number)", bytes(4000 + number, UInt8(number)), into: tier) }
    try? await put("small 0", bytes(4000, 9), into: tier)
    for number in 0..<4 { await read("small \(number)", from: tier) }
    await tier.flushUses()
    _ = await tier.runMaintenance()
    await spool("large", 20_000, into: tier)
    await retainPartial(in: tier)
    await clear(.key("small 1"), "small 1", in: tier)
    await tier.commitNow()
  }

  private mutating func secondHalf(of tier: DiskTier) async {
    _ = try? await tier.open()
    await read("large", from: tier)
    await resumePartial(in: tier)
    for number in 4..<8 { try? await put("small \(number)", bytes(4000 + number, UInt8(number)), into: tier) }
    if let found = await tier.look(up: "small 2").first {
      var updated = found
      updated.headers["etag"] = "\"new\""
      await tier.update(updated)
    }
    await tier.setLimit(10 * 4096)
    await clear(.prefix("small 3"), "small 3", in: tier)
    _ = await tier.runMaintenance()
    await read("large", from: tier)
    await clear(.all, nil, in: tier)
    try? await put("last", bytes(4000, 77), into: tier)
    await read("last", from: tier)
    _ = await tier.runMaintenance()
  }

  // MARK: Steps

  private mutating func put(_ key: String, _ content: [UInt8], into tier: DiskTier) async throws {
    contents[key, default: []].append(content)
    cleared.remove(key)
    let stored = try await tier.store(content, as: fixture.draft(key))
    #expect(stored.content.digest == SHA256.digest(of: content), place)
  }

  private func read(_ key: String, from tier: DiskTier) async {
    for found in await tier.look(up: key) {
      // A file that was just delivered survives a clear, so that only the index hides it.
      await tier.markDelivered(found.id, at: key == "large" || key == "last" ? fixture.now : fixture.now - 100)
      if await tier.check(found), let whole = FileManager.default.contents(atPath: tier.absolutePath(of: found)) {
        #expect(isAllowed([UInt8](whole), for: key), place)
      }
      if let content = try? await tier.read(found) { #expect(isAllowed(content, for: key), place) }
    }
  }

  private func isAllowed(_ content: [UInt8], for key: String) -> Bool {
    !cleared.contains(key) && contents[key]?.contains(content) == true
  }

  private mutating func spool(_ key: String, _ count: Int, into tier: DiskTier) async {
    let content = bytes(count, 55)
    contents[key, default: []].append(content)
    guard let spool = try? await tier.makeSpool(expected: Int64(count)) else { return }
    do {
      for start in stride(from: 0, to: count, by: 7000) {
        try await spool.append(Array(content[start..<min(start + 7000, count)]))
      }
      _ = try await tier.store(.spool(spool), as: fixture.draft(key), delivered: false)
    } catch {
      await spool.discard()
    }
  }

  private func retainPartial(in tier: DiskTier) async {
    let response = PartialResponse(
      url: "http://h/partial", headers: [:], validator: "\"v\"", completeLength: 12_000)
    let partial = PartialRecord(response, identity: identity, url: "http://h/partial")
    guard let spool = try? await tier.makeSpool(of: partial) else { return }
    try? await spool.append(half)
    await spool.retainForResume()
  }

  private mutating func resumePartial(in tier: DiskTier) async {
    guard await tier.hasPartial(key: "partial", partition: ""),
      let (partial, spool) = await tier.resumePartial(identity)
    else {
      return
    }
    #expect(partial.response.completeLength == 12_000, place)
    let count = Int(await spool.byteCount)
    // The file may contain a part of the piece that failed.
    #expect(count <= half.count, place)
    let rest = bytes(6000 + half.count - count, 22)
    contents["partial"] = [Array(half[..<count]) + rest]
    do {
      try await spool.append(rest)
      _ = try await tier.store(.spool(spool), as: fixture.draft("partial"), delivered: false)
      await tier.removePartials(of: identity)
    } catch {
      await spool.discard()
    }
  }

  /// Clears and records the keys that must not reappear, unless the clear reports a failure.
  private mutating func clear(_ filter: ClearFilter, _ key: String?, in tier: DiskTier) async {
    let result = await tier.clear(filter)
    guard result.failure == nil else { return }
    for key in key.map({ [$0] }) ?? Array(contents.keys) { cleared.insert(key) }
  }

  // MARK: Final checks

  private mutating func check(_ tier: DiskTier) async throws {
    for key in contents.keys { await read(key, from: tier) }
    #expect(fixture.warnings.withLock { $0.count } <= 1, place)
    if await tier.hasPeers {
      // The dead worker still seems alive, so files that it may have delivered use the space.
      await tier.sweepAll()
      fixture.advance(deliveredFileLifetime + MaintenanceSchedule.flushInterval + 1)
      _ = await tier.runMaintenance()
    }
    try await put("later", bytes(100, 88), into: tier)
    #expect(await tier.look(up: "later").count == 1, place)
    await tier.close()

    let next = try await fixture.openTier()
    for key in contents.keys { await read(key, from: next) }
    #expect(await next.look(up: "later").count == 1, place)
    await next.sweepAll()
    for key in contents.keys {
      for found in await next.look(up: key) {
        #expect(throws: Never.self, place) {
          try FileManager.default.attributesOfItem(atPath: next.absolutePath(of: found))
        }
      }
    }
    #expect(await next.counts.bytes == fixture.bytesOnDisk, place)
    #expect(fixture.bytesOnDisk <= 60 * 4096, place)
    await next.close()
  }
}
