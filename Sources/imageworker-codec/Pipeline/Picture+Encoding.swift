internal import CVips
internal import ImageCodec

extension Picture {
  /// Encodes the picture without metadata. A JPEG is not progressive, and its chroma is subsampled below quality 90.
  ///
  /// - Parameters:
  ///   - quality: nil for the format's default.
  ///   - isLossless: whether a WebP is lossless and ignores the quality.
  func encoded(_ format: ImageFormat, quality: Int? = nil, isLossless: Bool = false) throws -> EncodedFile {
    if format == .jpeg { return try jpeg(quality: quality ?? format.usualQuality) }
    if format == .avif { return try avif(quality: quality ?? format.usualQuality) }
    var bytes: UnsafeMutableRawPointer?
    var count = 0
    let quality = Int32(quality ?? format.usualQuality)
    let status =
      switch format {
      case .png: cvips_save_png(pointer, &bytes, &count)
      case .webp where isLossless: cvips_save_lossless_webp(pointer, &bytes, &count)
      case .webp: cvips_save_webp(pointer, &bytes, &count, quality)
      default: Int32(-1)
      }
    guard status == 0, let bytes else { throw LibraryError() }
    if format == .webp {
      count = WebPMetadata.remove(from: UnsafeMutableRawBufferPointer(start: bytes, count: count))
      WebPTransparency.announce(in: UnsafeMutableRawBufferPointer(start: bytes, count: count))
    }
    return EncodedFile(bytes: bytes, count: count)
  }

  private func avif(quality: Int) throws -> EncodedFile {
    let pixels = try Raster(width: width, height: height, channels: bands)
    var place = pixels.base
    try forEachRows { row in
      place.copyMemory(from: row.baseAddress!, byteCount: row.count)
      place += row.count
    }
    return try AVIFWriter.file(
      pixels.base.assumingMemoryBound(to: UInt8.self), width: width, height: height, bands: bands, quality: quality)
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

/// A file in memory that a library allocated with `malloc` or `g_malloc`, which are the same since GLib 2.46.
final class EncodedFile {
  let bytes: UnsafeRawBufferPointer

  init(bytes: UnsafeMutableRawPointer, count: Int) { self.bytes = UnsafeRawBufferPointer(start: bytes, count: count) }

  deinit { g_free(UnsafeMutableRawPointer(mutating: bytes.baseAddress)) }
}

extension ImageFormat {
  /// The maximum side of an image in this format.
  var maxSide: Int {
    switch self {
    case .webp: 16383
    case .avif: 16384
    case .jpeg: 65500
    default: Int(Int32.max)
    }
  }

  var holdsAlpha: Bool { self != .jpeg }
}
