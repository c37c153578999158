/// Windows and OS/2 bitmaps: a file header of 14 bytes, then the bitmap header.
package enum BMPHeader {
  /// The offset of the bitmap header in the file.
  package static let start = 14

  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    let header = try BitmapHeader(&reader, at: start)
    return ImageHeader(.bmp, width: header.width, height: header.height)
  }
}
