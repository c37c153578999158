internal import ImageCodec

/// Uncompressed rows of pixels, each padded to 4 bytes.
struct BitmapRows {
  let file: UnsafeRawBufferPointer
  let start: Int
  let width: Int
  let bitCount: Int

  private var bytesOfRow: Int { (width * bitCount + 7) / 8 }
  private var stride: Int { (bytesOfRow + 3) & ~3 }

  /// The offset at which `count` rows end. Throws if the file ends before it; the padding of the last row may be
  /// missing.
  func end(count: Int) throws(DecodeError) -> Int {
    let (rest, overflow) = stride.multipliedReportingOverflow(by: count - 1)
    guard !overflow, start <= file.count, bytesOfRow <= file.count - start, rest <= file.count - start - bytesOfRow
    else { throw .corrupt("the bitmap is truncated") }
    return min(file.count, start + rest + stride)
  }

  // The functions below require that `end` has succeeded for the rows.

  func read(_ index: Int, _ palette: [UInt32], into row: UnsafeMutableBufferPointer<UInt32>) {
    let bytes = bytes(index)
    switch bitCount {
    case 8: for x in 0..<width { row[x] = palette[Int(bytes[x])] }
    default: forEachIndex(bytes) { row[$0] = palette[$1] }
    }
  }

  /// Returns the bitwise OR of all pixels.
  func read(_ index: Int, _ masks: [BitmapMask], into row: UnsafeMutableBufferPointer<UInt32>) -> UInt32 {
    let bytes = bytes(index)
    if bitCount == 24 {
      for x in 0..<width { row[x] = Raster.pixel(bytes[3 * x + 2], bytes[3 * x + 1], bytes[3 * x]) }
      return 0
    }
    var all: UInt32 = 0
    for x in 0..<width {
      let stored =
        bitCount == 16
        ? UInt32(bytes[2 * x]) | UInt32(bytes[2 * x + 1]) << 8
        : bytes.loadUnaligned(fromByteOffset: 4 * x, as: UInt32.self).littleEndian
      let pixel = Raster.pixel(
        masks[0].value(of: stored), masks[1].value(of: stored), masks[2].value(of: stored),
        masks[3].isEmpty ? 255 : masks[3].value(of: stored))
      all |= pixel
      row[x] = pixel
    }
    return all
  }

  /// Makes the pixels transparent whose bit is set.
  func clear(_ index: Int, in row: UnsafeMutableBufferPointer<UInt32>) {
    forEachIndex(bytes(index)) { if $1 != 0 { row[$0] = 0 } }
  }

  private func forEachIndex(_ bytes: UnsafeRawBufferPointer, _ body: (Int, Int) -> Void) {
    let (each, mask) = (8 / bitCount, 1 << bitCount - 1)
    for x in 0..<width { body(x, Int(bytes[x / each]) >> (8 - bitCount - x % each * bitCount) & mask) }
  }

  private func bytes(_ index: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: file[(start + index * stride)..<(start + index * stride + bytesOfRow)])
  }
}
