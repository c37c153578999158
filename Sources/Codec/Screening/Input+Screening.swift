internal import CodecCore
internal import CodecSandbox
internal import ImageCodec

extension Input {
  /// The input for libvips. Throws if decoding would take long despite few pixels, or if libvips would decode another
  /// picture than the one that is meant.
  func screened(_ format: ImageFormat) throws(DecodeError) -> Input {
    switch format {
    case .jpeg:
      try JPEGScreening.check(bytes)
      return self
    case .tiff where TIFFHeader.isPlainYCbCr(self):
      throw .unsupportedFormat("the decoder reads TIFFs in YCbCr only if they are JPEG-compressed")
    case .avif where HEIFMinimized.isIn(self), .heic where HEIFMinimized.isIn(self):
      throw .unsupportedFormat("minimized image boxes are not supported")
    case .heic:
      guard let references = HEIFReferences(self), let replacement = references.describingOneImage else { return self }
      return Input(copying: try EncodedFile(copying: bytes, with: replacement, in: references.range))
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

  /// Bytes of memory for each pixel. libjxl 0.7 was measured to take 38 for lossy images with alpha and 10 for others.
  private static let bytesOfJXLPixel = 40
}
