import LineRPC
import Testing

struct LineSplitterTests {
  private enum Line: Equatable {
    case text([UInt8])
    case tooLong

    init(_ line: LineSplitter.Line) {
      switch line {
      case .text(let bytes): self = .text(Array(bytes))
      case .tooLong: self = .tooLong
      }
    }
  }

  private func split(_ chunks: [[UInt8]], maxLine: Int = 100) -> [Line] {
    var splitter = LineSplitter(maxLine: maxLine)
    var lines: [Line] = []
    for chunk in chunks { chunk.withUnsafeBytes { splitter.feed($0) { lines.append(Line($0)) } } }
    splitter.finish { lines.append(Line($0)) }
    return lines
  }

  private func split(_ text: String, maxLine: Int = 100) -> [Line] { split([Array(text.utf8)], maxLine: maxLine) }

  private func texts(_ lines: String...) -> [Line] { lines.map { .text(Array($0.utf8)) } }

  @Test func `LF ends a line and a last line without LF counts`() {
    #expect(split("a\nb\nc") == texts("a", "b", "c"))
    #expect(split("a\n") == texts("a"))
    #expect(split("").isEmpty)
  }

  @Test func `one CR before LF is dropped, and no other`() {
    #expect(split("a\r\nb\r\r\nc\rd\n\re\nf\r") == texts("a", "b\r", "c\rd", "\re", "f"))
  }

  @Test func `a byte order mark is dropped at the start only`() {
    #expect(split("\u{FEFF}a\n\u{FEFF}b\n") == texts("a", "\u{FEFF}b"))
    #expect(split("\u{FEFF}\u{FEFF}a") == texts("\u{FEFF}a"))
    #expect(split("\u{FEFF}").isEmpty)
    #expect(split([[0xEF, 0xBB], [0xBF], [0x61]]) == texts("a"))
  }

  @Test func `bytes that only begin like a byte order mark are kept`() {
    #expect(split([[0xEF], [0xBB, 0x61, 0x0A]]) == [.text([0xEF, 0xBB, 0x61])])
    #expect(split([[0xEF, 0xBB]]) == [.text([0xEF, 0xBB])])
    #expect(split([[0xEF, 0x0A, 0xBB]]) == [.text([0xEF]), .text([0xBB])])
  }

  @Test func `blank lines are skipped`() {
    #expect(split("\n\r\n \t\n  \r\na\n\n \n") == texts("a"))
  }

  @Test func `a line of the maximum length is accepted, also with CR and byte order mark`() {
    #expect(split("abcd\nabcd\r\nabcd", maxLine: 4) == texts("abcd", "abcd", "abcd"))
    #expect(split("\u{FEFF}abcd\r\n", maxLine: 4) == texts("abcd"))
  }

  @Test func `a longer line is reported once, and the next line is complete`() {
    #expect(split("abcde\nx\n", maxLine: 4) == [.tooLong] + texts("x"))
    #expect(split("abcde\r\nx\n", maxLine: 4) == [.tooLong] + texts("x"))
    #expect(split("abcd\r\r\nx", maxLine: 4) == [.tooLong] + texts("x"))
    #expect(split("abcde", maxLine: 4) == [.tooLong])
    #expect(split("abcde\nabcdef\nx\n", maxLine: 4) == [.tooLong, .tooLong] + texts("x"))
  }

  @Test func `a line is reported as too long once, before its end has arrived`() {
    var splitter = LineSplitter(maxLine: 4)
    var lines: [Line] = []
    let chunk = [UInt8](repeating: 0x61, count: 1000)
    for _ in 0..<1000 { chunk.withUnsafeBytes { splitter.feed($0) { lines.append(Line($0)) } } }
    #expect(lines == [.tooLong])
    let end: [UInt8] = [0x0A, 0x62, 0x0A]
    end.withUnsafeBytes { splitter.feed($0) { lines.append(Line($0)) } }
    splitter.finish { lines.append(Line($0)) }
    #expect(lines == [.tooLong] + texts("b"))
  }

  @Test func `limits at the ends of the range are accepted`() {
    #expect(split("a\n\n", maxLine: 0) == [.tooLong])
    #expect(split("\r\n", maxLine: 0).isEmpty)
    #expect(split([[0xEF], [0xBB], [0x61]], maxLine: 0) == [.tooLong])
    #expect(split("abc\n", maxLine: .max) == texts("abc"))
    #expect(split([[0x61], [0x62, 0x0A]], maxLine: .max) == texts("ab"))
  }

  @Test func `a line in many chunks is joined`() {
    let line = (0..<300_000).map { UInt8(ascii: "a") + UInt8($0 % 26) }
    let chunks = stride(from: 0, to: line.count, by: 1000).map { Array(line[$0..<($0 + 1000)]) }
    #expect(split(chunks + [[0x0A, 0x62]], maxLine: 1_000_000) == [.text(line), .text([0x62])])
  }

  /// The same rules, applied to the whole input without regard to memory.
  private func model(_ input: [UInt8], maxLine: Int) -> [Line] {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let rest = input.starts(with: mark) ? input.dropFirst(3) : input[...]
    return rest.split(separator: 0x0A, omittingEmptySubsequences: false).compactMap { line in
      let text = line.last == 0x0D ? line.dropLast() : line
      if text.count > maxLine { return .tooLong }
      return text.allSatisfy { [0x20, 0x09, 0x0D].contains($0) } ? nil : .text(Array(text))
    }
  }

  @Test func `the lines are the same for all chunks of the input`() {
    let seed = UInt64.random(in: .min ... .max)
    var generator = SeededGenerator(seed: seed)
    let alphabet: [UInt8] = [0x0A, 0x0A, 0x0D, 0x20, 0x61, 0x62, 0x63, 0xEF, 0xBB, 0xBF]
    for _ in 0..<5000 {
      var input = (0..<Int.random(in: 0...60, using: &generator)).map { _ in alphabet.randomElement(using: &generator)!
      }
      if Bool.random(using: &generator) { input = [0xEF, 0xBB, 0xBF] + input }
      let maxLine = Int.random(in: 0...8, using: &generator)
      var chunks: [[UInt8]] = []
      var rest = input[...]
      while !rest.isEmpty {
        let count = min(rest.count, Int.random(in: 0...9, using: &generator))
        chunks.append(Array(rest.prefix(count)))
        rest = rest.dropFirst(count)
      }
      #expect(
        split(chunks, maxLine: maxLine) == model(input, maxLine: maxLine),
        "seed \(seed), input \(input), limit \(maxLine)")
    }
  }
}
