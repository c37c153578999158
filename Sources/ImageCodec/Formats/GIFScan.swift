/// The frames of a GIF in their order, by skipping their data (GIF89a sections 18 to 27). The header is read by it, and
/// the decoder finds by it what it decodes.
package struct GIFScan {
  package struct Frame: Sendable {
    /// On the screen, beyond which it may reach.
    package var (x, y, width, height): (Int, Int, Int, Int)
    package var isInterlaced: Bool
    /// The range of its colours, its own or the global ones; empty without any.
    package var colors: Range<Int>
    /// The range of its data, which begin with the size of their codes.
    package var data: Range<Int>
    /// 2 clears its place and 3 gives back what was there before the next one comes; so does 4 in browsers.
    package var disposal = 0
    package var transparentIndex: Int?
    /// Milliseconds, as the file has it.
    package var delay = 0
  }

  /// Frames behind it are not looked for.
  private static let longest = 64 << 20

  private var reader: HeaderReader
  private var position: Int
  private let sharedColors: Range<Int>
  /// The screen, which the first frame makes larger where it reaches beyond: some writers leave it empty or too small.
  private(set) package var width: Int
  private(set) package var height: Int
  /// The number of times that all frames are shown, as far as they have been scanned; 0 is without end.
  private(set) package var plays = 1
  private var isFirst = true
  private var control: (disposal: Int, transparentIndex: Int?, delay: Int) = (0, nil, 0)

  package init(_ source: any ByteSource) throws(ImageHeaderError) { try self.init(HeaderReader(source)) }

  init(_ header: HeaderReader) throws(ImageHeaderError) {
    reader = header
    (width, height) = (try reader.little16(6), try reader.little16(8))
    let length = Self.colorTableLength(try reader.uint8(10))
    sharedColors = 13..<(13 + length)
    position = 13 + length
  }

  /// Nil behind the last. Throws where the file ends within a block.
  package mutating func next() throws(ImageHeaderError) -> Frame? {
    while position < Self.longest, position < reader.count {
      switch try reader.uint8(position) {
      case 0x21: try takeExtension()
      case 0x2C: return try takeFrame()
      default: return nil
      }
    }
    return nil
  }

  private mutating func takeExtension() throws(ImageHeaderError) {
    let label = try reader.uint8(position + 1)
    let length = try reader.uint8(position + 2)
    switch label {
    case 0xF9 where length >= 4:
      let flags = try reader.uint8(position + 3)
      control.disposal = flags >> 2 & 7
      control.delay = try reader.little16(position + 4) * 10
      control.transparentIndex = flags & 1 == 1 ? try reader.uint8(position + 6) : nil
    // Text is a picture of its own, which nobody shows.
    case 0x01: control = (0, nil, 0)
    case 0xFF where length == 11:
      let name = try reader.bytes(position + 3, count: 11)
      let content = position + 14
      if Self.loopingNames.contains(name), try reader.uint8(content) >= 3, try reader.uint8(content + 1) & 7 == 1 {
        let repeats = try reader.little16(content + 2)
        plays = repeats == 0 ? 0 : repeats + 1
      }
    default: break
    }
    position = try endOfBlocks(at: position + 2)
  }

  private mutating func takeFrame() throws(ImageHeaderError) -> Frame {
    let flags = try reader.uint8(position + 9)
    let colors = position + 10
    let data = colors + Self.colorTableLength(flags)
    var frame = Frame(
      x: try reader.little16(position + 1), y: try reader.little16(position + 3),
      width: try reader.little16(position + 5), height: try reader.little16(position + 7),
      isInterlaced: flags & 0x40 != 0, colors: data > colors ? colors..<data : sharedColors, data: data..<data)
    (frame.disposal, frame.transparentIndex, frame.delay) = control
    control = (0, nil, 0)
    if isFirst {
      isFirst = false
      (width, height) = (max(width, frame.x + frame.width), max(height, frame.y + frame.height))
    }
    position = try endOfBlocks(at: data + 1)
    frame.data = data..<position
    return frame
  }

  private mutating func endOfBlocks(at start: Int) throws(ImageHeaderError) -> Int {
    var position = start
    while true {
      let length = try reader.uint8(position)
      position += 1 + length
      if length == 0 { return position }
    }
  }

  private static func colorTableLength(_ flags: Int) -> Int { flags & 0x80 == 0 ? 0 : 3 << ((flags & 7) + 1) }

  private static let loopingNames = [Array("NETSCAPE2.0".utf8), Array("ANIMEXTS1.0".utf8)]
}
