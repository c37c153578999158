internal import CVips
internal import ImageCodec

extension Picture {
  /// As a file: no metadata, JPEG not progressive and with full colour resolution only from quality 90 on.
  ///
  /// - Parameters:
  ///   - quality: nil for the format's usual one.
  ///   - isLossless: whether a WebP has these very pixels, and no quality.
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

  /// Of two bands that are not grey and alpha, the first: a JPEG may have had two components.
  private func jpeg(quality: Int) throws -> EncodedFile {
    let picture = bands == 2 ? try map { cvips_extract_bands($0, $1, 0, 1) } : self
    let writer = try JPEGWriter(width: width, height: height, bands: picture.bands, quality: quality)
    try picture.forEachRows { try writer.write($0) }
    return try writer.finish()
  }
}

/// Memory that a library wrote a file into, from `malloc` or `g_malloc`: these are the same since GLib 2.46.
final class EncodedFile {
  let bytes: UnsafeRawBufferPointer

  init(bytes: UnsafeMutableRawPointer, count: Int) { self.bytes = UnsafeRawBufferPointer(start: bytes, count: count) }

  deinit { g_free(UnsafeMutableRawPointer(mutating: bytes.baseAddress)) }
}

extension ImageFormat {
  /// The longest side that a file of this format can have.
  var longestSide: Int {
    switch self {
    case .webp: 16383
    case .avif: 16384
    case .jpeg: 65500
    default: Int(Int32.max)
    }
  }

  var holdsAlpha: Bool { self != .jpeg }
}
