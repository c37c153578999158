import Foundation
import HTTPTypes
import ImageCodec
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// The processing of a complete body.
struct StoreOperationTests {
  private func arrival(
    _ body: Download.Body, _ delivery: LoadRequest.Delivery, tiers: LoadRequest.Tiers = .all,
    largestInMemory: Int64 = 0
  ) -> StoreOperation {
    var request = request("data:image/png;base64,")
    request.delivery = delivery
    return StoreOperation(
      body: body, format: nil,
      draft: StoredResponse(
        key: "a", url: "http://a.example/", requestTime: 1, responseTime: 1, storedAt: 1, validatedAt: 1, expiresAt: 9,
        content: ImageDescription()),
      tiers: tiers, largestInMemory: largestInMemory, needsSize: false,
      deliveries: [(LoadID(1), nil, DeliveryPlan(request))])
  }

  private func request(_ url: String, key: String = "a") -> LoadRequest {
    LoadRequest(url: url, source: .inline(bytes: [], mediaType: "image/png"), key: key)
  }

  private func spooled(_ bytes: [UInt8], in disk: DiskFixture) throws -> Download.Body {
    let sink = disk.makeSink()
    for piece in bytes.pieces() { _ = sink.append(piece) }
    return .spool(try sink.finish().get())
  }

  @Test(arguments: [FileSystem.Operation.rename, .index])
  func `a large body is still delivered if the cache fails to commit it`(
    operation: FileSystem.Operation
  ) throws {
    let disk = try DiskFixture()
    let bytes = body(600_000)
    let arrival = arrival(try spooled(bytes, in: disk), .path, largestInMemory: 1 << 20)
    disk.cacheFault.withLock { $0 = { $0 == operation ? EIO : nil } }
    let stored = try disk.onDisk { [storage = disk.storage] in try arrival.store(in: storage).get() }
    disk.cacheFault.withLock { $0 = nil }
    #expect(!stored.response.isOnDisk)
    #expect(stored.bytes == bytes, "nothing else has it for the next load")
    #expect(stored.response.content.digest == SHA256.digest(of: bytes))
    let path = try #require(try stored.delivered[LoadID(1)]?.get().path)
    #expect([UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) == bytes)
    #expect(disk.files(under: "test").isEmpty)
  }

  @Test func `a body on disk is not read back for memory`() throws {
    let disk = try DiskFixture()
    let arrival = arrival(try spooled(body(600_000), in: disk), .none, largestInMemory: 1 << 20)
    let stored = try disk.onDisk { [storage = disk.storage] in try arrival.store(in: storage).get() }
    #expect(stored.response.isOnDisk)
    #expect(stored.bytes == nil)
  }

  @Test func `a decode is prepared with the store of its source, once for all loads, and releases what it held`() throws
  {
    let disk = try DiskFixture()
    var arrival = arrival(.bytes(Scene.image), .none)
    let plans = [Ask.small(), Ask.small(), nil].compactMap { DecodePlan.asked(transform: $0, checks: $0 == nil) }
    (arrival.format, arrival.decodes) = (.gif, (plans, 1000))
    var stored = try disk.onDisk { [storage = disk.storage, arrival] in try arrival.store(in: storage).get() }
    let source = Candidate(response: stored.response, bytes: nil, location: .disk)
    let order = DecodePreparation(source, .encode, plans[0], maxPixels: 1000)
    let tier = try #require(disk.storage.tier)
    let path = tier.absolutePath(of: stored.response)
    guard case .ready(let task, let file?) = stored.decodes.take(order) else {
      Issue.record("the variant is prepared")
      return
    }
    guard case .file(let input) = task.source, input == path else {
      Issue.record("the source is the file of the cache")
      return
    }
    #expect(stored.decodes.take(order) == nil, "one decode serves both loads")
    disk.storage.removeReader(of: file)
    stored.decodes.discard(in: disk.storage)
    let id = stored.response.id
    #expect(try disk.onDisk { !tier.assumeIsolated { $0.retention.hasReaders(id) } })
  }

  @Test(arguments: [LoadRequest.Delivery.none, .data, .path])
  func `a large body that is not stored becomes a file only for loads that want one`(delivery: LoadRequest.Delivery)
    throws
  {
    let disk = try DiskFixture()
    let bytes = body(600_000)
    let arrival = arrival(try spooled(bytes, in: disk), delivery, tiers: [])
    let stored = try disk.onDisk { [storage = disk.storage] in try arrival.store(in: storage).get() }
    let delivered = try #require(try stored.delivered[LoadID(1)]?.get())
    #expect(stored.response.content.digest == SHA256.digest(of: bytes))
    #expect(stored.bytes == (delivery == .data ? bytes : nil))
    #expect(delivered.bytes == stored.bytes)
    #expect((delivered.path != nil) == (delivery == .path))
    #expect(disk.files(under: "test").isEmpty)
    #expect(disk.files(under: "scratch").count == (delivery == .path ? 1 : 0))
  }

  @Test func `data URLs, which are stored truncated, are distinguished by their keys`() {
    let url = "data:image/png;base64,"
    #expect(request(url, key: "x").namesImage(of: request(url, key: "x")))
    #expect(!request(url, key: "x").namesImage(of: request(url, key: "y")))
    #expect(!request(url, key: "x").namesImage(of: request("data:,", key: "x")))
  }
}
