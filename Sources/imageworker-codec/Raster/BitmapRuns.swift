internal import ImageCodec

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
