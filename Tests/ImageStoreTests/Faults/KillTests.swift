import Foundation
import HTTPTypes
import Testing
import Threads

@testable import ImageStore

/// A worker that is killed while it replaces images: from some operation on, nothing that it does reaches the disk.
@Suite struct KillTests {
  /// One byte longer for each version, so that a row of one version never matches the file of another.
  private func content(_ version: Int) -> [UInt8] { bytes(5000 + version, UInt8(version)) }

  private func variant(of original: StoredResponse) -> StoredResponse {
    var variant = original
    variant.id = 0
    variant.variant = "v1,w=1"
    variant.content.digest = []
    variant.metadata = DecodeMetadata(
      source: ImageDescription(
        ImageHeader(.jpeg, width: 3), byteCount: original.content.byteCount, digest: original.content.digest))
    return variant
  }

  /// Three images: one has a variant, and one has the maximum number of Vary variants.
  private func storeFirst(in tier: DiskTier, _ fixture: Fixture) async throws {
    let original = try await tier.store(content(1), as: fixture.draft("bytes"))
    _ = try await tier.store(content(1), as: variant(of: original))
    _ = try await tier.store(content(1), as: fixture.draft("spool"))
    for number in 0..<StoredResponse.maxVaryVariants {
      _ = try await tier.store(content(1), as: fixture.draft("varying", varying: ["accept": "\(number)"]))
    }
  }

  private func replace(in tier: DiskTier, _ fixture: Fixture) async {
    _ = try? await tier.store(content(2), as: fixture.draft("bytes"))
    if let spool = try? await tier.makeSpool() {
      do {
        try await spool.append(content(2))
        _ = try await tier.store(.spool(spool), as: fixture.draft("spool"), delivered: false)
      } catch {
        await spool.discard()
      }
    }
    _ = try? await tier.store(content(2), as: fixture.draft("varying", varying: ["accept": "another"]))
    await tier.remove(replacedBy: update(fixture))
    _ = await tier.runMaintenance()
    await tier.commitNow()
  }

  /// A new version of "bytes" that may not be stored.
  private func update(_ fixture: Fixture) -> StoredResponse {
    var response = fixture.draft("bytes")
    response.content.digest = SHA256.digest(of: content(3))
    return response
  }

  @Test(arguments: [false, true])
  func `after a kill at any operation each row has the complete file of the old or the new image`(
    hasPeers: Bool
  ) async throws {
    var (number, isOver) = (1, false)
    while !isOver {
      let place: Comment = "killed at operation \(number)"
      let (fixture, faults) = (Fixture(), Faults())
      let first = try await fixture.openTier()
      try await storeFirst(in: first, fixture)
      await first.commitNow()
      if !hasPeers { await first.close() }
      fixture.advance(100)

      let dying = try await fixture.openTier(files: faults.fileSystem)
      #expect(await dying.look(up: "bytes").count == 1)
      faults.fail(at: number, with: EIO, .fromThenOn)
      await replace(in: dying, fixture)
      await dying.die()
      isOver = faults.stop() < number

      let tier = try await fixture.openTier()
      var rows: [StoredResponse] = []
      for key in ["bytes", "spool", "varying"] { rows += await tier.look(up: key) }
      rows += await tier.look(up: "bytes", variant: "v1,w=1")
      for row in rows {
        let read = FileManager.default.contents(atPath: tier.absolutePath(of: row)).map { [UInt8]($0) }
        #expect(read == content(row.content.byteCount == 5001 ? 1 : 2), place)
        #expect(await tier.check(row), place)
      }
      #expect(await tier.look(up: "spool").count == 1, place)
      #expect(await tier.look(up: "varying").count == StoredResponse.maxVaryVariants, place)
      if hasPeers { await first.close() }
      // Files that were replaced or lost their row are deleted by then.
      await tier.sweepAll()
      fixture.advance(deliveredFileLifetime + MaintenanceSchedule.flushInterval + 1)
      _ = await tier.runMaintenance()
      #expect(fixture.imageFiles == Set(rows.map(\.file)), place)
      #expect(await tier.counts.bytes == fixture.bytesOnDisk, place)
      await tier.close()
      number += 1
    }
    #expect(number > 90)
  }
}
