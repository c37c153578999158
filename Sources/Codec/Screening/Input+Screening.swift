internal import CVips
internal import CodecCore
internal import CodecSandbox
internal import ImageCodec
internal import Platform

extension Input {
  /// The input for libvips. Throws if decoding would take long despite few pixels, or if libvips would decode another
  /// picture than the one that is meant.
  func screened(_ format: ImageFormat) throws(DecodeError) -> Input {
    switch format {
    case .png: return try PNGScreening(bytes).screened().map(Input.init(copying:)) ?? self
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

/// Checks a PNG for excess image data before libpng reads the last rows, because libpng then reads everything that
/// follows as well. If much image data is left at that point, it is inflated to check its size. In most files little is
/// left, so the check costs nothing.
final class TrailingDataGuard {
  private let screening: PNGScreening
  private let source: UnsafeMutablePointer<VipsSource>
  private var isNear = false
  /// Whether excess image data was found and the last rows were refused.
  private(set) var hasExcessData = false

  /// - Parameter source: the source from which libpng reads the file.
  init(of file: UnsafeRawBufferPointer, readFrom source: UnsafeMutablePointer<VipsSource>) {
    screening = PNGScreening(file)
    self.source = source
    cvips_ref(source)
  }

  deinit { cvips_unref(source) }

  /// The picture with a check before its last rows. It must not outlive the guard.
  func watch(_ picture: Picture) throws(LibraryError) -> Picture {
    try picture.map { image, result in
      cvips_gated_end(
        image, result,
        { context in
          // Safe, because the pipeline runs on one thread at a time.
          Unmanaged<TrailingDataGuard>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue().mayBeRead ? 1 : 0
        }, Unmanaged.passUnretained(self).toOpaque())
    }
  }

  private var mayBeRead: Bool {
    if !isNear {
      isNear = true
      let left = screening.endOfImageData - Int(source.pointee.read_position)
      hasExcessData = screening.mayExceedRows(in: left) && screening.hasExcessData()
    }
    return !hasExcessData
  }
}
