internal import CodecSandbox
internal import ImageCodec

extension Input {
  /// The input for libvips. Throws if decoding would take long despite few pixels, or if libvips would decode another
  /// picture than the one that is meant.
  func screened(_ format: ImageFormat) throws(DecodeError) -> Input {
    switch format {
    case .png: return try PNGScreening(bytes).screened().map(Input.init(copying:)) ?? self
    case .jpeg where JPEGScreening.scans(in: bytes) > Self.maxScans:
      throw .corrupt("the JPEG has more than \(Self.maxScans) scans")
    case .tiff where TIFFHeader.isPlainYCbCr(self):
      throw .unsupportedFormat("the decoder reads TIFFs in YCbCr only if they are JPEG-compressed")
    case .avif where HEIFMinimized.isIn(self), .heic where HEIFMinimized.isIn(self):
      throw .unsupportedFormat("minimized image boxes are not supported")
    case .jxl:
      // libvips 8.14 returns the last frame. libvips 8.17 supports frames.
      if JXLHeader.isAnimated(self) { throw .unsupportedFormat("animations in JPEG XL are not supported") }
      // libjxl ends the process if it runs out of memory.
      let header = try header(format)
      guard (header.width ?? 0) <= Sandbox.memoryLimit / Self.bytesOfJXLPixel / max(1, header.height ?? 0) else {
        throw LibraryError.memory
      }
      return self
    default: return self
    }
  }

  /// The maximum number of scans. Each scan passes over all pixels and may have only a few bytes. Encoders write about
  /// ten.
  private static let maxScans = 100

  /// Bytes of memory for each pixel. libjxl 0.7 was measured to take 38 for lossy images with alpha and 10 for others.
  private static let bytesOfJXLPixel = 40
}
