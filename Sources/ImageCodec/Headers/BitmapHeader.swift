/// The header of a device-independent bitmap, which follows the file header of a BMP and starts most pictures of an
/// ICO.
///
/// It is one of Microsoft's BITMAPCOREHEADER (12 bytes), BITMAPINFOHEADER (40) and its successors of 52, 56, 108 and
/// 124 bytes, or OS/2's header, which may end after any field. Fields beyond the end of the header are 0.
package struct BitmapHeader {
  package enum Compression: Sendable, Hashable {
    case none, rle4, rle8, rle24, bitFields, alphaBitFields, jpeg, png, huffman
    case unknown(Int)
  }

  /// The length of the header; masks, colours and pixels follow it.
  package let length: Int
  package let width: Int
  /// The height of the picture; in an icon, without the mask.
  package let height: Int
  package let isTopDown: Bool
  package let bitCount: Int
  package let compression: Compression
  /// The number of colours; 0 means as many as the bits of a pixel can address.
  package let colorsUsed: Int
  /// The masks of red, green, blue and alpha in a pixel, if the header has them. The alpha mask is 0 without alpha.
  package let masks: [UInt32]?
  /// Whether the header says which bits are alpha, or that none are.
  package let tellsAlpha: Bool
  /// The range of an ICC profile, relative to the start of the header.
  package let profile: Range<Int>?

  /// - Parameters:
  ///   - start: the offset of the header in `source`.
  ///   - isInIcon: whether the height includes the mask.
  package init(_ source: any ByteSource, at start: Int, isInIcon: Bool = false) throws(ImageHeaderError) {
    var reader = HeaderReader(source)
    try self.init(&reader, at: start, isInIcon: isInIcon)
  }

  init(_ reader: inout HeaderReader, at start: Int, isInIcon: Bool = false) throws(ImageHeaderError) {
    let length = try reader.little32(start)
    guard Self.exists(length: length) else { throw .impossible("a bitmap has a header of \(length) bytes") }
    func field(_ offset: Int) throws(ImageHeaderError) -> Int {
      offset + 4 <= length ? try reader.little32(start + offset) : 0
    }
    self.length = length
    if length == 12 {
      (width, height) = (try reader.little16(start + 4), try reader.little16(start + 6))
      (isTopDown, bitCount, compression, colorsUsed) = (false, try reader.little16(start + 10), .none, 0)
      (masks, tellsAlpha, profile) = (nil, false, nil)
      return
    }
    let (across, down) = (Int32(truncatingIfNeeded: try field(4)), Int32(truncatingIfNeeded: try field(8)))
    // A negative height means that the top row comes first.
    (width, height, isTopDown) = (Int(across), Int(down.magnitude) / (isInIcon ? 2 : 1), down < 0)
    let bitCount = try reader.little16(start + 14)
    self.bitCount = bitCount
    compression = Self.compression(try field(16), bitCount: bitCount)
    colorsUsed = try field(32)
    tellsAlpha = [56, 108, 124].contains(length)
    if tellsAlpha || length == 52 {
      var masks: [UInt32] = []
      for offset in [40, 44, 48, 52] { masks.append(UInt32(truncatingIfNeeded: try field(offset))) }
      self.masks = masks
    } else {
      masks = nil
    }
    let hasProfile = length == 124 ? try field(56) == 0x4D42_4544 : false
    let (profileStart, profileLength) = (try field(112), try field(116))
    profile = hasProfile ? profileStart..<(profileStart + profileLength) : nil
  }

  package static func exists(length: Int) -> Bool {
    length == 12 || [42, 46, 108, 124].contains(length) || (16...64).contains(length) && length.isMultiple(of: 4)
  }

  private static func compression(_ code: Int, bitCount: Int) -> Compression {
    switch (code, bitCount) {
    case (0, _): .none
    case (1, _): .rle8
    case (2, _): .rle4
    case (3, 1): .huffman
    case (3, _): .bitFields
    case (4, 24): .rle24
    case (4, _): .jpeg
    case (5, _): .png
    case (6, _): .alphaBitFields
    default: .unknown(code)
    }
  }
}

/// Windows and OS/2 bitmaps: a file header of 14 bytes, then the bitmap header.
package enum BMPHeader {
  /// The offset of the bitmap header in the file.
  package static let start = 14

  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    let header = try BitmapHeader(&reader, at: start)
    return ImageHeader(.bmp, width: header.width, height: header.height)
  }
}
