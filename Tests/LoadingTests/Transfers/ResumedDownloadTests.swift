import Foundation
import HTTPCaching
import HTTPTransport
import HTTPTypes
import ImageCodec
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// Partial bodies of interrupted attempts, and their use by the next attempt.
struct ResumedDownloadTests {
  private typealias Bench = DownloadTests.Bench

  private let disk: DiskFixture
  private let image = Array("GIF89a".utf8) + body(1_000_000 - 6)
  /// In memory, and on disk.
  private static let offsets = [1000, 400_000]

  init() throws { disk = try DiskFixture() }

  private func begin(_ count: Int, length: Int64? = 1_000_000, headers: HeaderFields = ["etag": "\"a\""]) -> Bench {
    let bench = Bench(disk: disk)
    #expect(bench.begin(length: length, headers: headers) == .proceed)
    #expect(bench.receiveAll(Array(image[..<count])) == .proceed)
    return bench
  }

  private func partialBody(_ count: Int) throws -> PartialBody { try #require(begin(count).fail().partialBody) }

  /// A response with the range from `offset`.
  private func answerRest(_ bench: Bench, from offset: Int, _ headers: HeaderFields = ["etag": "\"a\""]) -> Verdict {
    var headers = headers
    headers.append("content-range", "bytes \(offset)-999999/1000000")
    return bench.begin(status: 206, length: Int64(1_000_000 - offset), headers: headers)
  }

  private func content(of body: Download.Body) throws -> [UInt8] {
    switch body {
    case .bytes(let bytes): return bytes
    case .spool(let spooled): return try disk.onDisk { try spooled.spool.bytes(from: 0, count: 2_000_000) }
    case .failed(let error): throw error
    }
  }

  // MARK: - Partial bodies

  @Test(arguments: offsets, [.truncated, .network, .timeout, .cancelled] as [TransferError.Kind])
  func `the received bytes become a partial body`(count: Int, kind: TransferError.Kind) throws {
    let ending = begin(count).fail(kind)
    let partialBody = try #require(ending.partialBody)
    #expect(partialBody.byteCount == Int64(count))
    #expect(partialBody.format == .gif)
    #expect(try content(of: partialBody.body) == Array(image[..<count]))
    #expect(try content(of: ending.body).isEmpty)
  }

  @Test(arguments: [.tooLarge, .aborted, .malformed] as [TransferError.Kind])
  func `an error that makes the bytes useless leaves no partial body`(kind: TransferError.Kind) {
    #expect(begin(1000).fail(kind).partialBody == nil)
  }

  @Test func `there is no partial body without a validator, without bytes, or of a complete body`() {
    #expect(begin(1000, headers: [:]).fail().partialBody == nil)
    #expect(begin(0).fail().partialBody == nil)
    #expect(begin(1000, length: 1000).fail().partialBody == nil)
  }

  @Test func `a body that the disk refused leaves no partial body`() throws {
    disk.scratchFault.withLock { $0 = { $0 == .create ? EACCES : nil } }
    disk.cacheFault.withLock { $0 = { $0 == .create ? EACCES : nil } }
    // The disk fails only after all bytes have arrived: otherwise it might end the transfer earlier.
    let gate = disk.closeGate()
    let bench = begin(400_000)
    gate.open()
    let ending = bench.fail()
    #expect(ending.partialBody == nil)
    guard case .failed = ending.body else { Issue.record("it was written"); return }
  }

  // MARK: - Continuation

  @Test(arguments: offsets) func `a range is appended to the partial body`(offset: Int) throws {
    let bench = Bench(after: try partialBody(offset), disk: disk)
    #expect(bench.progress.withLock { $0 }.isEmpty)
    #expect(answerRest(bench, from: offset) == .proceed)
    #expect(bench.receiveAll(Array(image[offset...])) == .proceed)
    let ending = bench.succeed(status: 206, bytes: Int64(1_000_000 - offset))
    #expect(try content(of: ending.body) == image)
    #expect(ending.received == 1_000_000)
    #expect(ending.format == .gif)
    let summary = try ending.outcome.get()
    #expect(summary.head.status == 200)
    #expect(summary.head.contentLength == 1_000_000)
    #expect(summary.bytesReceived == Int64(1_000_000 - offset))
    #expect(bench.progress.withLock { $0 }.allSatisfy { $0 > offset })
    #expect(bench.totals.withLock { $0 }.allSatisfy { $0 == 1_000_000 })
    guard case .spool(let spooled) = ending.body else { return }
    #expect(try disk.onDisk { try spooled.spool.digest() } == SHA256.digest(of: image))
  }

  @Test func `a second interruption leaves a longer partial body`() throws {
    let bench = Bench(after: try partialBody(1000), disk: disk)
    _ = answerRest(bench, from: 1000)
    #expect(bench.receiveAll(Array(image[1000..<500_000])) == .proceed)
    let more = try #require(bench.fail().partialBody)
    #expect(more.byteCount == 500_000)
    #expect(try content(of: more.body) == Array(image[..<500_000]))
    let last = Bench(after: more, disk: disk)
    _ = answerRest(last, from: 500_000)
    #expect(last.receiveAll(Array(image[500_000...])) == .proceed)
    #expect(try content(of: last.succeed(status: 206).body) == image)
  }

  @Test(arguments: offsets) func `a whole body replaces the partial body`(offset: Int) throws {
    let bench = Bench(after: try partialBody(offset), disk: disk)
    #expect(bench.begin(length: 500_000, headers: ["etag": "\"b\""]) == .proceed)
    let other = Array("GIF87a".utf8) + body(499_994, seed: 9)
    #expect(bench.receiveAll(other) == .proceed)
    let ending = bench.succeed()
    #expect(try content(of: ending.body) == other)
    #expect(ending.received == 500_000)
    #expect(bench.discarded.value == 1)
    try disk.onDisk {}
    #expect(disk.files(under: "test").count == 1)
  }

  @Test(arguments: offsets) func `after a range mismatch the request must be repeated`(offset: Int) throws {
    let bench = Bench(after: try partialBody(offset), disk: disk)
    #expect(answerRest(bench, from: offset - 1) == .discard)
    let ending = bench.succeed(status: 206)
    #expect(ending.isMismatch)
    #expect(ending.contentError == nil)
    #expect(ending.partialBody == nil)
    #expect(bench.discarded.value == 1)
    try disk.onDisk {}
    #expect(disk.files(under: "test").isEmpty)
    #expect(bench.progress.withLock { $0 }.isEmpty)
  }

  @Test(arguments: offsets) func `a missing response leaves the partial body unchanged`(offset: Int) throws {
    let partialBody = try #require(Bench(after: try partialBody(offset), disk: disk).fail(.timeout).partialBody)
    #expect(partialBody.byteCount == Int64(offset))
    #expect(try content(of: partialBody.body) == Array(image[..<offset]))
    disk.storage.discard(partialBody.body)
  }

  @Test(arguments: offsets) func `an error that may pass leaves the partial body unchanged`(offset: Int) throws {
    let passing = Bench(after: try partialBody(offset), disk: disk)
    #expect(passing.begin(status: 503) == .discard)
    let ending = passing.succeed(status: 503)
    #expect(ending.hadRange && ending.isMismatch)
    let final = Bench(after: ending.partialBody, disk: disk)
    #expect(final.begin(status: 403) == .discard)
    #expect(final.succeed(status: 403).partialBody == nil)
  }

  @Test func `a refusal of the worker itself is not due to the range`() throws {
    let bench = Bench(after: try partialBody(1000), disk: disk)
    bench.download.refuse(with: LoadError(.overloaded, "the rate allows the redirect in 60 s only"))
    let ending = bench.fail(.cancelled)
    #expect(ending.hadRange && !ending.mayBeDueToAddedFields)
    if let partialBody = ending.partialBody { disk.storage.discard(partialBody.body) }
  }

  @Test func `a range that is longer than declared is rejected`() throws {
    let bench = Bench(after: try partialBody(1000), disk: disk)
    let part: HeaderFields = ["etag": "\"a\"", "content-range": "bytes 1000-999999/1000000"]
    #expect(bench.begin(status: 206, headers: part) == .proceed)
    #expect(bench.receiveAll(Array(image[1000...]) + [0]) == .abort)
    let ending = bench.fail(.aborted)
    guard case .failure(let error) = ending.outcome else { Issue.record("it is no success"); return }
    #expect(error.kind == .malformed)
    #expect(ending.partialBody == nil)
    if case .spool(let spooled) = ending.body { disk.storage.discard(.spool(spooled)) }
    try disk.onDisk {}
    #expect(disk.files(under: "test").isEmpty)
  }

  @Test func `a range that ends early is truncated and leaves a longer partial body`() throws {
    let bench = Bench(after: try partialBody(1000), disk: disk)
    let part: HeaderFields = ["etag": "\"a\"", "content-range": "bytes 1000-999999/1000000"]
    #expect(bench.begin(status: 206, headers: part) == .proceed)
    #expect(bench.receiveAll(Array(image[1000..<2000])) == .proceed)
    let ending = bench.succeed(status: 206)
    guard case .failure(let error) = ending.outcome else { Issue.record("it is no success"); return }
    #expect(error.kind == .truncated)
    let partialBody = try #require(ending.partialBody)
    #expect(partialBody.byteCount == 2000)
    #expect(try content(of: partialBody.body) == Array(image[..<2000]))
  }

  @Test func `a format that the partial body does not reveal is recognised in the rest`() throws {
    let bench = Bench(after: try partialBody(3), disk: disk)
    _ = answerRest(bench, from: 3)
    #expect(bench.receive(image[3..<100]) == .proceed)
    #expect(bench.fail().partialBody?.format == .gif)
    let page = Bench(after: try partialBody(3), disk: disk)
    _ = answerRest(page, from: 3)
    #expect(page.receive("<html>".utf8) == .abort)
    #expect(page.fail(.aborted).contentError?.kind == .notAnImage)
  }

  @Test func `a body moves to the scratch folder if the disk fills up during the rest`() throws {
    let bench = Bench(after: try partialBody(400_000), disk: disk)
    disk.cacheFault.withLock { $0 = { $0 == .write ? ENOSPC : nil } }
    _ = answerRest(bench, from: 400_000)
    #expect(bench.receiveAll(Array(image[400_000...])) == .proceed)
    let ending = bench.succeed(status: 206)
    guard case .spool(let spooled) = ending.body else { Issue.record("\(ending.body)"); return }
    #expect(spooled.isScratch)
    #expect(try content(of: ending.body) == image)
    #expect(try disk.onDisk { try spooled.spool.digest() } == SHA256.digest(of: image))
    #expect(disk.files(under: "test").isEmpty)
  }

  // MARK: - Budget

  /// A partial body of any declared size.
  private func partialBody(like other: PartialBody, _ byteCount: Int64, isScratch: Bool = false) -> PartialBody {
    var body = other.body
    if case .spool(let spooled) = body { body = .spool(SpooledBody(spool: spooled.spool, isScratch: isScratch)) }
    return PartialBody(response: other.response, body: body, byteCount: byteCount, format: nil)
  }

  private func insertAll(_ partialBody: PartialBody, into kept: inout PartialBodyBudget) -> Int {
    var count = 0
    while kept.insert(partialBody) { count += 1 }
    return count
  }

  @Test func `the budget limits partial bodies in memory and spools`() throws {
    var kept = PartialBodyBudget(diskLimit: 1 << 30)
    let small = partialBody(like: try partialBody(1000), 256 << 10)
    #expect(insertAll(small, into: &kept) == PartialBodyBudget.maxBytesInMemory >> 18)
    let large = try partialBody(400_000)
    #expect(insertAll(large, into: &kept) == PartialBodyBudget.maxSpools)
    kept.remove(large)
    kept.remove(small)
    #expect([small, large, small, large].map { kept.insert($0) } == [true, true, false, false])
    disk.storage.discard(large.body)
  }

  @Test func `the budget limits partial bodies on disk, except a single one`() throws {
    var kept = PartialBodyBudget(diskLimit: 800 << 20)
    let large = try partialBody(400_000)
    let small = partialBody(like: try partialBody(1000), 1000)
    let cached = partialBody(like: large, 30 << 20)
    let scratch = partialBody(like: large, 100 << 20, isScratch: true)
    #expect(insertAll(cached, into: &kept) == 3)
    #expect(insertAll(scratch, into: &kept) == 2)
    kept.setDiskLimit(1200 << 20)
    #expect(insertAll(cached, into: &kept) == 2)
    for _ in 0..<5 { kept.remove(cached) }
    for _ in 0..<2 { kept.remove(scratch) }

    let huge = partialBody(like: large, 900 << 20)
    #expect([huge, small, scratch, cached].map { kept.insert($0) } == [true, true, true, false])
    disk.storage.discard(large.body)
  }
}
