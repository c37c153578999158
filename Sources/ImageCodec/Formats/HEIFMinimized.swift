/// The minimized image box (ISO/IEC 23008-12:2025, annex O): size and orientation in its first bits.
package enum HEIFMinimized {
  /// Nil for unknown versions.
  static func header(
    _ reader: inout HeaderReader, format: ImageFormat, _ box: BoxSequence.Box
  ) throws(ImageHeaderError) -> ImageHeader? {
    let start = box.content.lowerBound
    // Two bits of version, nine flags, two bits of chroma subsampling, three bits of orientation.
    let flags = try reader.big16(start)
    guard flags >> 14 == 0 else { return nil }
    let sides = try reader.big32(start + 2)
    let bits = sides >> 31 == 1 ? 7 : 15
    let mask = 1 << bits - 1
    return ImageHeader(
      format, width: (sides >> (31 - bits) & mask) + 1, height: (sides >> (31 - 2 * bits) & mask) + 1,
      orientation: flags & 7 + 1)
  }

  /// Whether the image is described by a minimized image box, which the libraries here do not read.
  package static func isIn(_ source: any ByteSource) -> Bool {
    var reader = HeaderReader(source)
    var boxes = BoxSequence(from: 0, to: reader.count)
    while let box = try? boxes.next(&reader) {
      if box.name == "mini" { return true }
      if box.name == "meta" || box.name == "moov" { return false }
    }
    return false
  }
}
