/// Builds BMP and ICO files field by field.
struct Bitmap {
  var width: Int
  var height: Int
  var bits: Int
  /// The length of the header: 12 for OS/2, 40, 52, 56, 108 or 124.
  var header = 40
  var compression = 0
  var isTopDown = false
  /// The palette, B G R each.
  var colors: [[UInt8]] = []
  /// Red, green, blue and alpha; in the header if that has fields for them, otherwise after it.
  var masks: [Int] = []
  /// The rows in file order, without padding.
  var rows: [[UInt8]] = []
  /// Replaces the rows.
  var content: [UInt8]?

  var file: [UInt8] {
    let bitmap = bitmap(height: height)
    let start = 14 + header + afterHeader.count
    return Build.text("BM") + Build.little32(14 + bitmap.count) + Build.little32(0) + Build.little32(start) + bitmap
  }

  /// The picture of an icon with the rows of its mask.
  func inIcon(mask: [[UInt8]]) -> [UInt8] { bitmap(height: 2 * height) + mask.flatMap(Self.padded) }

  /// - Parameter pictures: each with its size and bit count for the directory.
  static func icon(
    _ pictures: [(width: Int, height: Int, bits: Int, content: [UInt8])], isCursor: Bool = false
  ) -> [UInt8] {
    var directory: [UInt8] = [0, 0, isCursor ? 2 : 1, 0] + Build.little16(pictures.count)
    var content: [UInt8] = []
    for picture in pictures {
      directory += [UInt8(picture.width & 255), UInt8(picture.height & 255), 0, 0, 1, 0] + Build.little16(picture.bits)
      directory += Build.little32(picture.content.count) + Build.little32(6 + 16 * pictures.count + content.count)
      content += picture.content
    }
    return directory + content
  }

  private var afterHeader: [UInt8] {
    let masks = header == 40 ? masks.flatMap(Build.little32) : []
    return masks + colors.flatMap { header == 12 ? $0 : $0 + [0] }
  }

  private func bitmap(height: Int) -> [UInt8] {
    var start = Build.little32(header)
    if header == 12 {
      start += Build.little16(width) + Build.little16(height) + Build.little16(1) + Build.little16(bits)
    } else {
      start += Build.little32(width) + Build.little32(isTopDown ? -height : height) + Build.little16(1)
      start += Build.little16(bits) + Build.little32(compression) + Build.little32(0) + Build.little32(0)
      start += Build.little32(0) + Build.little32(colors.count) + Build.little32(0)
      if header > 40 { start += masks.flatMap(Build.little32) }
      start += [UInt8](repeating: 0, count: max(0, header - start.count))
    }
    return start + afterHeader + (content ?? (isTopDown ? rows : rows.reversed()).flatMap(Self.padded))
  }

  private static func padded(_ row: [UInt8]) -> [UInt8] { row + [UInt8](repeating: 0, count: (4 - row.count % 4) % 4) }
}
