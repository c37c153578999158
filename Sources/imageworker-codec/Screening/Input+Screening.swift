internal import ImageCodec

extension Input {
  /// What libvips is to see of it. Refuses what would take it long however few pixels there are, and what it would make
  /// another picture of.
  func screened(_ format: ImageFormat) throws(DecodeError) -> Input {
    switch format {
    case .png: return try PNGScreening(bytes).screened().map(Input.init(copying:)) ?? self
    case .jpeg where JPEGScreening.scans(in: bytes) > Self.mostScans:
      throw .corrupt("the JPEG has more than \(Self.mostScans) scans")
    case .tiff where TIFFHeader.isPlainYCbCr(self):
      throw .unsupportedFormat("the decoder reads TIFFs in YCbCr only if they are JPEG-compressed")
    case .avif where HEIFMinimized.isIn(self), .heic where HEIFMinimized.isIn(self):
      throw .unsupportedFormat("minimized image boxes are not supported")
    case .jxl:
      // libvips 8.14 gives the last frame. 8.17 has frames.
      if JXLHeader.isAnimated(self) { throw .unsupportedFormat("animations in JPEG XL are not supported") }
      // libjxl ends the process where it finds no memory.
      let header = try header(format)
      guard (header.width ?? 0) <= Sandbox.memoryLimit / Self.bytesOfJXLPixel / max(1, header.height ?? 0) else {
        throw LibraryError.memory
      }
      return self
    default: return self
    }
  }

  /// Each goes over all pixels, and need not have more than a few bytes. Encoders make about ten.
  private static let mostScans = 100

  /// libjxl 0.7 was seen to take 38 bytes for each pixel of lossy images with alpha, 10 of others.
  private static let bytesOfJXLPixel = 40
}
