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

  @Test("a file is whole whenever the process is killed, and ends at its limit", arguments: [2, 3, 4, 9, 64])
  func kills(maxPages: Int) throws {
    var random = SystemRandomNumberGenerator()
    let limit = Int64(maxPages * TracePages.pageSize + 17)
    var pages = TracePages(limit: limit, tail: Self.tail)
    var file: [UInt8] = []
    var count = 0
    while pages.hasSpace {
      for _ in 0..<Int.random(in: 0...12, using: &random) where pages.hasSpace {
        count += 1
        let length = Int.random(in: 30...(Bool.random() ? 300 : pages.room), using: &random)
        piece(count, length: length).withUnsafeBytes { pages.append($0) }
      }
      if let write = pages.takeWrite() {
        // A kill within a write leaves complete pages.
        let first = TracePages.pageSize - Int(write.offset) % TracePages.pageSize
        for end in stride(from: first, to: write.bytes.count, by: TracePages.pageSize) {
          var killed = file
          apply(write, to: &killed, count: end)
          _ = try numbers(in: killed)
        }
        apply(write, to: &file)
      }
      #expect(Int64(file.count) == pages.byteCount && Int64(file.count) <= limit)
      #expect(try numbers(in: file) == (0..<count).map { Int64($0 + 1) })
      guard case .array = try JSON(parsing: file) else {
        Issue.record("a complete write leaves an array with its bracket")
        return
      }
    }
    // The piece that says that the file is full.
    piece(count + 1, length: pages.room).withUnsafeBytes { pages.append($0) }
    #expect(pages.byteCount <= limit)
  }

  @Test("there is nothing to be written after a write")
  func nothing() {
    var pages = TracePages(limit: 3 << 12, tail: Self.tail)
    #expect(pages.takeWrite() != nil)
    #expect(pages.takeWrite() == nil)
  }
}
