internal import CWebP
internal import Platform

/// Decodes a WebP that is not animated.
package final class WebPReader: RowReader {
  package let size: (width: Int, height: Int)
  package let hasAlpha: Bool
  package let isAnimated: Bool
  private let file: UnsafeRawBufferPointer

  package var storedBands: Int { hasAlpha ? 4 : 3 }

  /// - Parameter file: the whole file, which must outlive the reader.
  package init(_ file: UnsafeRawBufferPointer) throws(LibraryError) {
    var features = WebPBitstreamFeatures()
    try Self.check(cwebp_read_features(file.baseAddress, file.count, &features))
    self.file = file
    size = (Int(features.width), Int(features.height))
    // Alpha that an extended header does not announce is ignored, as in browsers.
    hasAlpha = features.has_alpha != 0 && (Self.flags(of: file).map { $0 & 0x10 != 0 } ?? true)
    isAnimated = features.has_animation != 0
  }

  /// The flags of an extended header (RFC 9649 section 2.7). Nil without one.
  private static func flags(of file: UnsafeRawBufferPointer) -> UInt8? {
    var chunks = WebPChunks(of: file)
    guard let header = chunks.next(), header.name == "VP8X", !header.content.isEmpty else { return nil }
    return file[header.content.lowerBound]
  }

  /// The ICC profile. Nil if there is none.
  package var profile: [UInt8]? {
    guard let flags = Self.flags(of: file), flags & 0x20 != 0 else { return nil }
    return WebPChunks(of: file).first { $0.name == "ICCP" }.map { Array(file[$0.content]) }
  }

  /// The size of the image after a reduction of each side.
  package func reducedSize(_ shrink: Int) -> (width: Int, height: Int) {
    (max(1, (size.width + shrink / 2) / shrink), max(1, (size.height + shrink / 2) / shrink))
  }

  /// All pixels, reduced on each side by `shrink` while they are decoded.
  package func pixels(shrink: Int) throws(LibraryError) -> PixelMemory {
    let (width, height) = reducedSize(shrink)
    let pixels = try PixelMemory(width * height * storedBands)
    try Self.check(
      cwebp_decode(
        file.baseAddress, file.count, Int32(width), Int32(height), hasAlpha ? 1 : 0, pixels.bytes.baseAddress))
    return pixels
  }

  package func forEachRow(above end: Int, _ body: (Int, UnsafePointer<UInt8>) throws -> Void) throws {
    let pixels = try pixels(shrink: 1)
    for index in 0..<end { try body(index, pixels.samples + index * size.width * storedBands) }
  }

  private static func check(_ status: Int32) throws(LibraryError) {
    switch VP8StatusCode(UInt32(bitPattern: status)) {
    case VP8_STATUS_OK: break
    case VP8_STATUS_OUT_OF_MEMORY: throw LibraryError("out of memory")
    case VP8_STATUS_NOT_ENOUGH_DATA: throw LibraryError("the WebP is truncated")
    case VP8_STATUS_UNSUPPORTED_FEATURE: throw LibraryError("the WebP has a feature that libwebp does not support")
    default: throw LibraryError("the data of the WebP is invalid")
    }
  }
}
