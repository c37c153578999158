import Testing

@testable import Worker

@Suite struct TarTests {
  /// Reads from an array.
  private final class Source {
    var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    func read(_ count: Int) -> [UInt8] {
      defer { rest = rest.dropFirst(count) }
      return Array(rest.prefix(count))
    }
  }

  private func reader(of bytes: [UInt8]) -> TarReader {
    let source = Source(bytes)
    return TarReader { count throws(ArchiveError) in source.read(count) }
  }

  private func archive(_ members: [(String, [UInt8])]) throws -> [UInt8] {
    let output = Collected()
    var writer = TarWriter { bytes throws(CommandError) in output.bytes += bytes }
    for (name, content) in members { try writer.member(name, content, modifiedAt: 1_700_000_000) }
    try writer.finish()
    return output.bytes
  }

  private final class Collected { var bytes: [UInt8] = [] }

  @Test(arguments: [0, 1, 511, 512, 513, 262_143, 262_144, 262_145, 600_000])
  func `members are read as they were written`(size: Int) throws {
    let content = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    let bytes = try archive([("a", content), ("folder/b", [7])])
    #expect(bytes.count.isMultiple(of: 512))
    var reader = reader(of: bytes)
    #expect(try reader.next() == TarHeader(name: "a", size: Int64(size), modifiedAt: 1_700_000_000))
    #expect(try reader.content() == content)
    #expect(try reader.piece().isEmpty)
    #expect(try reader.next()?.name == "folder/b")
    #expect(try reader.content() == [7])
    #expect(try reader.next() == nil)
    #expect(try reader.next() == nil)
  }

  @Test func `a member that is not read is skipped`() throws {
    var reader = reader(of: try archive([("a", [UInt8](repeating: 1, count: 700_000)), ("b", [2])]))
    _ = try reader.next()
    _ = try reader.piece()
    #expect(try reader.next()?.name == "b")
    #expect(try reader.content() == [2])
  }

  @Test(arguments: [(1 << 33) - 1, 1 << 33, 1 << 40, .max - 1024] as [Int64])
  func `a size of 8 GiB and more needs an extended header`(size: Int64) throws {
    let blocks = TarWriter.blocks(of: TarHeader(name: "a", size: size))
    #expect(blocks.count == (size < 1 << 33 ? 512 : 3 * 512))
    var reader = reader(of: blocks)
    #expect(try reader.next() == TarHeader(name: "a", size: size))
  }

  @Test func `the record of an extended header contains its own length`() throws {
    let blocks = TarWriter.blocks(of: TarHeader(name: "a", size: 8_589_934_592))
    #expect(Array(blocks[512..<531]) == Array("19 size=8589934592\n".utf8))
    #expect(try TarReader.records(Array("19 size=8589934592\n6 a=b\n".utf8)) == ["size": "8589934592", "a": "b"])
  }

  @Test(arguments: [
    "9 a=b\n", "6 a=bc", "5 ab\n", "x a=b\n", "-1 a=b\n", "0 \n", " a=b\n", "99999999999999999999 a=b\n", "3 \n",
  ])
  func `an invalid record is refused`(text: String) {
    #expect(throws: ArchiveError.self) { try TarReader.records(Array(text.utf8)) }
  }

  @Test(
    arguments: [
      ("00000000017\0", 15), ("         17 ", 15), ("17", 15), ("", nil), ("\0", nil), ("8", nil), ("-1", nil),
      ("1x", nil),
      ("777777777777", 68_719_476_735),
    ] as [(String, Int64?)])
  func `numbers are octal`(text: String, number: Int64?) { #expect(TarHeader.number(Array(text.utf8)[...]) == number) }

  @Test func `numbers in base 256 are bounded`() {
    #expect(TarHeader.number(([0x80] + [UInt8](repeating: 0, count: 9) + [1, 2])[...]) == 258)
    #expect(TarHeader.number(([0x80, 0, 0, 0] + [0x7F] + [UInt8](repeating: 0xFF, count: 7))[...]) == .max)
    #expect(TarHeader.number(([0x80, 0, 0, 0] + [UInt8](repeating: 0xFF, count: 8))[...]) == nil)
    #expect(TarHeader.number(([0x80, 0, 0, 1] + [UInt8](repeating: 0, count: 8))[...]) == nil)
    #expect(TarHeader.number([UInt8](repeating: 0xFF, count: 12)[...]) == nil)
  }

  @Test func `random damage ends in an error or in members of bounded sizes`() throws {
    var random = SystemRandomNumberGenerator()
    let whole = try archive([("a", [UInt8](repeating: 1, count: 1000)), ("b", [2])])
    for _ in 0..<2000 {
      var bytes = whole
      for _ in 0..<Int.random(in: 1...8, using: &random) {
        bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random))
      if Bool.random(using: &random), bytes.count >= 512 { fixChecksum(&bytes) }
      var reader = reader(of: bytes)
      var count = 0
      do throws(ArchiveError) {
        while try reader.next() != nil {
          while try !reader.piece().isEmpty {}
          count += 1
        }
      } catch {
        #expect(!error.message.isEmpty)
      }
      #expect(count <= 3)
    }
  }

  private func fixChecksum(_ bytes: inout [UInt8]) {
    let sum = bytes[..<512].enumerated().reduce(0) { $0 + (148..<156 ~= $1.offset ? 0x20 : Int($1.element)) }
    let digits = String(sum, radix: 8)
    let text = String(repeating: "0", count: 6 - digits.count) + digits + "\0 "
    bytes.replaceSubrange(148..<156, with: text.utf8)
  }
}
