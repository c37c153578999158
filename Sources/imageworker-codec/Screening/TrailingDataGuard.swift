internal import CVips

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
