internal import CVips
internal import CodecCore
internal import ImageCodec

/// Checks a PNG before libpng reads it. libpng inflates the whole content of a chunk, whatever the chunk is for, so a
/// small file could keep it busy for seconds. See PNG, third edition, sections 5, 8 and 11.
struct PNGScreening {
  private let file: UnsafeRawBufferPointer

  init(_ file: UnsafeRawBufferPointer) { self.file = file }

  /// The file without the chunks that libpng must not read; nil if there are none.
  func screened() throws(DecodeError) -> EncodedFile? {
    var (imageData, hasUnwanted, hasProfile, hasStandardColors) = (0, false, false, false)
    for chunk in PNGChunks(file) {
      // libpng would reserve memory for the length that the chunk claims. Chunks after the image are not read.
      if imageData == 0, !chunk.isWhole, chunk.name != PNGChunks.imageData {
        throw .corrupt("a chunk of the PNG is longer than the file")
      }
      switch chunk.name {
      case PNGChunks.imageData: imageData += chunk.content.count
      case PNGChunks.profile: hasProfile = true
      case PNGChunks.standardColors: hasStandardColors = true
      default: hasUnwanted = hasUnwanted || isUnwanted(chunk)
      }
    }
    // The first test catches data that inflates to almost nothing and is slow all the same. libvips reads an interlaced
    // image completely before it returns a row, so that is checked now. Other images are checked before their end: see
    // `TrailingDataGuard`.
    if let rows = bytesOfRows,
      imageData > 2 * rows + 16384 || isInterlaced && mayExceedRows(in: imageData) && hasExcessData()
    {
      throw Self.refusal
    }
    // libpng uses the first of these two chunks, but the profile must take precedence.
    let leavesStandardColors = hasProfile && hasStandardColors
    guard hasUnwanted || leavesStandardColors else { return nil }
    return try without { isUnwanted($0) || leavesStandardColors && $0.name == PNGChunks.standardColors }
  }

  static let refusal = DecodeError.corrupt("the PNG has data beyond its pixels")

  var isInterlaced: Bool { file.count >= 33 && file[28] == 1 }

  var hasPalette: Bool { file.count >= 33 && file[25] == 3 }

  /// Whether this amount of image data could keep libpng busy for longer than a tenth of a second.
  func mayExceedRows(in imageData: Int) -> Bool { imageData > (48 << 20) / PNGInflation.maxExpansion }

  /// Whether the image data inflates to much more than the rows. Takes about as long as decoding.
  func hasExcessData() -> Bool {
    guard let rows = bytesOfRows else { return false }
    var inflation = PNGInflation(file)
    return inflation.exceeds(rows + Self.tolerance)
  }

  /// The offset at which the image data ends.
  var endOfImageData: Int {
    PNGChunks(file).reduce(0) { $1.name == PNGChunks.imageData ? $1.range.upperBound : $0 }
  }

  /// The permitted excess. Some encoders write a few bytes too many. So much takes libpng no longer than an image of 16
  /// MB.
  private static let tolerance = 16 << 20

  /// The uncompressed size of all rows according to the header; nil if no file could be as large.
  private var bytesOfRows: Int? {
    guard file.count >= 33 else { return nil }
    let samples =
      switch file[25] {
      case 2: 3
      case 4: 2
      case 6: 4
      default: 1
      }
    let (width, height) = (Int(file.bigEndian(at: 16)), Int(file.bigEndian(at: 20)))
    var all = 0
    for pass in isInterlaced ? Self.interlacedPasses : [Self.wholeImage] {
      let (columns, rows) = ((width - pass.x).dividedUp(by: pass.everyX), (height - pass.y).dividedUp(by: pass.everyY))
      // A pass without pixels has no rows.
      guard columns > 0, rows > 0 else { continue }
      let row = (columns * samples * Int(file[24])).dividedUp(by: 8) + 1
      let (bytes, overflow) = row.multipliedReportingOverflow(by: rows)
      guard !overflow, bytes < Int.max / 16 else { return nil }
      all += bytes
    }
    return all
  }

  private struct Pass {
    var (x, y): (Int, Int)
    var (everyX, everyY): (Int, Int)
  }

  private static let wholeImage = Pass(x: 0, y: 0, everyX: 1, everyY: 1)
  private static let interlacedPasses = [
    Pass(x: 0, y: 0, everyX: 8, everyY: 8), Pass(x: 4, y: 0, everyX: 8, everyY: 8),
    Pass(x: 0, y: 4, everyX: 4, everyY: 8), Pass(x: 2, y: 0, everyX: 4, everyY: 4),
    Pass(x: 0, y: 2, everyX: 2, everyY: 4), Pass(x: 1, y: 0, everyX: 2, everyY: 2),
    Pass(x: 0, y: 1, everyX: 1, everyY: 2),
  ]

  /// Whether libpng must not read a chunk. These are compressed text, which is not used; a suggested palette, which
  /// libpng rejects after tRNS; and a transparent grey outside the range of the bit depth, of which libpng looks at the
  /// low bits only, unlike browsers. A file that is truncated within such a chunk stays truncated.
  private func isUnwanted(_ chunk: PNGChunks.Chunk) -> Bool {
    guard chunk.isWhole else { return false }
    if PNGChunks.compressedText.contains(chunk.name) { return true }
    guard file.count >= 33 else { return false }
    if chunk.name == PNGChunks.palette { return file[25] == 2 }
    guard chunk.name == PNGChunks.transparency, chunk.content.count == 2 else { return false }
    let (depth, color) = (file[24], file[25])
    let grey = UInt32(file[chunk.content.lowerBound]) << 8 | UInt32(file[chunk.content.lowerBound + 1])
    return color == 0 && depth < 8 && grey >> depth != 0
  }

  private func without(_ isUnwanted: (PNGChunks.Chunk) -> Bool) throws(DecodeError) -> EncodedFile {
    guard let start = file.baseAddress, let copy = g_try_malloc(gsize(file.count)) else { throw LibraryError.memory }
    var count = 0
    func copyRange(_ range: Range<Int>) {
      copy.advanced(by: count).copyMemory(from: start + range.lowerBound, byteCount: range.count)
      count += range.count
    }
    var end = PNGChunks.start
    copyRange(0..<end)
    for chunk in PNGChunks(file) {
      if !isUnwanted(chunk) { copyRange(chunk.range) }
      end = chunk.range.upperBound
    }
    copyRange(end..<file.count)
    return EncodedFile(bytes: copy, count: count)
  }
}

extension Int {
  fileprivate func dividedUp(by divisor: Int) -> Int { (self + divisor - 1) / divisor }
}

/// The chunks of a PNG (third edition, section 5.3) up to IEND or the end of a truncated file.
struct PNGChunks: Sequence, IteratorProtocol {
  struct Chunk {
    var name: UInt32
    /// The range with length, name and checksum, as far as the file has them.
    var range: Range<Int>
    var content: Range<Int>
    var isWhole: Bool
  }

  static let imageData = name("IDAT")
  static let palette = name("PLTE")
  static let transparency = name("tRNS")
  static let codePoints = name("cICP")
  static let profile = name("iCCP")
  static let standardColors = name("sRGB")
  static let gamma = name("gAMA")
  static let chromaticities = name("cHRM")
  static let compressedText = [name("zTXt"), name("iTXt")]
  /// The offset of the first chunk.
  static let start = 8
  static let end = name("IEND")

  private let file: UnsafeRawBufferPointer
  private var position = start

  init(_ file: UnsafeRawBufferPointer) { self.file = file }

  mutating func next() -> Chunk? {
    guard file.count - position >= 8 else { return nil }
    let (length, name) = (Int(file.bigEndian(at: position)), file.bigEndian(at: position + 4))
    let content = position + 8
    let after = content + length + 4
    defer { position = name == Self.end ? file.count : Swift.min(after, file.count) }
    return Chunk(
      name: name, range: position..<Swift.min(after, file.count),
      content: content..<Swift.min(content + length, file.count), isWhole: after <= file.count)
  }

  private static func name(_ text: StaticString) -> UInt32 {
    UnsafeRawPointer(text.utf8Start).loadUnaligned(as: UInt32.self).bigEndian
  }
}

extension UnsafeRawBufferPointer {
  func bigEndian(at offset: Int) -> UInt32 { loadUnaligned(fromByteOffset: offset, as: UInt32.self).bigEndian }
}
