import LineRPC
import Testing

@testable import Tracing

@Suite("The pages of a trace")
struct TracePagesTests {
  private static let tail = Array("{\"tail\":1}\n]\n".utf8)

  /// A piece with the number as its time.
  private func piece(_ number: Int, length: Int) -> [UInt8] {
    let start = "{\"n\":\(number),\"x\":\""
    return Array((start + String(repeating: "x", count: max(0, length - start.utf8.count - 2)) + "\"}").utf8)
  }

  /// The numbers of the pieces in the file, as a reader gets them: the closing bracket may be missing.
  private func numbers(in file: [UInt8]) throws -> [Int64] {
    var text = String(decoding: file, as: UTF8.self)
    while let last = text.last, last.isWhitespace || last == "," { text.removeLast() }
    if text.last != "]" { text += "]" }
    guard case .array(let events) = try JSON(parsing: Array(text.utf8)) else {
      Issue.record("not an array")
      return []
    }
    return events.compactMap { event in
      if case .object(let object) = event, case .integer(let number)? = object["n"] { number } else { nil }
    }
  }

  private func apply(_ write: TracePages.Write, to file: inout [UInt8], count: Int? = nil) {
    let bytes = write.bytes.prefix(count ?? write.bytes.count)
    let (start, end) = (Int(write.offset), Int(write.offset) + bytes.count)
    if file.count < end { file += repeatElement(0, count: end - file.count) }
    file.replaceSubrange(start..<end, with: bytes)
  }

  @Test("a file is whole whenever the process is killed, and has the newest pieces", arguments: [2, 3, 4, 9, 64])
  func kills(maxPages: Int) throws {
    var random = SystemRandomNumberGenerator()
    var pages = TracePages(limit: Int64(maxPages * TracePages.pageSize + 17), tail: Self.tail)
    pages.setHeader(Array("{\"header\":1},\n".utf8))
    var file: [UInt8] = []
    var count = 0
    for _ in 0..<40 {
      for _ in 0..<Int.random(in: 0...12, using: &random) {
        count += 1
        let length = Int.random(in: 30...(Bool.random() ? 300 : pages.room - 20), using: &random)
        #expect(piece(count, length: length).withUnsafeBytes { pages.append($0, endingAt: Int64(count)) })
      }
      for write in pages.takeWrites() {
        // A kill within a write leaves complete pages.
        for end in stride(from: 0, to: write.bytes.count, by: TracePages.pageSize) {
          var killed = file
          apply(write, to: &killed, count: end)
          if !killed.isEmpty { _ = try numbers(in: killed) }
        }
        apply(write, to: &file)
      }
      #expect(file.count <= maxPages * TracePages.pageSize)
      #expect(Int64(file.count) == pages.byteCount)
      let kept = try numbers(in: file).sorted()
      let first = Int((pages.droppedUntil ?? 0) + 1)
      #expect(kept == (first..<max(first, count + 1)).map(Int64.init))
      guard case .array = try JSON(parsing: file) else {
        Issue.record("a complete write leaves an array with its bracket")
        return
      }
    }
    #expect(count > 0)
  }

  @Test("the header may change at any time")
  func header() throws {
    var pages = TracePages(limit: 3 << 12, tail: Self.tail)
    var file: [UInt8] = []
    #expect(piece(1, length: 100).withUnsafeBytes { pages.append($0, endingAt: 1) })
    #expect(!piece(2, length: pages.room + 1).withUnsafeBytes { pages.append($0, endingAt: 2) })
    for write in pages.takeWrites() { apply(write, to: &file) }
    pages.setHeader(Array("{\"n\":77},\n".utf8))
    for write in pages.takeWrites() { apply(write, to: &file) }
    #expect(try numbers(in: file) == [77, 1])
    #expect(pages.takeWrites().isEmpty)
  }
}
