import Foundation
import HTTPTypes
import ImageCodec
import Platform
import Testing
import Threads

@testable import HTTPTransport
@testable import ImageStore
@testable import Loading

/// The handling of a transfer's body.
struct DownloadTests {
  /// A download under test, and its recorded output.
  final class Bench: Sendable {
    let disk: DiskFixture
    let ending = Promise<Download.Outcome>()
    let progress = Locked<[Int64]>([])
    let totals = Locked<[Int64?]>([])
    let clock = Locked(Instant.now)
    let resumed = Tally()
    let sinks = Tally()
    let discarded = Tally()
    let download: Download

    init(acceptsAnything: Bool = false, after partialBody: PartialBody? = nil, disk: DiskFixture) {
      self.disk = disk
      let configuration = Download.Configuration(
        acceptsAnything: acceptsAnything, requestHeaders: [:],
        makeSink: { [disk, sinks] head, _, spooled, onRoom in
          sinks.add()
          return disk.storage.makeSink(
            keeping: true, expected: head.contentLength, continuing: spooled, onRoom: onRoom)
        },
        discard: { [disk, discarded] body in
          disk.storage.discard(body)
          discarded.add()
        },
        onProgress: { [progress, totals] received, total in
          progress.withLock { $0.append(received) }
          totals.withLock { $0.append(total) }
        },
        onEnd: { [ending] in ending.fulfil($0) }, unixTime: { 1_700_000_000 }, now: { [clock] in clock.withLock { $0 } }
      )
      download = Download(configuration, partialBody: partialBody)
    }

    func begin(
      status: Int = 200, length: Int64? = nil, headers: HeaderFields = [:], isEndedByClose: Bool = false
    ) -> Verdict {
      download.began { [resumed] in resumed.add() }
      var head = Self.head(status, length, headers)
      head.isEndedByClose = isEndedByClose
      return download.received(head: head)
    }

    func receive(_ bytes: some Sequence<UInt8>) -> Verdict {
      Array(bytes).withUnsafeBytes { download.received(bytes: $0) }
    }

    /// Passes all bytes, waiting during pauses. Returns the last verdict.
    func receiveAll(_ bytes: [UInt8]) -> Verdict {
      var pauses = 0
      for piece in bytes.pieces() {
        let verdict = receive(piece)
        if verdict == .pause {
          pauses += 1
          resumed.wait(for: pauses)
        } else if verdict != .proceed {
          return verdict
        }
      }
      return .proceed
    }

    func succeed(status: Int = 200, bytes: Int64 = 0) -> Download.Outcome {
      let summary = TransferSummary(
        head: Self.head(status, nil), bytesReceived: bytes, redirects: 0,
        times: TransferTimes(startedAt: .now, endedAt: .now), requestTime: 0, responseTime: 0)
      download.finished(.success(summary))
      return ending.value
    }

    func fail(_ kind: TransferError.Kind = .truncated) -> Download.Outcome {
      download.finished(.failure(TransferError(kind, "broken")))
      return ending.value
    }

    private static func head(_ status: Int, _ length: Int64?, _ headers: HeaderFields = [:]) -> ResponseHead {
      ResponseHead(
        status: status, headers: headers, finalURL: "http://h/", httpVersion: "1.1", contentLength: length)
    }
  }

  private static let gif = Array("GIF89a".utf8)

  private func image(_ count: Int) -> [UInt8] { Self.gif + body(count - Self.gif.count) }

  private func content(of spooled: SpooledBody, in disk: DiskFixture) throws -> [UInt8] {
    try disk.onDisk { try spooled.spool.bytes(from: 0, count: Int(spooled.spool.length) + 1) }
  }

  // MARK: - Memory and disk

  @Test(arguments: [6, 1000, Download.spoolThreshold], [nil, true])
  func `a small body stays in memory, whether its length is declared or not`(size: Int, isTold: Bool?) throws {
    let bench = Bench(disk: try DiskFixture())
    #expect(bench.begin(length: isTold == nil ? nil : Int64(size)) == .proceed)
    let bytes = image(size)
    #expect(bench.receiveAll(bytes) == .proceed)
    let ending = bench.succeed(bytes: Int64(size))
    guard case .bytes(let kept) = ending.body else { Issue.record("it went to disk"); return }
    #expect(kept == bytes)
    #expect(ending.format == .gif)
    #expect(ending.contentError == nil)
    #expect(bench.sinks.value == 0)
  }

  @Test(arguments: [Download.spoolThreshold + 1, 1_000_000, 5_000_000])
  func `a large body goes to disk`(size: Int) throws {
    let disk = try DiskFixture()
    let bench = Bench(disk: disk)
    _ = bench.begin(length: Int64(size))
    let bytes = image(size)
    #expect(bench.receiveAll(bytes) == .proceed)
    let ending = bench.succeed(bytes: Int64(size))
    guard case .spool(let spooled) = ending.body else { Issue.record("it is not on disk"); return }
    #expect(try content(of: spooled, in: disk) == bytes)
    #expect(ending.format == .gif)
    #expect(bench.sinks.value == 1)
  }

  @Test func `a slow disk pauses the transfer and resumes it once per pause`() throws {
    let disk = try DiskFixture()
    let bench = Bench(disk: disk)
    _ = bench.begin()
    let gate = disk.closeGate()
    var pieces = image(4 << 20).pieces()[...]
    while let piece = pieces.popFirst(), bench.receive(piece) == .proceed {}
    #expect(!pieces.isEmpty, "it paused")
    #expect(bench.resumed.value == 0)
    gate.open()
    bench.resumed.wait(for: 1)
    try disk.onDisk {}
    #expect(bench.resumed.value == 1)
    #expect(bench.receiveAll(Array(pieces.joined())) == .proceed)
    guard case .spool = bench.succeed().body else { Issue.record("it is not on disk"); return }
  }

  @Test func `a resume before the transfer has an ID is applied later`() throws {
    let disk = try DiskFixture()
    let bench = Bench(disk: disk)
    _ = bench.download.received(
      head: ResponseHead(status: 200, headers: [:], finalURL: "", httpVersion: "2", contentLength: nil))
    let gate = disk.closeGate()
    for piece in image(4 << 20).pieces() where bench.receive(piece) == .pause { break }
    gate.open()
    try disk.onDisk {}
    bench.download.began { [resumed = bench.resumed] in resumed.add() }
    #expect(bench.resumed.value == 1)
  }

  @Test func `a disk failure is reported with the outcome`() throws {
    let disk = try DiskFixture(limit: 1)
    disk.scratchFault.withLock { $0 = { $0 == .create ? EACCES : nil } }
    let bench = Bench(disk: disk)
    _ = bench.begin()
    // Aborted, unless the whole body arrives before the disk reports the failure.
    _ = bench.receiveAll(image(2 << 20))
    guard case .failed(let error) = bench.succeed().body else { Issue.record("it was written"); return }
    #expect(error.kind == .io)
  }

  @Test func `the outcome of an interrupted transfer follows the pending writes`() throws {
    let disk = try DiskFixture()
    let bench = Bench(disk: disk)
    _ = bench.begin()
    #expect(bench.receiveAll(image(500_000)) == .proceed)
    let gate = disk.closeGate()
    bench.download.finished(.failure(TransferError(.truncated, "cut")))
    #expect(bench.ending.count == 0)
    gate.open()
    let ending = bench.ending.value
    guard case .spool(let spooled) = ending.body, case .failure(let error) = ending.outcome else {
      Issue.record("\(ending)"); return
    }
    #expect(error.kind == .truncated)
    try disk.onDisk { spooled.spool.drop() }
    #expect(disk.files(under: "test").isEmpty)
  }

  // MARK: - Recognition

  @Test func `first bytes that are not an image end the transfer`() throws {
    let bench = Bench(disk: try DiskFixture())
    _ = bench.begin()
    #expect(bench.receive("<!doctype html><html><body>no".utf8) == .abort)
    bench.download.finished(.failure(TransferError(.aborted, "stopped")))
    #expect(bench.ending.value.contentError?.kind == .notAnImage)
    #expect(bench.progress.withLock { $0 }.isEmpty)
  }

  @Test func `an image is recognised however its first bytes are split`() throws {
    let disk = try DiskFixture()
    let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + body(100)
    for size in 1...9 {
      let bench = Bench(disk: disk)
      _ = bench.begin()
      for piece in png.pieces(of: size) { #expect(bench.receive(piece) == .proceed) }
      #expect(bench.succeed().format == .png)
    }
  }

  @Test(arguments: ["GIF8", "\u{89}P"]) func `a body that ends before it is recognised is not an image`(
    text: String
  ) throws {
    let bench = Bench(disk: try DiskFixture())
    _ = bench.begin()
    let bytes = text.unicodeScalars.map { UInt8($0.value) }
    if !bytes.isEmpty { #expect(bench.receive(bytes) == .proceed) }
    let ending = bench.succeed()
    #expect(ending.contentError?.kind == .notAnImage)
    #expect(ending.format == nil)
  }

  @Test(arguments: [0, 100, 1_000_000]) func `any content is accepted if validation is off`(size: Int) throws {
    let disk = try DiskFixture()
    let bench = Bench(acceptsAnything: true, disk: disk)
    _ = bench.begin()
    let bytes = Array(repeating: Array("no image ".utf8), count: size / 9).flatMap(\.self)
    #expect(bench.receiveAll(bytes) == .proceed)
    let ending = bench.succeed()
    #expect(ending.contentError == nil)
    #expect(ending.format == nil)
    switch ending.body {
    case .bytes(let kept): #expect(kept == bytes)
    case .spool(let spooled): #expect(try content(of: spooled, in: disk) == bytes)
    case .failed(let error): Issue.record("\(error)")
    }
  }

  @Test func `an image is recognised even if validation is off`() throws {
    let bench = Bench(acceptsAnything: true, disk: try DiskFixture())
    _ = bench.begin()
    #expect(bench.receiveAll(image(1000)) == .proceed)
    #expect(bench.succeed().format == .gif)
  }

  @Test(arguments: [304, 404, 500]) func `the body of an unsuccessful response is not examined`(status: Int) throws {
    let bench = Bench(disk: try DiskFixture())
    #expect(bench.begin(status: status) == .discard)
    let ending = bench.succeed(status: status)
    #expect(ending.contentError == nil)
    guard case .bytes(let kept) = ending.body else { Issue.record("there is a body"); return }
    #expect(kept.isEmpty)
  }

  // MARK: - A body that ends with its connection

  /// A GIF with a comment of about this size.
  private func gif(_ size: Int) -> [UInt8] {
    var bytes = Array(Scene.image.dropLast())
    bytes += [0x21, 0xFE]
    for _ in 0..<(size / 256) { bytes += [UInt8](repeating: 255, count: 256) }
    return bytes + [0, 0x3B]
  }

  @Test(arguments: [0, 1000, 1_000_000]) func `an image that is cut by the end of its connection is truncated`(
    size: Int
  ) throws {
    let image = gif(size)
    let cut = Array(image.dropLast())
    let cases: [([UInt8], Bool, Bool)] = [
      (cut, true, false), (image, true, false), (image + [7], true, false), (cut, false, false), (cut, true, true),
    ]
    for (bytes, isEndedByClose, acceptsAnything) in cases {
      let bench = Bench(acceptsAnything: acceptsAnything, disk: try DiskFixture())
      _ = bench.begin(headers: ["etag": "\"a\""], isEndedByClose: isEndedByClose)
      #expect(bench.receiveAll(bytes) == .proceed)
      let ending = bench.succeed(bytes: Int64(bytes.count))
      if bytes.count < image.count, isEndedByClose, !acceptsAnything {
        guard case .failure(let error) = ending.outcome else { Issue.record("it counts as whole"); continue }
        #expect(error.kind == .truncated && error.bytesReceived == bytes.count)
        #expect(ending.partialBody?.byteCount == Int64(bytes.count), "the next attempt continues")
      } else {
        guard case .success = ending.outcome else { Issue.record("it counts as cut"); continue }
        #expect(ending.partialBody == nil)
      }
    }
  }

  // MARK: - Progress

  @Test func `progress is reported at once, and then at most eight times a second`() throws {
    let bench = Bench(disk: try DiskFixture())
    _ = bench.begin(length: 2_000_000)
    // 200 pieces, one every 10 ms.
    for piece in image(2_000_000).pieces(of: 10_000) {
      if bench.receive(piece) == .pause { bench.resumed.wait(for: 1) }
      bench.clock.withLock { $0 = $0.advanced(by: .milliseconds(10)) }
    }
    let told = bench.progress.withLock { $0 }
    #expect(told == stride(from: 10_000, through: 2_000_000, by: 130_000).map { Int64($0) })
    #expect(bench.totals.withLock { $0 } == told.map { _ in 2_000_000 })
    _ = bench.succeed()
  }

  @Test func `progress is reported without a total if the server declares none`() throws {
    let bench = Bench(disk: try DiskFixture())
    _ = bench.begin()
    _ = bench.receive(image(1000))
    #expect(bench.progress.withLock { $0 } == [1000])
    #expect(bench.totals.withLock { $0 } == [nil])
  }
}
