/// Consecutive boxes of the ISO base media file format (ISO/IEC 14496-12 section 4.2).
struct BoxSequence {
  struct Box {
    let name: FourCC
    /// The range of offsets in the file; it may extend beyond the end of a truncated file.
    let content: Range<Int>
  }

  private var position: Int
  private let end: Int
  private var left = 4096

  init(from start: Int, to end: Int) { (position, self.end) = (start, end) }

  init(in box: Box, skipping header: Int = 0) {
    self.init(from: box.content.lowerBound + header, to: box.content.upperBound)
  }

  mutating func next(_ reader: inout HeaderReader) throws(ImageHeaderError) -> Box? {
    guard end - position >= 8, left > 0 else { return nil }
    left -= 1
    let name = try reader.name(position + 4)
    var header = 8
    var length = try reader.big32(position)
    if length == 1 {
      header = 16
      length = try reader.offset(reader.uint64(position + 8, bytes: 8, isLittleEndian: false))
    } else if length == 0 {
      length = end - position
    }
    guard length >= header else { throw .impossible("a box is shorter than its own header") }
    let stop = min(position + length, end)
    guard stop >= position + header else { throw .cut }
    defer { position = stop }
    return Box(name: name, content: (position + header)..<stop)
  }
}
