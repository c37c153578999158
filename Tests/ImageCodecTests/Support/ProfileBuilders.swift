/// Builds ICC profiles (ICC.1:2022) field by field.
extension Build {
  /// - Parameters:
  ///   - space: the colour space of the device, four letters.
  ///   - connection: the profile connection space, four letters.
  static func profile(
    _ space: String, connection: String = "XYZ ", _ tags: [(name: String, data: [UInt8])]
  ) -> [UInt8] {
    var start = 128 + 4 + 12 * tags.count
    var (table, content) = (big32(tags.count), [UInt8]())
    for tag in tags {
      let padded = tag.data + [UInt8](repeating: 0, count: (4 - tag.data.count % 4) % 4)
      table += text(tag.name) + big32(start) + big32(tag.data.count)
      content += padded
      start += padded.count
    }
    let head =
      big32(start) + big32(0) + big32(0x0240_0000) + text("mntr") + text(space) + text(connection)
      + [UInt8](repeating: 0, count: 12) + text("acsp") + [UInt8](repeating: 0, count: 28) + whitePoint
    return head + [UInt8](repeating: 0, count: 128 - head.count) + table + content
  }

  /// The white point D50.
  private static let whitePoint = big32(0xF6D6) + big32(0x10000) + big32(0xD32D)
  private static let white = text("XYZ ") + big32(0) + whitePoint

  /// A profile of grey that does not change values.
  static func greyProfile() -> [UInt8] {
    profile("GRAY", [("wtpt", white), ("kTRC", text("curv") + big32(0) + big32(0))])
  }

  /// Display P3 with a gamma of 2.2.
  static func wideProfile() -> [UInt8] {
    func xyz(_ values: [Double]) -> [UInt8] { text("XYZ ") + big32(0) + values.flatMap { big32(Int($0 * 65536)) } }
    let curve = text("curv") + big32(0) + big32(1) + big16(0x0233)
    return profile(
      "RGB ",
      [
        ("wtpt", white), ("rXYZ", xyz([0.5151, 0.2412, 0])), ("gXYZ", xyz([0.2920, 0.6922, 0.0419])),
        ("bXYZ", xyz([0.1571, 0.0666, 0.7841])), ("rTRC", curve), ("gTRC", curve), ("bTRC", curve),
      ])
  }

  /// A profile that makes all pixels neutral: the lower the channels, the lighter (L*) the pixel.
  ///
  /// - Parameter tags: the names of the lookup tables. A profile of a scanner may have `A2B0` only.
  static func negativeProfile(_ space: String, channels: Int, tags: [String]) -> [UInt8] {
    let identity = (0..<9).flatMap { big32($0 % 4 == 0 ? 0x10000 : 0) }
    let ramp = big16(0) + big16(0xFFFF)
    var table = text("mft2") + big32(0) + [UInt8(channels), 3, 2, 0] + identity + big16(2) + big16(2)
    for _ in 0..<channels { table += ramp }
    for corner in 0..<(1 << channels) {
      let lightness = 0xFF00 * (channels - corner.nonzeroBitCount) / channels
      table += big16(lightness) + big16(0x8000) + big16(0x8000)
    }
    for _ in 0..<3 { table += ramp }
    return profile(space, connection: "Lab ", [("wtpt", white)] + tags.map { ($0, table) })
  }
}
