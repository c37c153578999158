internal import ImageCodec

/// Decodes a device-independent bitmap: the content of a BMP, or a picture in an ICO with its mask.
///
/// If the formats permit several readings, it follows browsers: the fourth byte of a pixel is alpha only if a header
/// says so, or in icons; pixels that run-length coding skips are black. An alpha channel that is 0 everywhere is
/// ignored. (Chromium 156 shows nothing of such a bitmap; earlier versions showed its colours.)
struct BitmapReader {
  let file: UnsafeRawBufferPointer
  let header: BitmapHeader
  /// The offset of the header in the file.
  let start: Int
  /// The offset of the pixels in the file, if the file header has it.
  let pixelsStart: Int?
  let isInIcon: Bool

  /// Reads a BMP.
  init(_ input: Input) throws(DecodeError) {
    do throws(ImageHeaderError) { header = try BitmapHeader(input, at: BMPHeader.start) } catch {
      throw .corrupt(error.description)
    }
    (file, start, isInIcon) = (input.bytes, BMPHeader.start, false)
    let offset = Int(file.littleEndian(at: 10))
    pixelsStart = offset == 0 ? nil : offset
  }

  /// Reads a picture of an icon.
  init(_ input: Input, entry: ICOHeader.Entry) throws(DecodeError) {
    do throws(ImageHeaderError) { header = try BitmapHeader(input, at: entry.start, isInIcon: true) } catch {
      throw .corrupt(error.description)
    }
    (file, start, pixelsStart, isInIcon) = (input.bytes, entry.start, nil, true)
  }

  /// The size must have been checked against the pixel limit.
  func read() throws -> Raster {
    guard header.width > 0, header.height > 0 else { throw DecodeError.corrupt("the bitmap has no pixels") }
    let layout = try BitmapLayout(header, isInIcon: isInIcon)
    let masks = try masks(layout)
    let palette = try palette(layout)
    // The pixels may start within the palette, because some files announce more colours than they have.
    let pixels = pixelsStart ?? palette.end
    guard pixels >= start + header.length, pixels <= file.count else {
      throw DecodeError.corrupt("the pixels of the bitmap must begin after its header and within the file")
    }
    let rows = BitmapRows(file: file, start: pixels, width: header.width, bitCount: layout.bitCount)
    // Checked before memory is allocated.
    let end = try layout.isRunLength ? nil : rows.end(count: header.height)
    let raster = try Raster(width: header.width, height: header.height)
    var seesAlpha = false
    if layout.isRunLength {
      raster.pixels.update(repeating: Raster.pixel(0, 0, 0))
      try BitmapRuns(file: file, position: pixels, colors: palette.colors, bitCount: layout.bitCount)
        .read(into: raster, isTopDown: header.isTopDown)
    } else if layout.bitCount < 16 {
      forEachRow { rows.read($0, palette.colors, into: raster.row($1)) }
    } else {
      seesAlpha = readColors(rows, masks, into: raster)
    }
    if isInIcon, let end, !seesAlpha {
      let mask = BitmapRows(file: file, start: end, width: header.width, bitCount: 1)
      _ = try mask.end(count: header.height)
      forEachRow { mask.clear($0, in: raster.row($1)) }
    }
    raster.compact()
    if let profile = header.profile, start + profile.upperBound <= file.count, !profile.isEmpty {
      raster.profile = Array(file[(start + profile.lowerBound)..<(start + profile.upperBound)])
    }
    return raster
  }

  /// Calls `body` with the number of each row in the file and in the picture.
  private func forEachRow(_ body: (Int, Int) -> Void) {
    for row in 0..<header.height { body(row, header.isTopDown ? row : header.height - 1 - row) }
  }

  /// Whether the pixels have alpha.
  private func readColors(_ rows: BitmapRows, _ masks: [BitmapMask], into raster: Raster) -> Bool {
    var all: UInt32 = 0
    forEachRow { all |= rows.read($0, masks, into: raster.row($1)) }
    if masks[3].isEmpty { return false }
    if all >> 24 == 0 { for index in raster.pixels.indices { raster.pixels[index] |= 0xFF00_0000 } }
    return all >> 24 != 0
  }

  private func masks(_ layout: BitmapLayout) throws -> [BitmapMask] {
    guard layout.bitCount >= 16 else { return [] }
    var values = layout.usualMasks
    if layout.hasMasks {
      if let own = header.masks {
        values.replaceSubrange(0..<3, with: own.prefix(3))
      } else {
        let position = start + header.length
        guard position + layout.bytesOfMasks <= file.count else { throw DecodeError.corrupt("the bitmap is truncated") }
        for index in 0..<(layout.bytesOfMasks / 4) { values[index] = file.littleEndian(at: position + 4 * index) }
      }
    }
    if layout.bitCount < 32 { for index in 0..<4 { values[index] &= 1 << UInt32(layout.bitCount) - 1 } }
    for (index, value) in values.enumerated() where values[..<index].contains(where: { $0 & value != 0 }) {
      throw DecodeError.corrupt("the colour masks of the bitmap must not overlap")
    }
    return try values.map { try BitmapMask($0) }
  }

  /// 256 colours, black if the file does not have them, and the offset at which the file's colours end.
  private func palette(_ layout: BitmapLayout) throws -> (colors: [UInt32], end: Int) {
    let position = start + header.length + layout.bytesOfMasks
    var colors = [UInt32](repeating: Raster.pixel(0, 0, 0), count: 256)
    guard layout.bitCount < 16 else { return (colors, position) }
    let most = 1 << layout.bitCount
    let count = header.colorsUsed == 0 ? most : min(most, header.colorsUsed)
    let each = header.length == 12 ? 3 : 4
    guard position + count * each <= file.count else { throw DecodeError.corrupt("the bitmap is truncated") }
    for index in 0..<count {
      let color = position + index * each
      colors[index] = Raster.pixel(file[color + 2], file[color + 1], file[color])
    }
    return (colors, position + count * each)
  }
}

extension UnsafeRawBufferPointer {
  func littleEndian(at offset: Int) -> UInt32 { loadUnaligned(fromByteOffset: offset, as: UInt32.self).littleEndian }
}

/// The layout of a bitmap's pixels, one of the supported combinations.
private struct BitmapLayout {
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
