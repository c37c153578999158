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

/// Run-length coded pixels of 4, 8 or 24 bits (BI_RLE4, BI_RLE8; OS/2's BCA_RLE24).
///
/// Takes at most about one step for each two bytes of the file plus one for each pixel.
struct BitmapRuns {
  let file: UnsafeRawBufferPointer
  var position: Int
  let colors: [UInt32]
  let bitCount: Int
  private var x = 0
  private var y = 0

  init(file: UnsafeRawBufferPointer, position: Int, colors: [UInt32], bitCount: Int) {
    (self.file, self.position, self.colors, self.bitCount) = (file, position, colors, bitCount)
  }

  /// Pixels that the file skips keep their values.
  consuming func read(into raster: Raster, isTopDown: Bool) throws(DecodeError) {
    while true {
      // The end-of-bitmap code may be missing.
      if position + 2 > file.count, y >= raster.height || y == raster.height - 1 && x >= raster.width { return }
      let (count, code) = (Int(try next()), try next())
      if count == 0, code == 1 { return }
      guard y < raster.height else { throw .corrupt("the bitmap has more rows than its header says") }
      let row = raster.row(isTopDown ? y : raster.height - 1 - y)
      switch (count, code) {
      case (0, 0): (x, y) = (0, y + 1)
      case (0, 2):
        let (right, up) = (Int(try next()), Int(try next()))
        guard x + right <= raster.width, y + up < raster.height else {
          throw .corrupt("a run of the bitmap leaves the image")
        }
        (x, y) = (x + right, y + up)
      case (0, _): try copy(Int(code), to: row)
      default: try fill(count, code, in: row)
      }
    }
  }

  private mutating func next() throws(DecodeError) -> UInt8 {
    guard position < file.count else { throw .corrupt("the bitmap is truncated") }
    defer { position += 1 }
    return file[position]
  }

  /// Pixels beyond the end of the row are dropped, because some encoders write too many.
  private mutating func fill(
    _ count: Int, _ code: UInt8, in row: UnsafeMutableBufferPointer<UInt32>
  ) throws(DecodeError) {
    let end = min(x + count, row.count)
    if bitCount == 24 {
      let (green, red) = (try next(), try next())
      while x < end { set(Raster.pixel(red, green, code), in: row) }
      return
    }
    let both = bitCount == 8 ? (code, code) : (code >> 4, code & 15)
    var isFirst = true
    while x < end {
      set(colors[Int(isFirst ? both.0 : both.1)], in: row)
      isFirst.toggle()
    }
  }

  /// Copies literal pixels, which are padded to whole words.
  private mutating func copy(_ count: Int, to row: UnsafeMutableBufferPointer<UInt32>) throws(DecodeError) {
    guard x + count <= row.count else { throw .corrupt("a run of the bitmap leaves the image") }
    let start = position
    var byte: UInt8 = 0
    for index in 0..<count {
      switch bitCount {
      case 4:
        if index.isMultiple(of: 2) { byte = try next() }
        set(colors[Int(index.isMultiple(of: 2) ? byte >> 4 : byte & 15)], in: row)
      case 8: set(colors[Int(try next())], in: row)
      default:
        let (blue, green, red) = (try next(), try next(), try next())
        set(Raster.pixel(red, green, blue), in: row)
      }
    }
    position += (position - start) & 1
  }

  private mutating func set(_ pixel: UInt32, in row: UnsafeMutableBufferPointer<UInt32>) {
    row[x] = pixel
    x += 1
  }
}
