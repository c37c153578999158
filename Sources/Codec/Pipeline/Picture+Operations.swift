internal import CVips
internal import CodecCore

extension Picture {
  func extracted(x: Int, y: Int, width: Int, height: Int) throws(LibraryError) -> Picture {
    if x == 0, y == 0, width == self.width, height == self.height { return self }
    return try map { cvips_extract_area($0, $1, Int32(x), Int32(y), Int32(width), Int32(height)) }
  }

  /// Resized with Lanczos3 on the stored values. Linear light would cost three times as much, and neither browsers nor
  /// libvips' own thumbnailer use it (Tests/Benchmarks/light.py). Colours are weighted by alpha.
  func resized(toWidth width: Int, height: Int) throws -> Picture {
    if width == self.width, height == self.height { return self }
    if bandFormat == VIPS_FORMAT_UCHAR, bands <= 4,
      Resampler.needsLittleMemory(from: (self.width, self.height), to: (width, height))
    {
      return try resampled(toWidth: width, height: height)
    }
    return try premultiplied { picture throws(LibraryError) in try picture.stretched(toWidth: width, height: height) }
  }

  private func resampled(toWidth width: Int, height: Int) throws -> Picture {
    let resampler = Resampler(
      hasAlpha ? .alphaLast : .plain, count: bands, from: (self.width, self.height), to: (width, height))
    let pixels = try PixelMemory(width * height * bands) { take in
      try forEachRows { try resampler.add($0.bindMemory(to: UInt8.self).baseAddress!, take) }
    }
    return try like(UnsafeRawBufferPointer(pixels.bytes), width: width, height: height)
  }

  /// Resized by libvips, for any size and kind of pixels.
  func stretched(toWidth width: Int, height: Int) throws(LibraryError) -> Picture {
    let horizontal = Double(width) / Double(self.width)
    let vertical = Double(height) / Double(self.height)
    guard max(horizontal, vertical) > 1 else { return try map { cvips_resize($0, $1, horizontal, vertical) } }
    let smaller =
      min(horizontal, vertical) < 1 ? try map { cvips_resize($0, $1, min(1, horizontal), min(1, vertical)) } : self
    return try smaller.map {
      cvips_enlarge($0, $1, max(1, horizontal), max(1, vertical), Int32(width), Int32(height))
    }
  }

  /// Blurred. A wide blur is computed on a reduced image, which loses only what the blur removes; otherwise it would
  /// take minutes.
  func blurred(sigma: Double) throws(LibraryError) -> Picture {
    let reduction = max(1, (sigma / 4).rounded(.down))
    let (width, height) = (width, height)
    let (fewer, lower) = (max(1, Int(Double(width) / reduction)), max(1, Int(Double(height) / reduction)))
    return try premultiplied { picture throws(LibraryError) in
      if reduction == 1 { return try picture.map { cvips_blur($0, $1, sigma) } }
      let small = try picture.stretched(toWidth: fewer, height: lower)
      let blurred = try small.map { cvips_blur($0, $1, sigma * Double(fewer) / Double(width)) }
      // Computed once, because enlarging reads each row many times.
      return try blurred.inMemory().stretched(toWidth: width, height: height)
    }
  }

  /// Applies an operation that mixes neighbours to premultiplied pixels, so that transparent colours do not bleed into
  /// others.
  private func premultiplied(_ change: (Picture) throws(LibraryError) -> Picture) throws(LibraryError) -> Picture {
    guard hasAlpha else { return try change(self) }
    let format = bandFormat
    let premultiplied = try map { cvips_premultiply($0, $1) }
    let changed = try change(premultiplied)
    let straight = try changed.map { cvips_unpremultiply($0, $1) }
    return try straight.map { cvips_cast($0, $1, format) }
  }

  /// Oriented upright; `orientation` is as in EXIF.
  func oriented(_ orientation: Int) throws(LibraryError) -> Picture {
    guard (2...8).contains(orientation) else { return self }
    // In memory, because the rows are read in another order.
    let picture = try inMemory()
    let angle: VipsAngle? =
      switch orientation {
      case 3: VIPS_ANGLE_D180
      case 5, 6: VIPS_ANGLE_D90
      case 7, 8: VIPS_ANGLE_D270
      default: nil
      }
    let turned = if let angle { try picture.map { cvips_rotate($0, $1, angle) } } else { picture }
    switch orientation {
    case 2, 5, 7: return try turned.map { cvips_flip($0, $1, VIPS_DIRECTION_HORIZONTAL) }
    case 4: return try turned.map { cvips_flip($0, $1, VIPS_DIRECTION_VERTICAL) }
    default: return turned
    }
  }

  /// Converts kinds of TIFF pixels that the later steps do not support: packed Lab becomes sRGB, and only one extra
  /// sample is kept, the alpha. Throws if the value range of the sample type is not defined.
  ///
  /// - Parameter alpha: the index of the extra sample to keep, from 0; nil for none.
  func common(alpha: Int?) throws(LibraryError) -> Picture {
    if vips_image_get_coding(pointer) == VIPS_CODING_LABQ { return try map { cvips_from_labq($0, $1) } }
    if let colors, colors <= 3, let white = Self.white(of: bandFormat) {
      let scaled = try map { cvips_linear($0, $1, 255 / white, 0.5) }
      let bytes = try scaled.map { cvips_cast($0, $1, VIPS_FORMAT_UCHAR) }
      let space = colors == 1 ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB
      return try bytes.map { cvips_interpret($0, $1, space) }.common(alpha: alpha)
    }
    if let colors, ![VIPS_FORMAT_UCHAR, VIPS_FORMAT_USHORT].contains(bandFormat) {
      throw LibraryError("\(colors == 1 ? "grey" : "colour") samples of this type are not supported")
    }
    guard let colors, bands > colors else { return self }
    guard let alpha, alpha < bands - colors else { return try map { cvips_extract_bands($0, $1, 0, Int32(colors)) } }
    if alpha == 0 { return bands == colors + 1 ? self : try map { cvips_extract_bands($0, $1, 0, Int32(colors + 1)) } }
    let color = try map { cvips_extract_bands($0, $1, 0, Int32(colors)) }
    let opacity = try map { cvips_extract_bands($0, $1, Int32(colors + alpha), 1) }
    return try Picture.make { cvips_join_bands(color.pointer, opacity.pointer, $0) }
  }

  /// Floating-point samples of a JPEG XL as 16-bit numbers. They range from 0 to 1 and belong to the profile; libvips
  /// takes them for linear light.
  func withoutFloats() throws(LibraryError) -> Picture {
    guard bandFormat == VIPS_FORMAT_FLOAT else { return self }
    let scaled = try map { cvips_linear($0, $1, 65535, 0.5) }
    let numbers = try scaled.map { cvips_cast($0, $1, VIPS_FORMAT_USHORT) }
    let space = bands <= 2 ? VIPS_INTERPRETATION_GREY16 : VIPS_INTERPRETATION_RGB16
    return try numbers.map { cvips_interpret($0, $1, space) }
  }

  /// The value of white in samples of more than 16 bits. Floating-point samples range from 0 to 1, as in files of
  /// libtiff and Photoshop. For signed integers the value of black is not defined.
  private static func white(of format: VipsBandFormat) -> Double? {
    switch format {
    case VIPS_FORMAT_UINT: Double(UInt32.max)
    case VIPS_FORMAT_FLOAT, VIPS_FORMAT_DOUBLE: 1
    default: nil
    }
  }

  /// Converted to 8-bit grey or sRGB, with alpha if there is any.
  func standardized() throws(LibraryError) -> Picture {
    let isGrey = bands - (hasAlpha ? 1 : 0) == 1
    if bandFormat == VIPS_FORMAT_UCHAR, !hasProfile {
      let space = interpretation
      if space == VIPS_INTERPRETATION_sRGB || space == VIPS_INTERPRETATION_B_W { return self }
    }
    guard hasAlpha else { return try colorStandardized(isGrey: isGrey) }
    let color = try map { cvips_extract_bands($0, $1, 0, Int32(bands - 1)) }
    let alpha = try map { cvips_extract_bands($0, $1, Int32(bands - 1), 1) }
    let standardized = try color.colorStandardized(isGrey: isGrey)
    // Joined bands have the profile of either, and a profile must be applied once.
    let alphaInBytes = try alpha.inBytes(isDeep: bandFormat == VIPS_FORMAT_USHORT).withProfile(nil)
    return try Picture.make { cvips_join_bands(standardized.pointer, alphaInBytes.pointer, $0) }
  }

  private func colorStandardized(isGrey: Bool) throws(LibraryError) -> Picture {
    if let converted = try convertedByProfile() { return converted }
    if interpretation == VIPS_INTERPRETATION_CMYK, bands == 4 { return try mixed() }
    return try inColorSpace(isGrey ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB)
  }

  /// CMYK without a profile, converted to sRGB as browsers do: each ink absorbs its part of the light. Black is then
  /// pure black, unlike with the printing profile that libvips would assume.
  private func mixed() throws(LibraryError) -> Picture {
    let light = try inBytes(isDeep: bandFormat == VIPS_FORMAT_USHORT).map { cvips_invert($0, $1) }
    let colors = try light.map { cvips_extract_bands($0, $1, 0, 3) }
    let black = try light.map { cvips_extract_bands($0, $1, 3, 1) }
    let product = try Picture.make { cvips_multiply(colors.pointer, black.pointer, $0) }
    let scaled = try product.map { cvips_linear($0, $1, 1.0 / 255, 0.5) }
    let mixed = try scaled.map { cvips_cast($0, $1, VIPS_FORMAT_UCHAR) }
    return try mixed.map { cvips_interpret($0, $1, VIPS_INTERPRETATION_sRGB) }
  }

  func inColorSpace(_ space: VipsInterpretation) throws(LibraryError) -> Picture {
    let converted = try map { cvips_colourspace($0, $1, space) }
    if converted.bandFormat == VIPS_FORMAT_UCHAR { return converted }
    return try converted.map { cvips_cast($0, $1, VIPS_FORMAT_UCHAR) }
  }

  private func inBytes(isDeep: Bool) throws(LibraryError) -> Picture {
    if bandFormat == VIPS_FORMAT_UCHAR { return self }
    let scaled = isDeep ? try map { cvips_linear($0, $1, 255.0 / 65535, 0.5) } : self
    return try scaled.map { cvips_cast($0, $1, VIPS_FORMAT_UCHAR) }
  }
}
