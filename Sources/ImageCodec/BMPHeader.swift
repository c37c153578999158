/// Windows and OS/2 bitmaps.
enum BMPHeader {
  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    guard try reader.little32(14) != 12 else {
      return ImageHeader(.bmp, width: try reader.little16(18), height: try reader.little16(20))
    }
    let width = Int32(truncatingIfNeeded: try reader.little32(18))
    let height = Int32(truncatingIfNeeded: try reader.little32(22))
    // A negative height says that the top row comes first.
    return ImageHeader(.bmp, width: Int(width), height: Int(height.magnitude))
  }
}
