internal import CVips
internal import CodecCore

extension WebPReader {
  /// The pixels, decoded when the first is read, reduced on each side by `shrink`.
  func picture(shrink: Int) throws(LibraryError) -> Picture {
    let (width, height) = reducedSize(shrink)
    return try Picture.reading(
      width: width, height: height, bands: storedBands, format: VIPS_FORMAT_UCHAR, space: VIPS_INTERPRETATION_sRGB,
      profile: profile, owner: WebPRows(self, shrink: shrink)
    ) { context, row in
      Unmanaged<WebPRows>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
        .read(into: row.unsafelyUnwrapped)
    }
  }
}

/// The rows of a reduced WebP.
private final class WebPRows {
  private let reader: WebPReader
  private let shrink: Int
  private var pixels: PixelMemory?
  private var next = 0

  init(_ reader: WebPReader, shrink: Int) { (self.reader, self.shrink) = (reader, shrink) }

  /// Returns 0 on success.
  func read(into row: UnsafeMutablePointer<UInt8>) -> Int32 {
    do throws(LibraryError) {
      let pixels = if let pixels { pixels } else { try reader.pixels(shrink: shrink) }
      self.pixels = pixels
      let length = reader.reducedSize(shrink).width * reader.storedBands
      row.update(from: pixels.samples + next * length, count: length)
      next += 1
      return 0
    } catch {
      return cvips_fail(error.message)
    }
  }
}
