internal import CVips

/// Looks at a PNG that is being read before libpng reads its last rows, and with them all that follows: if much image
/// data is left by then, whether it goes on behind the rows. Most have little left, and cost nothing.
final class TrailingDataGuard {
  private let screening: PNGScreening
  private let source: UnsafeMutablePointer<VipsSource>
  private var isNear = false
  /// Whether it was refused.
  private(set) var goesOn = false

  /// - Parameter source: what libpng reads the file from.
  init(of file: UnsafeRawBufferPointer, readFrom source: UnsafeMutablePointer<VipsSource>) {
    screening = PNGScreening(file)
    self.source = source
    cvips_ref(source)
  }

  deinit { cvips_unref(source) }

  /// The picture, whose last rows may be refused. Must not outlive this.
  func watch(_ picture: Picture) throws(LibraryError) -> Picture {
    try picture.map { image, result in
      cvips_gated_end(
        image, result,
        { context in
          // The pipeline runs on one thread at a time.
          Unmanaged<TrailingDataGuard>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue().mayBeRead ? 1 : 0
        }, Unmanaged.passUnretained(self).toOpaque())
    }
  }

  private var mayBeRead: Bool {
    if !isNear {
      isNear = true
      let left = screening.endOfImageData - Int(source.pointee.read_position)
      goesOn = screening.mayGoOn(in: left) && screening.goesOn()
    }
    return !goesOn
  }
}
