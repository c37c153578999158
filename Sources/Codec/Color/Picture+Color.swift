internal import CVips
internal import CodecCore

extension Picture {
  /// Pixels without alpha, converted to grey or sRGB by the picture's profile. Nil if there is none, if it cannot be
  /// used, or if it changes nothing.
  func convertedByProfile() throws(LibraryError) -> Picture? {
    let isDeep = bandFormat == VIPS_FORMAT_USHORT
    guard isDeep || bandFormat == VIPS_FORMAT_UCHAR, let profile,
      let conversion = ProfileConversion(
        profile, colors: bands, hasAlpha: false, isDeep: isDeep, pixels: width * height)
    else { return nil }
    return try converted(bands: bands == 1 ? 1 : 3) { conversion.convert($0, count: $1, into: $2) }
  }

  /// Pixels with high dynamic range, mapped to sRGB. Nil if the samples are not of 8 or 16 bits, or if the primaries
  /// span no colour space.
  func toneMapped(_ colors: HDRColors) throws(LibraryError) -> Picture? {
    guard [VIPS_FORMAT_UCHAR, VIPS_FORMAT_USHORT].contains(bandFormat), bands <= 4, let map = ToneMap(colors) else {
      return nil
    }
    let bands = bands
    if bandFormat == VIPS_FORMAT_USHORT {
      return try converted(bands: bands) { pixels, count, result in
        map.convert(pixels.assumingMemoryBound(to: UInt16.self), count: count, bands: bands, into: result)
      }
    }
    return try converted(bands: bands) { pixels, count, result in
      let bytes = UnsafeBufferPointer(start: pixels.assumingMemoryBound(to: UInt8.self), count: count * bands)
      map.convert(bytes.map { UInt16($0) * 257 }, count: count, bands: bands, into: result)
    }
  }

  /// - Parameter bands: 1 for grey and 3 for R G B, with one more for alpha.
  private func converted(bands: Int, _ convert: @escaping Conversion.Function) throws(LibraryError) -> Picture {
    let space = bands <= 2 ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB
    let context = Unmanaged.passRetained(Conversion(convert)).toOpaque()
    return try map { source, result in
      cvips_convert(
        source, result, Int32(bands), space,
        { context, pixels, count, result in
          Unmanaged<Conversion>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
            .convert(pixels.unsafelyUnwrapped, Int(count), result.unsafelyUnwrapped)
        }, context, { Unmanaged<Conversion>.fromOpaque($0.unsafelyUnwrapped).release() })
    }
  }
}

/// A function that converts pixels of one row, for C.
private final class Conversion {
  typealias Function = (_ pixels: UnsafeRawPointer, _ count: Int, _ result: UnsafeMutablePointer<UInt8>) -> Void

  let convert: Function

  init(_ convert: @escaping Function) { self.convert = convert }
}
