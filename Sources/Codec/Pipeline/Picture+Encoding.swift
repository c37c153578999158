internal import CVips
internal import CodecCore
internal import CodecSandbox
internal import ImageCodec

extension Picture {
  /// Encodes the picture. A JPEG is not progressive, and its chroma is subsampled below quality 90.
  ///
  /// - Parameters:
  ///   - quality: nil for the format's default.
  ///   - isLossless: whether a WebP or JPEG XL is lossless and ignores the quality.
  ///   - exif: the only metadata of the file, for formats that hold any.
  func encoded(
    _ format: ImageFormat, quality: Int? = nil, isLossless: Bool = false, exif: [UInt8] = []
  ) throws -> EncodedFile {
    if format == .avif { return try avif(quality: quality ?? format.usualQuality, exif) }
    return try encoded(format, quality: quality, isLossless: isLossless).with(exif: exif, format)
  }

  private func encoded(_ format: ImageFormat, quality: Int?, isLossless: Bool) throws -> EncodedFile {
    if format == .jpeg { return try jpeg(quality: quality ?? format.usualQuality) }
    if format == .png, let file = try png() { return file }
    if format == .webp, !isLossless, !isAnimation {
      let writer = try WebPWriter(width: width, height: height, bands: bands)
      try forEachRows { writer.write($0) }
      return try writer.finish(quality: quality ?? format.usualQuality)
    }
    var bytes: UnsafeMutableRawPointer?
    var count = 0
    let quality = Int32(quality ?? format.usualQuality)
    let status =
      switch format {
      case .png: cvips_save_png(pointer, &bytes, &count)
      case .gif: cvips_save_gif(pointer, &bytes, &count)
      case .webp where isLossless: cvips_save_lossless_webp(pointer, &bytes, &count)
      case .webp: cvips_save_webp(pointer, &bytes, &count, quality)
      case .jxl:
        try withMemoryForJXL(isLossless: isLossless) { picture in
          isLossless
            ? cvips_save_lossless_jxl(picture, &bytes, &count) : cvips_save_jxl(picture, &bytes, &count, quality)
        }
      default: Int32(-1)
      }
    guard status == 0, let bytes else { throw LibraryError() }
    if format == .webp {
      count = WebPMetadata.remove(from: UnsafeMutableRawBufferPointer(start: bytes, count: count))
      WebPTransparency.announce(in: UnsafeMutableRawBufferPointer(start: bytes, count: count))
    }
    return EncodedFile(bytes: bytes, count: count)
  }

  /// Throws if libjxl might run out of memory, since it then ends the process.
  private func withMemoryForJXL(
    isLossless: Bool, _ encode: (UnsafeMutablePointer<VipsImage>) -> Int32
  ) throws -> Int32 {
    // libjxl 0.7 was measured to take 41 bytes for each pixel, 66 if lossless, and 19 more for alpha.
    let pixelBytes = (isLossless ? 70 : 45) + (bands.isMultiple(of: 2) ? 20 : 0)
    guard width <= Sandbox.memoryLimit / pixelBytes / max(1, height) else { throw LibraryError.memory }
    return encode(pointer)
  }

  private func avif(quality: Int, _ exif: [UInt8]) throws -> EncodedFile {
    let pixels = try Raster(width: width, height: height, channels: bands)
    var place = pixels.base
    try forEachRows { row in
      place.copyMemory(from: row.baseAddress!, byteCount: row.count)
      place += row.count
    }
    return try AVIFWriter.file(
      pixels.base.assumingMemoryBound(to: UInt8.self), width: width, height: height, bands: bands, quality: quality,
      exif: exif)
  }

  /// Nil if the picture is too large to be compressed at once.
  private func png() throws -> EncodedFile? {
    guard let writer = try PNGWriter(width: width, height: height, bands: bands) else { return nil }
    try forEachRows { writer.write($0) }
    return try writer.finish()
  }

  /// If there are two bands that are not grey and alpha, only the first is written: they come from a JPEG of two
  /// components.
  private func jpeg(quality: Int) throws -> EncodedFile {
    let picture = bands == 2 ? try map { cvips_extract_bands($0, $1, 0, 1) } : self
    let writer = try JPEGWriter(width: width, height: height, bands: picture.bands, quality: quality)
    try picture.forEachRows { try writer.write($0) }
    return try writer.finish()
  }
}

extension ImageFormat {
  var holdsAlpha: Bool { self != .jpeg }
}
