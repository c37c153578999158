internal import CVips
internal import CodecCore
internal import Platform

extension PNGReader {
  /// The pixels, decoded from the top when they are read.
  func picture(profile: [UInt8]?) throws(LibraryError) -> Picture {
    let isGrey = storedBands <= 2
    let space =
      switch (isGrey, isDeep) {
      case (true, false): VIPS_INTERPRETATION_B_W
      case (true, true): VIPS_INTERPRETATION_GREY16
      case (false, false): VIPS_INTERPRETATION_sRGB
      case (false, true): VIPS_INTERPRETATION_RGB16
      }
    return try Picture.reading(
      width: size.width, height: size.height, bands: storedBands,
      format: isDeep ? VIPS_FORMAT_USHORT : VIPS_FORMAT_UCHAR,
      space: space, profile: profile, owner: self
    ) { context, row in
      Unmanaged<PNGReader>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
        .read(into: row.unsafelyUnwrapped)
    }
  }

  /// Returns 0 on success.
  private func read(into row: UnsafeMutablePointer<UInt8>) -> Int32 {
    do throws(LibraryError) {
      row.update(from: try nextRow(), count: size.width * storedBands * (isDeep ? 2 : 1))
      return 0
    } catch {
      return cvips_fail(error.message)
    }
  }
}
