internal import CWebP
internal import Platform

/// Writes a lossy WebP.
package final class WebPWriter {
  private let (width, height, bands): (Int, Int, Int)
  private let pixels: PixelMemory
  private var place: UnsafeMutablePointer<UInt8>

  /// - Parameter bands: 1 for grey, 3 for R G B, and one more for alpha.
  package init(width: Int, height: Int, bands: Int) throws(LibraryError) {
    (self.width, self.height, self.bands) = (width, height, bands)
    pixels = try PixelMemory(width * height * (bands.isMultiple(of: 2) ? 4 : 3))
    place = pixels.samples
  }

  package func write(_ row: UnsafeRawBufferPointer) {
    if bands >= 3 {
      UnsafeMutableRawPointer(place).copyMemory(from: row.baseAddress!, byteCount: row.count)
      place += row.count
      return
    }
    for start in stride(from: 0, to: row.count, by: bands) {
      for _ in 0..<3 {
        place.pointee = row[start]
        place += 1
      }
      if bands == 2 {
        place.pointee = row[start + 1]
        place += 1
      }
    }
  }

  /// - Parameter quality: 1 to 100.
  package func finish(quality: Int) throws(LibraryError) -> EncodedFile {
    var file: UnsafeMutablePointer<UInt8>?
    var length = 0
    let status = cwebp_encode(
      pixels.samples, Int32(width), Int32(height), bands.isMultiple(of: 2) ? 1 : 0, Int32(quality), &file, &length)
    switch (WebPEncodingError(UInt32(bitPattern: status)), file) {
    case (VP8_ENC_OK, let file?): return EncodedFile(bytes: file, count: length)
    case (VP8_ENC_ERROR_OUT_OF_MEMORY, _), (VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY, _):
      throw LibraryError("out of memory")
    case (let error, _): throw LibraryError("libwebp cannot write the image (error \(error.rawValue))")
    }
  }
}
