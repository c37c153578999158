internal import CVips
internal import CodecCore
internal import Platform

extension PNGReader {
  /// The pixels, decoded from the top when they are read, with the colours that the file declares. The reader must
  /// outlive the picture.
  ///
  /// - Parameter colors: those of the file.
  func picture(_ colors: PNGColors) throws(LibraryError) -> Picture {
    let isGrey = storedBands <= 2
    let space =
      switch (isGrey, isDeep) {
      case (true, false): VIPS_INTERPRETATION_B_W
      case (true, true): VIPS_INTERPRETATION_GREY16
      case (false, false): VIPS_INTERPRETATION_sRGB
      case (false, true): VIPS_INTERPRETATION_RGB16
      }
    let picture = try Picture.reading(
      width: size.width, height: size.height, bands: storedBands,
      format: isDeep ? VIPS_FORMAT_USHORT : VIPS_FORMAT_UCHAR,
      space: space, profile: profile,
      { context, row in
        Unmanaged<PNGReader>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue().read(
          into: row.unsafelyUnwrapped)
      }, Unmanaged.passUnretained(self).toOpaque())
    return try picture.declared(colors)
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

extension Picture {
  /// The same picture with the profile that the chunks of its file declare.
  fileprivate func declared(_ colors: PNGColors) throws(LibraryError) -> Picture {
    switch colors.change(hasProfile: hasProfile) {
    case .none: return self
    case .removal: return try withProfile(nil)
    case .replacement(let chromaticities, let transfer):
      return try withProfile(ICCProfile.display(chromaticities, transfer))
    }
  }
}
