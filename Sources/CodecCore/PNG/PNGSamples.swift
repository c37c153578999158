internal import ImageCodec

/// The samples of a PNG's rows (section 7.2) and their conversion to pixels of bytes, or of 16-bit numbers.
struct PNGSamples {
  private let depth: Int
  /// The samples of a pixel in the file.
  private let count: Int
  private let hasPalette: Bool
  let bands: Int
  /// R G B and opacity of each palette entry.
  private var colors: [UInt32] = []
  /// The one colour that is transparent (section 11.3.1.1).
  private var transparent: [UInt16]?

  /// - Parameters:
  ///   - palette: the content of PLTE.
  ///   - transparency: the content of tRNS.
  init(
    depth: Int, color: Int, _ palette: UnsafeRawBufferPointer?, _ transparency: UnsafeRawBufferPointer?
  ) throws(DecodeError) {
    self.depth = depth
    count = [0: 1, 2: 3, 3: 1, 4: 2, 6: 4][color] ?? 1
    hasPalette = color == 3
    guard hasPalette else {
      if color & 4 == 0, let transparency, transparency.count == 2 * count {
        let values = (0..<count).map { UInt16(transparency[2 * $0]) << 8 | UInt16(transparency[2 * $0 + 1]) }
        // In 8 bits, the high byte is often not 0.
        let key = depth == 8 ? values.map { $0 & 255 } : values
        // A grey outside of the range of the depth is no pixel's.
        if depth >= 8 || key[0] >> depth == 0 { transparent = key }
      }
      bands = transparent == nil ? count : count + 1
      return
    }
    guard let palette, palette.count.isMultiple(of: 3), (1...256).contains(palette.count / 3) else {
      throw .corrupt("the PNG lacks a valid palette")
    }
    let used = min(palette.count / 3, 1 << depth)
    let opacities = transparency.flatMap { $0.count <= palette.count / 3 ? $0 : nil }
    bands = opacities == nil ? 3 : 4
    // Entries that the file does not have are black, as in libpng.
    colors = [UInt32](repeating: 0xFF00_0000, count: 256)
    for index in 0..<used {
      let opacity = opacities.map { index < $0.count ? $0[index] : 255 } ?? 255
      colors[index] =
        UInt32(palette[3 * index]) | UInt32(palette[3 * index + 1]) << 8 | UInt32(palette[3 * index + 2]) << 16
        | UInt32(opacity) << 24
    }
  }

  var isDeep: Bool { depth == 16 }

  /// The bytes of a converted pixel.
  var pixelSize: Int { bands * (isDeep ? 2 : 1) }

  /// The bytes of a pixel in the file, at least 1, by which filters look to the left.
  var storedPixelSize: Int { max(1, count * depth / 8) }

  /// The bytes of a row in the file, without its filter.
  func length(of width: Int) -> Int { (width * count * depth + 7) / 8 }

  /// Whether the rows of the file need no conversion.
  var arePixels: Bool { depth == 8 && transparent == nil && !hasPalette }

  /// Writes the pixels of a row, and possibly one more byte.
  func convert(_ row: UnsafePointer<UInt8>, _ width: Int, into pixels: UnsafeMutablePointer<UInt8>) {
    if hasPalette {
      convertIndices(row, width, pixels)
    } else if isDeep {
      pixels.withMemoryRebound(to: UInt16.self, capacity: width * bands) { convertDeep(row, width, $0) }
    } else {
      convertSamples(row, width, pixels)
    }
  }

  private func convertIndices(_ row: UnsafePointer<UInt8>, _ width: Int, _ pixels: UnsafeMutablePointer<UInt8>) {
    colors.withUnsafeBufferPointer { colors in
      let place = UnsafeMutableRawPointer(pixels)
      for index in 0..<width {
        let color = colors[sample(row, index)].littleEndian
        // The fourth byte of three is overwritten by the next pixel.
        place.storeBytes(of: color, toByteOffset: index * bands, as: UInt32.self)
      }
    }
  }

  private func convertSamples(_ row: UnsafePointer<UInt8>, _ width: Int, _ pixels: UnsafeMutablePointer<UInt8>) {
    let scale = 255 / (1 << depth - 1)
    guard let transparent else {
      for index in 0..<(width * count) { pixels[index] = UInt8(sample(row, index) * scale) }
      return
    }
    for index in 0..<width {
      var isTransparent = true
      for band in 0..<count {
        let value = sample(row, index * count + band)
        isTransparent = isTransparent && value == Int(transparent[band])
        pixels[index * bands + band] = UInt8(value * scale)
      }
      pixels[index * bands + count] = isTransparent ? 0 : 255
    }
  }

  private func convertDeep(_ row: UnsafePointer<UInt8>, _ width: Int, _ pixels: UnsafeMutablePointer<UInt16>) {
    let samples = UnsafeRawPointer(row)
    for index in 0..<width {
      var isTransparent = true
      for band in 0..<count {
        let value = samples.loadUnaligned(fromByteOffset: 2 * (index * count + band), as: UInt16.self).bigEndian
        if let transparent { isTransparent = isTransparent && value == transparent[band] }
        pixels[index * bands + band] = value
      }
      if bands > count { pixels[index * bands + count] = isTransparent ? 0 : .max }
    }
  }

  /// A sample of at most 8 bits.
  @inline(__always)
  private func sample(_ row: UnsafePointer<UInt8>, _ index: Int) -> Int {
    if depth == 8 { return Int(row[index]) }
    let bit = index * depth
    return Int(row[bit >> 3] >> UInt8(8 - depth - bit & 7)) & (1 << depth - 1)
  }
}
