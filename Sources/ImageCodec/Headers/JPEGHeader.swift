/// JPEG (ITU-T T.81 annex B): the segments up to the start of the scan, because EXIF may follow the frame header.
enum JPEGHeader {
  private static let maxSegments = 10_000
  private static let maxGarbage = 65_536

  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    var size: (width: Int, height: Int)?
    var orientation: Int?
    do throws(ImageHeaderError) {
      try readSegments(&reader, &size, &orientation)
    } catch {
      if size == nil { throw error }
    }
    guard let size else { throw .impossible("the JPEG has no frame header") }
    return ImageHeader(.jpeg, width: size.width, height: size.height, orientation: orientation ?? 1)
  }

  private static func readSegments(
    _ reader: inout HeaderReader, _ size: inout (width: Int, height: Int)?, _ orientation: inout Int?
  ) throws(ImageHeaderError) {
    try forEachSegment(&reader) { (reader, marker, content) throws(ImageHeaderError) in
      let start = content.lowerBound
      switch marker {
      case 0xC0...0xCF where marker != 0xC4 && marker != 0xC8 && marker != 0xCC:
        if size == nil { size = (width: try reader.big16(start + 3), height: try reader.big16(start + 1)) }
      case 0xE1 where orientation == nil && content.count >= 6:
        if try reader.bytes(start, count: 6) == EXIF.mark {
          orientation = EXIF.orientation(&reader, at: start + 6)
        }
      default: break
      }
    }
  }

  /// Passes the marker and the content of each segment before the first scan.
  static func forEachSegment(
    _ reader: inout HeaderReader, _ body: (inout HeaderReader, Int, Range<Int>) throws(ImageHeaderError) -> Void
  ) throws(ImageHeaderError) {
    var position = 2
    for _ in 0..<maxSegments {
      let marker = try nextMarker(&reader, &position)
      switch marker {
      case 0x01, 0xD0...0xD8: continue  // no segment follows
      case 0xD9, 0xDA: return
      default: break
      }
      let length = try reader.big16(position)
      guard length >= 2 else { throw .impossible("a JPEG segment is shorter than its length field") }
      try body(&reader, marker, (position + 2)..<(position + length))
      position += length
    }
    throw .impossible("the JPEG has too many segments before its frame header")
  }

  /// Moves `position` past the next marker. Fill bytes and bytes between segments are skipped, as decoders do.
  private static func nextMarker(_ reader: inout HeaderReader, _ position: inout Int) throws(ImageHeaderError) -> Int {
    for _ in 0..<maxGarbage {
      let isMark = try reader.uint8(position) == 0xFF
      position += 1
      guard isMark else { continue }
      let marker = try reader.uint8(position)
      if marker != 0, marker != 0xFF {
        position += 1
        return marker
      }
    }
    throw .impossible("the JPEG has no marker where a segment must begin")
  }
}
