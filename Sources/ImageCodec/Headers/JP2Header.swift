/// JPEG 2000 (ISO/IEC 15444-1): the size at the start of the codestream, bare or in boxes. The format is not decoded.
enum JP2Header {
  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    guard try reader.uint8(0) == 0 else { return try codestream(&reader, at: 0) }
    var boxes = BoxSequence(from: 12, to: reader.count)
    while let box = try boxes.next(&reader) {
      if box.name == "jp2h" {
        // Image header box, annex I.5.3.1.
        var inner = BoxSequence(in: box)
        while let part = try inner.next(&reader) {
          guard part.name == "ihdr" else { continue }
          let start = part.content.lowerBound
          return ImageHeader(.jp2, width: try reader.big32(start + 4), height: try reader.big32(start))
        }
      }
      if box.name == "jp2c" { return try codestream(&reader, at: box.content.lowerBound) }
    }
    throw .impossible("the JPEG 2000 has no codestream")
  }

  /// The SIZ marker segment, annex A.5.1: the size is the reference grid minus the image's offset.
  private static func codestream(_ reader: inout HeaderReader, at start: Int) throws(ImageHeaderError) -> ImageHeader {
    guard try reader.big32(start) == 0xFF4F_FF51 else { throw .impossible("the JPEG 2000 has no size") }
    let width = try reader.big32(start + 8) - (try reader.big32(start + 16))
    let height = try reader.big32(start + 12) - (try reader.big32(start + 20))
    return ImageHeader(.jp2, width: width, height: height)
  }
}
