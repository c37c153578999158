import Testing

@testable import ImageCodec

/// Compared with hashes from other implementations of https://github.com/evanw/thumbhash.
struct ThumbHashTests {
  private func hash(_ width: Int, _ height: Int, _ pixel: (Int, Int) -> [Int]) -> ThumbHash {
    let pixels = (0..<(width * height)).flatMap { pixel($0 % width, $0 / width).map { UInt8($0 & 255) } }
    return ThumbHash(pixels: pixels, width: width, height: height)
  }

  @Test func `an opaque image in landscape`() {
    let hash = hash(30, 20) { x, y in [x * 8, y * 12, x * y, 255] }
    #expect(
      hash.bytes == [
        218, 8, 14, 29, 152, 96, 134, 119, 112, 136, 119, 134, 120, 104, 120, 120, 246, 134, 15, 247, 136,
      ])
  }

  @Test func `an image with alpha in portrait`() {
    let hash = hash(20, 30) { x, y in [x * 8, y * 8, x * y, 40 + x * 4 + y * 2 + x * y % 53] }
    #expect(
      hash.bytes == [
        26, 168, 133, 19, 12, 24, 114, 144, 120, 104, 137, 234, 149, 47, 248, 103, 112, 118, 114, 119, 119, 104, 120,
      ])
  }

  @Test func `the mean of one colour is that colour`() {
    let hash = hash(7, 7) { _, _ in [10, 200, 30, 255] }
    #expect(hash.color == 0x0AC81E)
  }

  @Test func `transparent pixels do not contribute to the colour`() {
    let hash = hash(10, 1) { x, _ in x < 5 ? [255, 0, 0, 255] : [0, 0, 255, 0] }
    #expect(hash.color == 0xFF0000)
    #expect(self.hash(3, 3) { _, _ in [9, 9, 9, 0] }.bytes.count > 5)
  }

  @Test(arguments: [(1, 1), (2, 2), (3, 1), (1, 6), (100, 1), (2, 70)])
  func `a plain image of few pixels is plain`(size: (Int, Int)) {
    for alpha in [255, 128] {
      let bytes = hash(size.0, size.1) { _, _ in [255, 40, 0, alpha] }.bytes.map(Int.init)
      // The variation of lightness, colours and alpha.
      let header = bytes[0] | bytes[1] << 8 | bytes[2] << 16
      let scales = [header >> 18 & 31, (bytes[3] | bytes[4] << 8) >> 3 & 63, (bytes[3] | bytes[4] << 8) >> 9 & 63]
      #expect(scales == [0, 0, 0])
      if alpha < 255 { #expect(bytes[5] >> 4 == 0) }
    }
  }

  @Test func `an image with few pixels is sampled several times for each pixel`() {
    let few = hash(2, 3) { x, y in [x * 200, y * 100, 90, 255] }
    let many = hash(8, 12) { x, y in [x / 4 * 200, y / 4 * 100, 90, 255] }
    for (left, right) in zip(few.bytes, many.bytes) {
      #expect(abs(Int(left & 15) - Int(right & 15)) <= 1 && abs(Int(left >> 4) - Int(right >> 4)) <= 1)
    }
  }
}
