/// Iterates over the frames of a GIF in order and skips their data (GIF89a sections 18 to 27). The header parser and
/// the decoder both use it.
package struct GIFScan {
  package struct Frame: Sendable {
    /// The area on the screen; it may extend beyond the screen.
    package var (x, y, width, height): (Int, Int, Int, Int)
    package var isInterlaced: Bool
    /// The range of the frame's colours, local or global; empty if there are none.
    package var colors: Range<Int>
    /// The range of the frame's data, whose first byte is the LZW minimum code size.
    package var data: Range<Int>
    /// 2 clears the frame's area before the next frame; 3 restores the previous content, and so does 4 in browsers.
    package var disposal = 0
    package var transparentIndex: Int?
    /// The delay in milliseconds, as in the file.
    package var delay = 0
  }

  /// The offset after which no frame is searched for.
  private static let maxOffset = 64 << 20

  private var reader: HeaderReader
  private var position: Int
  private let sharedColors: Range<Int>
  /// The width of the screen. The first frame enlarges it if it extends beyond: some writers leave the screen empty or
  /// too small.
  private(set) package var width: Int
  private(set) package var height: Int
  /// The number of times that the animation plays, as far as the file has been scanned; 0 means forever.
  private(set) package var plays = 1
  /// The places of the sub-blocks of extensions with metadata, by the names of their applications.
  private(set) var applications: [String: [Range<Int>]] = [:]
  /// Whether the trailer has been reached, and no extension with metadata was left out.
  private(set) var isAtEnd = false
  private static let maxApplications = 100
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

  /// Returns the next frame, or nil after the last. Throws if the file ends within a block.
  package mutating func next() throws(ImageHeaderError) -> Frame? {
    while position < Self.maxOffset, position < reader.count {
      switch try reader.uint8(position) {
      case 0x21: try readExtension()
      case 0x2C: return try readFrame()
      case let byte:
        isAtEnd = byte == 0x3B && applications.values.allSatisfy { $0.count < Self.maxApplications }
        return nil
      }
    }
    return nil
  }

  private mutating func readExtension() throws(ImageHeaderError) {
    let label = try reader.uint8(position + 1)
    let length = try reader.uint8(position + 2)
    switch label {
    case 0xF9 where length >= 4:
      let flags = try reader.uint8(position + 3)
      control.disposal = flags >> 2 & 7
      control.delay = try reader.little16(position + 4) * 10
      control.transparentIndex = flags & 1 == 1 ? try reader.uint8(position + 6) : nil
    // A plain text extension is a picture of its own that no viewer shows.
    case 0x01: control = (0, nil, 0)
    case 0xFF where length == 11:
      let name = try reader.bytes(position + 3, count: 11)
      let content = position + 14
      if Self.loopingNames.contains(name), try reader.uint8(content) >= 3, try reader.uint8(content + 1) & 7 == 1 {
        let repeats = try reader.little16(content + 2)
        plays = repeats == 0 ? 0 : repeats + 1
      }
      if Self.describingNames.contains(name) {
        let end = try endOfBlocks(at: content)
        let key = String(decoding: name, as: UTF8.self)
        if applications[key, default: []].count < Self.maxApplications {
          applications[key, default: []].append(content..<end)
        }
      }
    default: break
    }
    position = try endOfBlocks(at: position + 2)
  }

  private mutating func readFrame() throws(ImageHeaderError) -> Frame {
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

  static func colorTableLength(_ flags: Int) -> Int { flags & 0x80 == 0 ? 0 : 3 << ((flags & 7) + 1) }

  private static let describingNames = [Array("XMP DataXMP".utf8), Array("C2PA_GIF\u{1}\0\0".utf8)]
  private static let loopingNames = [Array("NETSCAPE2.0".utf8), Array("ANIMEXTS1.0".utf8)]
}

/// GIF (GIF89a): the logical screen, and the frames, which are counted by skipping their data.
package enum GIFHeader {
  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    var scan = try GIFScan(reader)
    var frames = 0
    do throws(ImageHeaderError) {
      while try scan.next() != nil { frames += 1 }
    } catch {
      // The first frame may determine the size; a frame that is truncated still has its own size.
      if frames == 0, scan.width == 0 || scan.height == 0 { throw error }
      frames += 1
    }
    return ImageHeader(.gif, width: scan.width, height: scan.height, frames: max(frames, 1))
  }
}
