internal import CLCMS

/// The usable parts of a picture's ICC profile, according to its header and tag table (ICC.1:2022 section 7).
package struct EmbeddedProfile {
  /// The number of device colours.
  let colors: Int
  let isRGB: Bool
  /// Whether colours are converted by a table of several dimensions.
  let hasTable: Bool
  /// The rendering intent for the conversion.
  ///
  /// Relative colorimetric is preferred. A profile of a scanner or of an XYB JPEG may have only `AToB0`, which then
  /// applies to all intents (section 9.2.1 and table 25).
  let intent: Int32

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
    let tags = Set(Self.tags(bytes).keys)
    let curves: Set = space == "GRAY" ? ["kTRC"] : ["rXYZ", "gXYZ", "bXYZ", "rTRC", "gTRC", "bTRC"]
    hasTable = tags.contains("A2B1") || tags.contains("A2B0")
    if tags.contains("A2B1") || tags.isSuperset(of: curves) {
      intent = INTENT_RELATIVE_COLORIMETRIC
    } else if tags.contains("A2B0") {
      intent = INTENT_PERCEPTUAL
    } else {
      return nil
    }
  }

  /// The high dynamic range of a profile: by its tag `cicp` (section 9.2.17), or in the name that libjxl 0.7 gives to a
  /// profile, as "RGB_D65_202_Rel_PeQ".
  package static func hdr(_ profile: [UInt8]) -> HDRColors? {
    profile.withUnsafeBytes { bytes in
      guard bytes.count >= tableStart + 4 else { return nil }
      if let tag = tag("cicp", of: bytes), tag.count >= 12,
        let colors = HDRColors(primaries: Int(tag[8]), transfer: Int(tag[9]))
      {
        return colors
      }
      // A multiLocalizedUnicodeType with one text in UTF-16 (section 10.15).
      guard let tag = tag("desc", of: bytes), tag.count > 28 else { return nil }
      let name = String(
        decoding: tag[28...].enumerated().filter { !$0.offset.isMultiple(of: 2) }.map(\.element), as: UTF8.self)
      let parts = name.split(separator: "_")
      guard parts.count == 5, parts[..<2] == ["RGB", "D65"] else { return nil }
      let primaries: [Substring: Chromaticities] = ["SRG": .bt709, "202": .bt2020, "DCI": .displayP3]
      let transfers: [Substring: HDRTransfer] = ["PeQ": .pq, "HLG": .hlg]
      guard let primary = primaries[parts[2]], let transfer = transfers[parts[4].prefix(3)] else { return nil }
      return HDRColors(transfer, primary)
    }
  }

  private static let tableStart = 128
  /// The maximum number of tags that Little CMS reads.
  private static let maxTags = 100

  /// The ranges of the tags whose data lies within the profile, by their names.
  private static func tags(_ bytes: UnsafeRawBufferPointer) -> [String: Range<Int>] {
    var tags: [String: Range<Int>] = [:]
    for index in 0..<min(Int(bytes.bigEndian(at: tableStart)), maxTags) {
      let entry = tableStart + 4 + 12 * index
      guard entry + 12 <= bytes.count else { break }
      let start = Int(bytes.bigEndian(at: entry + 4))
      let end = start + Int(bytes.bigEndian(at: entry + 8))
      if end <= bytes.count { tags[name(bytes, at: entry)] = start..<end }
    }
    return tags
  }

  private static func tag(_ name: String, of bytes: UnsafeRawBufferPointer) -> [UInt8]? {
    tags(bytes)[name].map { Array(bytes[$0]) }
  }

  private static func name(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> String {
    String(decoding: bytes[offset..<(offset + 4)], as: UTF8.self)
  }
}
