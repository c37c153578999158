internal import CVips
internal import CodecSandbox
internal import ImageCodec
internal import Platform

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

/// Checks the markers of a JPEG before libjpeg reads it (ITU-T T.81 annex B).
///
/// `ScanCounter` is not used, because it follows a JPEG that still arrives and stops at files that have no preview.
private enum JPEGScreening {
  private static let (startOfScan, endOfImage): (UInt8, UInt8) = (0xDA, 0xD9)

  /// The maximum number of scans that libjpeg may find, whatever the frame header says: it decodes each, even in a
  /// sequential JPEG. A segment length below 2 is skipped, as in libjpeg.
  static func scans(in file: UnsafeRawBufferPointer) -> Int {
    var scans = 0
    var position = 2
    while let marker = nextMarker(in: file, from: &position), marker != endOfImage {
      // Markers without a segment, or bytes that are not markers.
      if marker <= 0x01 || (0xD0...0xD8).contains(marker) { continue }
      guard file.count - position >= 2 else { break }
      position += max(2, Int(file[position]) << 8 | Int(file[position + 1]))
      if marker == startOfScan { scans += 1 }
    }
    return scans
  }

  /// The byte after the next 0xFF that is not fill. In a scan's data it is 0 or a restart marker.
  private static func nextMarker(in file: UnsafeRawBufferPointer, from position: inout Int) -> UInt8? {
    guard position < file.count,
      let found = memchr(file.baseAddress! + position, 0xFF, file.count - position)
    else { return nil }
    position = UnsafeRawPointer(found) - file.baseAddress!
    while position < file.count, file[position] == 0xFF { position += 1 }
    guard position < file.count else { return nil }
    defer { position += 1 }
    return file[position]
  }
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
