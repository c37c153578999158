internal import CVips
internal import CodecCore

/// The usable parts of a picture's ICC profile, according to its header and tag table (ICC.1:2022 section 7).
struct EmbeddedProfile {
  /// The number of device colours.
  let colors: Int
  let isRGB: Bool
  /// The rendering intent for the conversion.
  ///
  /// libvips silently uses another profile if the profile has no table for the intent. Relative colorimetric is
  /// preferred. A profile of a scanner or of an XYB JPEG may have only `AToB0`, which then applies to all intents
  /// (section 9.2.1 and table 25).
  let intent: VipsIntent

  /// Nil if the profile cannot be used.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= Self.tableStart + 4, Self.name(bytes, at: 36) == "acsp" else { return nil }
    let space = Self.name(bytes, at: 16)
    switch space {
    case "GRAY": colors = 1
    case "RGB ", "Lab ": colors = 3
    case "CMYK": colors = 4
    default: return nil
    }
    isRGB = space == "RGB "
    let tags = Self.tags(bytes)
    let curves: Set = space == "GRAY" ? ["kTRC"] : ["rXYZ", "gXYZ", "bXYZ", "rTRC", "gTRC", "bTRC"]
    if tags.contains("A2B1") || tags.isSuperset(of: curves) {
      intent = VIPS_INTENT_RELATIVE
    } else if tags.contains("A2B0") {
      intent = VIPS_INTENT_PERCEPTUAL
    } else {
      return nil
    }
  }

  private static let tableStart = 128
  /// The maximum number of tags that Little CMS reads.
  private static let maxTags = 100

  /// The tags whose data lies within the profile.
  private static func tags(_ bytes: UnsafeRawBufferPointer) -> Set<String> {
    var tags: Set<String> = []
    for index in 0..<min(Int(bytes.bigEndian(at: tableStart)), maxTags) {
      let entry = tableStart + 4 + 12 * index
      guard entry + 12 <= bytes.count else { break }
      let end = Int(bytes.bigEndian(at: entry + 4)) + Int(bytes.bigEndian(at: entry + 8))
      if end <= bytes.count { tags.insert(name(bytes, at: entry)) }
    }
    return tags
  }

  private static func name(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> String {
    String(decoding: bytes[offset..<(offset + 4)], as: UTF8.self)
  }
}
