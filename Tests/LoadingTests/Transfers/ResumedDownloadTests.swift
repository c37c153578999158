import Foundation
import HTTPCaching
import HTTPTransport
import HTTPTypes
import ImageCodec
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// What an attempt that broke off leaves, and what the next one makes of it.
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

  /// An answer with everything from `offset`.
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

  // MARK: - What is left

  @Test(arguments: offsets, [.truncated, .network, .timeout, .cancelled] as [TransferError.Kind])
  func `what came is left`(count: Int, kind: TransferError.Kind) throws {
    let ending = begin(count).fail(kind)
    let partialBody = try #require(ending.partialBody)
    #expect(partialBody.byteCount == Int64(count))
    #expect(partialBody.format == .gif)
    #expect(try content(of: partialBody.body) == Array(image[..<count]))
    #expect(try content(of: ending.body).isEmpty)
  }

  @Test(arguments: [.tooLarge, .aborted, .malformed] as [TransferError.Kind])
  func `nothing is left of what may not be or cannot be trusted`(kind: TransferError.Kind) {
    #expect(begin(1000).fail(kind).partialBody == nil)
  }

  @Test func `nothing is left without a validator, without bytes, and where nothing is missing`() {
    #expect(begin(1000, headers: [:]).fail().partialBody == nil)
    #expect(begin(0).fail().partialBody == nil)
    #expect(begin(1000, length: 1000).fail().partialBody == nil)
  }

  @Test func `nothing is left of what the disk did not take`() throws {
    disk.scratchFault.withLock { $0 = { $0 == .create ? EACCES : nil } }
    disk.cacheFault.withLock { $0 = { $0 == .create ? EACCES : nil } }
    // The disk tells only when all has come: else it may end the transfer before.
    let gate = disk.closeGate()
    let bench = begin(400_000)
    gate.open()
    let ending = bench.fail()
    #expect(ending.partialBody == nil)
    guard case .failed = ending.body else { Issue.record("it was written"); return }
  }

  // MARK: - What becomes of it

  @Test(arguments: offsets) func `the rest is added to it`(offset: Int) throws {
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

  @Test func `one that breaks off again leaves more`() throws {
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

  @Test(arguments: offsets) func `a whole takes its place`(offset: Int) throws {
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

  @Test(arguments: offsets) func `after an answer that does not fit the same is asked for anew`(offset: Int) throws {
    let bench = Bench(after: try partialBody(offset), disk: disk)
    #expect(answerRest(bench, from: offset - 1) == .discard)
    let ending = bench.succeed(status: 206)
    #expect(ending.isRangeMismatch)
    #expect(!ending.isRefused)
    #expect(ending.partialBody == nil)
    #expect(bench.discarded.value == 1)
    try disk.onDisk {}
    #expect(disk.files(under: "test").isEmpty)
    #expect(bench.progress.withLock { $0 }.isEmpty)
  }

  @Test(arguments: offsets) func `no answer, or an error, leaves it as it is`(offset: Int) throws {
    let unanswered = Bench(after: try partialBody(offset), disk: disk).fail(.timeout)
    let refused = Bench(after: unanswered.partialBody, disk: disk)
    #expect(refused.begin(status: 503) == .discard)
    let partialBody = try #require(refused.succeed(status: 503).partialBody)
    #expect(partialBody.byteCount == Int64(offset))
    #expect(try content(of: partialBody.body) == Array(image[..<offset]))
  }

  @Test func `a rest that is longer than it said is not trusted`() throws {
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

  @Test func `one that ends before it said is cut short, and more of a beginning`() throws {
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

  @Test func `a format that did not show yet shows in the rest`() throws {
    let bench = Bench(after: try partialBody(3), disk: disk)
    _ = answerRest(bench, from: 3)
    #expect(bench.receive(image[3..<100]) == .proceed)
    #expect(bench.fail().partialBody?.format == .gif)
    let page = Bench(after: try partialBody(3), disk: disk)
    _ = answerRest(page, from: 3)
    #expect(page.receive("<html>".utf8) == .abort)
    #expect(page.fail(.aborted).isRefused)
  }

  @Test func `a disk that is full within the rest sends the body to the scratch folder`() throws {
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

  // MARK: - How much

  /// One of whatever size it says.
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

  @Test func `only so much is kept`() throws {
    var kept = PartialBodyBudget(diskLimit: 1 << 30)
    let small = partialBody(like: try partialBody(1000), 256 << 10)
    #expect(insertAll(small, into: &kept) == PartialBodyBudget.mostBytesInMemory >> 18)
    let large = try partialBody(400_000)
    #expect(insertAll(large, into: &kept) == PartialBodyBudget.mostSpools)
    kept.remove(large)
    kept.remove(small)
    #expect([small, large, small, large].map { kept.insert($0) } == [true, true, false, false])
    disk.storage.discard(large.body)
  }

  @Test func `only so much of the disk is kept, and of a single body anything`() throws {
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
