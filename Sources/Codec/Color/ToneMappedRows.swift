internal import CVips
internal import CodecCore

/// The rows of a picture with high dynamic range, mapped to sRGB when they are read.
final class ToneMappedRows {
  private let map: ToneMap
  private let picture: Picture
  private let region: UnsafeMutablePointer<VipsRegion>
  private var samples: [UInt16] = []
  private var next = 0

  /// Nil if the samples are not of 8 or 16 bits, or if the primaries span no colour space.
  init?(_ picture: Picture, _ colors: HDRColors) throws(LibraryError) {
    guard [VIPS_FORMAT_UCHAR, VIPS_FORMAT_USHORT].contains(picture.bandFormat), picture.bands <= 4,
      let map = ToneMap(colors)
    else { return nil }
    guard let region = vips_region_new(picture.pointer) else { throw LibraryError() }
    (self.picture, self.map, self.region) = (picture, map, region)
    if picture.bandFormat == VIPS_FORMAT_UCHAR {
      samples = [UInt16](repeating: 0, count: picture.width * picture.bands)
    }
  }

  deinit { cvips_unref(region) }

  /// The mapped pixels, which are computed from the top. The rows must outlive them.
  func mapped() throws(LibraryError) -> Picture {
    next = 0
    return try Picture.reading(
      width: picture.width, height: picture.height, bands: picture.bands, format: VIPS_FORMAT_UCHAR,
      space: picture.bands <= 2 ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB, profile: nil,
      { context, row in
        Unmanaged<ToneMappedRows>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
          .read(into: row.unsafelyUnwrapped)
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  /// Returns 0 on success.
  private func read(into row: UnsafeMutablePointer<UInt8>) -> Int32 {
    var area = VipsRect(left: 0, top: Int32(next), width: Int32(picture.width), height: 1)
    guard vips_region_prepare(region, &area) == 0, let stored = cvips_region_row(region, Int32(next)) else { return -1 }
    next += 1
    if samples.isEmpty {
      map.convert(
        stored.assumingMemoryBound(to: UInt16.self), count: picture.width, bands: picture.bands, into: row)
    } else {
      let bytes = stored.assumingMemoryBound(to: UInt8.self)
      for index in samples.indices { samples[index] = UInt16(bytes[index]) * 257 }
      map.convert(samples, count: picture.width, bands: picture.bands, into: row)
    }
    return 0
  }
}
