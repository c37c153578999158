internal import ImageCodec

/// The layout of a bitmap's pixels, one of the supported combinations.
struct BitmapLayout {
  let bitCount: Int
  let isRunLength: Bool
  /// Whether the file has colour masks, in the header or after it.
  let hasMasks: Bool
  let bytesOfMasks: Int
  /// The default masks of red, green, blue and alpha.
  let usualMasks: [UInt32]

  init(_ header: BitmapHeader, isInIcon: Bool) throws(DecodeError) {
    let isOld = header.length == 12 || ![40, 52, 56, 108, 124].contains(header.length)
    let depths = isOld ? [1, 2, 4, 8, 24] : [1, 2, 4, 8, 16, 24, 32]
    switch header.compression {
    case .none where depths.contains(header.bitCount):
      (bitCount, isRunLength) = (header.bitCount, false)
    // Some files have a bit count below 8, and mean a smaller palette.
    case .rle8 where (1...8).contains(header.bitCount): (bitCount, isRunLength) = (8, true)
    case .rle4 where (1...4).contains(header.bitCount): (bitCount, isRunLength) = (4, true)
    case .rle24: (bitCount, isRunLength) = (24, true)
    case .bitFields where [16, 32].contains(header.bitCount),
      .alphaBitFields where [16, 32].contains(header.bitCount):
      (bitCount, isRunLength) = (header.bitCount, false)
    default:
      throw .unsupportedFormat(
        "bitmaps of \(header.bitCount) bits with compression \(header.compression) are not supported")
    }
    hasMasks = header.compression == .bitFields || header.compression == .alphaBitFields
    bytesOfMasks = !hasMasks || header.masks != nil ? 0 : header.compression == .alphaBitFields ? 16 : 12
    let colors: [UInt32] = bitCount == 16 ? [0x7C00, 0x3E0, 0x1F] : [0xFF0000, 0xFF00, 0xFF]
    // In other pixels the fourth byte is often arbitrary.
    let alpha: UInt32 =
      header.tellsAlpha ? header.masks?[3] ?? 0 : isInIcon && !hasMasks && bitCount == 32 ? 0xFF00_0000 : 0
    usualMasks = colors + [alpha]
  }
}

/// The bits of a pixel that hold one colour or the alpha.
struct BitmapMask {
  let isEmpty: Bool
  private let shift: UInt32
  private let most: UInt32
  /// The 8-bit value of each number that the mask can hold, or of the highest 8 bits of a wider mask.
  let values: [UInt8]

  init(_ mask: UInt32) throws(DecodeError) {
    isEmpty = mask == 0
    let low = UInt32(mask.trailingZeroBitCount)
    let bits = isEmpty ? 0 : 32 - UInt32(mask.leadingZeroBitCount) - low
    guard UInt32(mask.nonzeroBitCount) == bits else { throw .corrupt("a colour mask of the bitmap must be contiguous") }
    shift = isEmpty ? 0 : low + (bits > 8 ? bits - 8 : 0)
    let most = UInt32(1) << min(8, bits) - 1
    self.most = most
    values = (0...most).map { most == 0 ? 0 : UInt8(($0 * 255 + most / 2) / most) }
  }

  func value(of pixel: UInt32) -> UInt8 { values[Int(pixel >> shift & most)] }
}
