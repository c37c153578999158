/// Windows icons: a directory of pictures, of which the largest is the image.
enum ICOHeader {
  private static let mostEntries = 1024

  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    let count = try reader.little16(4)
    guard count > 0 else { throw .impossible("the icon has no picture") }
    var largest = (width: 0, height: 0)
    for index in 0..<min(count, mostEntries) {
      let size = try size(&reader, ofEntryAt: 6 + 16 * index)
      if size.width * size.height > largest.width * largest.height { largest = size }
    }
    return ImageHeader(.ico, width: largest.width, height: largest.height)
  }

  private static func size(_ reader: inout HeaderReader, ofEntryAt entry: Int) throws(ImageHeaderError)
    -> (width: Int, height: Int)
  {
    let (width, height) = (try reader.uint8(entry), try reader.uint8(entry + 1))
    let start = try reader.little32(entry + 12)
    // A picture of 256 or more is written as 0, and is mostly a PNG that knows better.
    if width == 0 || height == 0, try reader.big32(start) == 0x8950_4E47 {
      return try PNGHeader.size(&reader, at: start)
    }
    return (width == 0 ? 256 : width, height == 0 ? 256 : height)
  }
}
