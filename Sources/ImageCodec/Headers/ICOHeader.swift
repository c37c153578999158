/// Windows icons and cursors: a directory of pictures, of which the largest is the image, as in browsers.
package enum ICOHeader {
  private static let maxEntries = 1024

  /// A picture in the file: a PNG, or a bitmap without a file header.
  package struct Entry {
    /// The offset of its first byte.
    package let start: Int
    package let isPNG: Bool
    /// The width in the picture itself, or in the directory if the picture does not have it.
    package fileprivate(set) var width: Int
    package fileprivate(set) var height: Int
    fileprivate let bitCount: Int
  }

  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    let entry = try largest(&reader)
    return ImageHeader(.ico, width: entry.width, height: entry.height)
  }

  /// The picture that is shown: the largest; of several, the one with the most colours; of these, the first.
  package static func largest(in source: any ByteSource) throws(ImageHeaderError) -> Entry {
    var reader = HeaderReader(source)
    return try largest(&reader)
  }

  private static func largest(_ reader: inout HeaderReader) throws(ImageHeaderError) -> Entry {
    let (isCursor, count) = (try reader.little16(2) == 2, try reader.little16(4))
    guard count > 0 else { throw .impossible("the icon has no picture") }
    var largest: Entry?
    for index in 0..<min(count, maxEntries) {
      let entry = try entry(&reader, at: 6 + 16 * index, isCursor: isCursor)
      let rank = (entry.width * entry.height, entry.bitCount)
      if let current = largest, rank <= (current.width * current.height, current.bitCount) { continue }
      largest = entry
    }
    guard var largest else { throw .impossible("the icon has no picture") }
    if largest.isPNG {
      if let size = try? PNGHeader.size(&reader, at: largest.start) { (largest.width, largest.height) = size }
    } else if let bitmap = try? BitmapHeader(&reader, at: largest.start, isInIcon: true), bitmap.width > 0,
      bitmap.height > 0
    {
      (largest.width, largest.height) = (bitmap.width, bitmap.height)
    }
    return largest
  }

  private static func entry(
    _ reader: inout HeaderReader, at offset: Int, isCursor: Bool
  ) throws(ImageHeaderError) -> Entry {
    let (width, height) = (try reader.uint8(offset), try reader.uint8(offset + 1))
    // A cursor has its hot spot in this field.
    let bitCount = isCursor ? 0 : try reader.little16(offset + 6)
    let start = try reader.little32(offset + 12)
    // A side of 256 or more is written as 0, and the size within a PNG is more reliable.
    let isLarge = width == 0 || height == 0
    let signature = isLarge ? try reader.big32(start) : try? reader.big32(start)
    let isPNG = signature == 0x8950_4E47
    var size = (width: width == 0 ? 256 : width, height: height == 0 ? 256 : height)
    if isPNG, isLarge { size = try PNGHeader.size(&reader, at: start) }
    return Entry(start: start, isPNG: isPNG, width: size.width, height: size.height, bitCount: bitCount)
  }
}
