internal import CLCMS

/// A conversion of pixels from the colours of an ICC profile to 8-bit grey or sRGB, by Little CMS.
package final class ProfileConversion {
  private let transform: cmsHTRANSFORM
  /// The colours of a pixel, without alpha.
  private let colors: Int
  private let hasAlpha: Bool
  private let isDeep: Bool
  /// Whether grey is converted as equal R, G and B.
  private let repeatsGrey: Bool
  /// The converted values of grey bytes.
  private var greys: [UInt8] = []

  /// Nil if the profile cannot be used for this number of colours, or if it is that of sRGB, so that bytes need no
  /// conversion. An RGB profile also fits grey, as equal colours; a grey one does not fit the first of three colours
  /// (ICC.1:2022 section 7.2.6).
  ///
  /// - Parameters:
  ///   - isDeep: whether samples are 16-bit numbers of the machine instead of bytes. They must have no alpha.
  ///   - pixels: how many will be converted.
  package init?(_ profile: [UInt8], colors: Int, hasAlpha: Bool, isDeep: Bool = false, pixels: Int) {
    guard let description = profile.withUnsafeBytes({ EmbeddedProfile($0) }),
      description.colors == colors || colors == 1 && description.isRGB
    else { return nil }
    (self.colors, self.hasAlpha, self.isDeep) = (colors, hasAlpha, isDeep)
    repeatsGrey = description.colors != colors
    let copiesAlpha: Int32 = hasAlpha && colors > 1 ? 1 : 0
    let isPrepared = !description.hasTable || colors > 1 && pixels > 1 << 16
    guard
      let transform = clcms_to_srgb(
        profile, profile.count, isDeep ? 1 : 0, copiesAlpha, description.intent, isPrepared ? 1 : 0)
    else { return nil }
    self.transform = transform
    guard !isDeep else { return }
    if colors == 1 {
      let bytes = [UInt8](0...255)
      greys = grey(bytes)
      if Self.areEqual(bytes, greys) { return nil }
    } else if description.isRGB, isIdentity {
      return nil
    }
  }

  deinit { cmsDeleteTransform(transform) }

  /// Converts pixels. Alpha is kept.
  package func convert(_ pixels: UnsafeRawPointer, count: Int, into result: UnsafeMutablePointer<UInt8>) {
    guard colors == 1 else { return cmsDoTransform(transform, pixels, result, UInt32(count)) }
    if isDeep {
      let samples = UnsafeBufferPointer(start: pixels.assumingMemoryBound(to: UInt16.self), count: count)
      for (index, value) in grey(Array(samples)).enumerated() { result[index] = value }
      return
    }
    let bytes = pixels.assumingMemoryBound(to: UInt8.self)
    let bands = hasAlpha ? 2 : 1
    for pixel in 0..<count {
      result[pixel * bands] = greys[Int(bytes[pixel * bands])]
      if hasAlpha { result[pixel * bands + 1] = bytes[pixel * bands + 1] }
    }
  }

  /// Grey samples, converted.
  private func grey<Sample: BitwiseCopyable>(_ samples: [Sample]) -> [UInt8] {
    let stored = repeatsGrey ? samples.flatMap { [$0, $0, $0] } : samples
    var colors = [UInt8](repeating: 0, count: 3 * samples.count)
    cmsDoTransform(transform, stored, &colors, UInt32(samples.count))
    return samples.indices.map { colors[3 * $0] }
  }

  /// Whether the conversion changes no colour.
  private var isIdentity: Bool {
    let steps = stride(from: 0, to: 256, by: 51)
    let greys = (0..<256).map { UInt32($0 * 0x01_0101) }
    let colors = steps.flatMap { red in steps.flatMap { green in steps.map { UInt32(red << 16 | green << 8 | $0) } } }
    let stored = (greys + colors).flatMap { color in
      let pixel = [color >> 16, color >> 8, color].map { UInt8(truncatingIfNeeded: $0) }
      return hasAlpha ? pixel + [255] : pixel
    }
    var converted = stored
    cmsDoTransform(transform, stored, &converted, UInt32(greys.count + colors.count))
    return Self.areEqual(stored, converted)
  }

  /// Whether no value differs by more than the rounding of a conversion.
  private static func areEqual(_ stored: [UInt8], _ converted: [UInt8]) -> Bool {
    zip(stored, converted).allSatisfy { abs(Int($0) - Int($1)) <= 1 }
  }
}
