internal import CVips

/// The ICC profile of a picture, as far as its header and tag table say how it can be applied (ICC.1:2022 section 7).
struct EmbeddedProfile {
  /// Which bands it is for: the number of device colours.
  let colors: Int
  let isRGB: Bool
  /// The rendering intent to convert by.
  ///
  /// libvips takes another profile, without an error, for one that has no table of the intent. Relative colorimetric is
  /// preferred; a profile of a scanner or of an XYB JPEG may have only `AToB0`, which then serves all intents (section
  /// 9.2.1 and table 25).
  let intent: VipsIntent

  /// nil if the profile cannot be used.
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
  /// Little CMS reads no more.
  private static let mostTags = 100

  /// The tags whose data lie within the profile.
  private static func tags(_ bytes: UnsafeRawBufferPointer) -> Set<String> {
    var tags: Set<String> = []
    for index in 0..<min(Int(bytes.bigEndian(at: tableStart)), mostTags) {
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
