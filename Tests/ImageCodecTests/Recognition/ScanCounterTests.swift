import Testing

@testable import ImageCodec

struct ScanCounterTests {
  private func segment(_ marker: UInt8, _ content: [UInt8] = []) -> [UInt8] {
    [0xFF, marker, UInt8((content.count + 2) >> 8), UInt8((content.count + 2) & 0xFF)] + content
  }

  /// A scan with stuffed bytes, restart markers and fill bytes in its data.
  private var scan: [UInt8] { segment(0xDA, [1, 2, 3]) + [9, 0xFF, 0, 0xFF, 0xD3, 0xFF, 0xFF, 0, 8] }

  private var progressive: [UInt8] {
    // A thumbnail in APP1, whose markers must not count.
    let thumbnail = [0xFF, 0xD8] + segment(0xC2) + segment(0xDA) + [0xFF, 0xD9]
    return [0xFF, 0xD8] + segment(0xE1, thumbnail) + segment(0xC2, [8, 0, 1, 0, 1]) + scan + segment(0xC4, [0]) + scan
      + scan + [0xFF, 0xD9]
  }

  private func counts(_ bytes: [UInt8], pieces: Int) -> [Int] {
    var counter = ScanCounter()
    return stride(from: 0, to: bytes.count, by: pieces).map { start in
      Array(bytes[start..<min(bytes.count, start + pieces)]).withUnsafeBytes { counter.consume($0) }
      return counter.completeScans
    }
  }

  @Test(arguments: 1...40) func `scans are counted for every split of the bytes`(pieces: Int) {
    let counts = counts(progressive, pieces: pieces)
    #expect(counts.last == 3)
    #expect(counts == counts.sorted())
  }

  @Test func `a scan is complete when the next marker begins`() {
    let first = [0xFF, 0xD8] + segment(0xC2) + scan
    #expect(counts(first, pieces: 1000) == [0])
    #expect(counts(first + [0xFF, 0xC4], pieces: 1000) == [1])
    for pieces in 1...9 {
      var counter = ScanCounter()
      let bytes = first + [0xFF, 0xC4, 0, 3, 1]
      for start in stride(from: 0, to: bytes.count, by: pieces) {
        Array(bytes[start..<min(bytes.count, start + pieces)]).withUnsafeBytes { counter.consume($0) }
      }
      #expect(counter.endOfScans == first.count)
    }
  }

  @Test func `a baseline JPEG has nothing to count`() {
    var counter = ScanCounter()
    ([0xFF, 0xD8] + segment(0xC0) + scan + scan).withUnsafeBytes { counter.consume($0) }
    #expect(counter.isOver && counter.completeScans == 0)
  }

  @Test func `another format is recognised by its first bytes`() {
    var counter = ScanCounter()
    ([0x89, 0x50] as [UInt8]).withUnsafeBytes { counter.consume($0) }
    #expect(counter.isOver)
  }

  @Test func `counting ends for arbitrary bytes`() {
    var chance = SystemRandomNumberGenerator()
    for _ in 0..<500 {
      var bytes = progressive
      for _ in 0..<5 { bytes[Int.random(in: 0..<bytes.count, using: &chance)] = .random(in: 0...255, using: &chance) }
      let counts = counts(bytes, pieces: 7)
      #expect(counts == counts.sorted())
    }
  }
}
