internal import CJPEG
internal import CVips
internal import CodecCore

extension JPEGReader {
  /// The pixels, decoded from the top when they are read, reduced on each side by up to `shrink` (1, 2, 4 or 8).
  ///
  /// - Parameter header: the picture that libvips opens of the same file, which gives the meaning of the pixels.
  func picture(like header: Picture, shrink: Int) throws(LibraryError) -> Picture {
    try check(cjpeg_start(reader, Int32(shrink)))
    return try Picture.reading(
      width: Int(reader.pointee.jpeg.output_width), height: Int(reader.pointee.jpeg.output_height),
      bands: header.bands, format: VIPS_FORMAT_UCHAR, space: vips_image_get_interpretation(header.pointer),
      profile: header.profile, owner: self
    ) { context, row in
      let reader = Unmanaged<JPEGReader>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue().reader
      guard let row, cjpeg_read_row(reader, row) != 0 else { return cvips_fail(cjpeg_message(reader)) }
      cjpeg_look_for_end(reader)
      return 0
    }
  }
}
