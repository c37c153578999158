/// Iterates over the frames of an animated PNG in order and skips their data (PNG, third edition, sections 4.9 and
/// 11.3.6). The header parser and the decoder both use it.
package struct APNGScan {
  package struct Frame: Sendable {
    package var (x, y, width, height): (Int, Int, Int, Int)
    /// The delay in milliseconds, as in the file.
    package var delay: Int
    /// 1 clears the frame's area before the next frame; 2 restores the previous content.
    package var disposal: Int
    /// Whether the frame is blended over the previous content, which transparent pixels then show.
    package var isBlended: Bool
    /// Whether the frame's data is that of the PNG's still image.
    package var isStill = false
    /// The chunks that hold the frame's data.
    package var chunks: [Chunk] = []
  }

  package struct Chunk: Sendable {
    /// The range from the chunk's name up to its checksum, without the checksum.
    package var checked: Range<Int>
    /// The bytes of the frame's stream in this chunk.
    package var content: Range<Int>

    package init(checked: Range<Int>, content: Range<Int>) { (self.checked, self.content) = (checked, content) }
  }

  /// The number of chunks after which the scan ends.
  private static let maxChunks = 1 << 17

  private var reader: HeaderReader
  private var position = 33
  private var chunkCount = 0
  private var sequence = 0
  /// The number of announced frames that are not yet scanned; the file may have fewer.
  private var left: Int
  /// The number of times that the animation plays; 0 means forever.
  package let plays: Int
  /// Whether the still image is the first frame.
  package let beginsWithStill: Bool

  /// Nil if the PNG is not animated.
  package init?(_ source: any ByteSource) throws(ImageHeaderError) { try self.init(HeaderReader(source)) }

  init?(_ header: HeaderReader) throws(ImageHeaderError) {
    reader = header
    var (animation, hasControl, place): ((frames: Int, plays: Int)?, Bool, Int) = (nil, false, 33)
    for _ in 0..<Self.maxChunks {
      let length = try reader.big32(place)
      let name = try reader.name(place + 4)
      if name == "IDAT" || name == "IEND" { break }
      switch name {
      case "acTL" where length == 8 && animation == nil:
        animation = (try reader.big32(place + 8), try reader.big32(place + 12))
      case "fcTL": hasControl = true
      default: break
      }
      place += length + 12
    }
    guard let animation, animation.frames > 0 else { return nil }
    (left, plays, beginsWithStill) = (animation.frames, animation.plays, hasControl)
  }

  /// Returns the next frame, or nil after the last.
  package mutating func next() throws(ImageHeaderError) -> Frame? {
    guard left > 0 else { return nil }
    var frame: Frame?
    while chunkCount < Self.maxChunks {
      let length = try reader.big32(position)
      let content = (position + 8)..<(position + 8 + length)
      guard content.upperBound + 4 <= reader.count else { throw .cut }
      switch try reader.name(position + 4) {
      case "fcTL":
        if let frame { return try complete(frame) }
        frame = try control(at: content)
      case "IDAT":
        frame?.isStill = true
        frame?.chunks.append(Chunk(checked: (position + 4)..<content.upperBound, content: content))
      case "fdAT":
        try checkSequence(at: content)
        guard frame?.isStill == false else {
          throw .impossible("the APNG has frame data (fdAT) without a frame control (fcTL)")
        }
        frame?.chunks.append(Chunk(checked: (position + 4)..<content.upperBound, content: content.dropFirst(4)))
      case "IEND": return try frame.map { frame throws(ImageHeaderError) in try complete(frame) }
      default: break
      }
      position = content.upperBound + 4
      chunkCount += 1
    }
    return nil
  }

  private mutating func complete(_ frame: Frame) throws(ImageHeaderError) -> Frame {
    guard !frame.chunks.isEmpty else { throw .impossible("a frame of the APNG has no data") }
    left -= 1
    return frame
  }

  private mutating func control(at content: Range<Int>) throws(ImageHeaderError) -> Frame {
    guard content.count == 26 else {
      throw .impossible("a frame control of an APNG must have 26 bytes, not \(content.count)")
    }
    try checkSequence(at: content)
    let start = content.lowerBound
    let (delay, unit) = (try reader.big16(start + 20), try reader.big16(start + 22))
    return Frame(
      x: try reader.big32(start + 12), y: try reader.big32(start + 16), width: try reader.big32(start + 4),
      height: try reader.big32(start + 8), delay: delay * 1000 / (unit == 0 ? 100 : unit),
      disposal: try reader.uint8(start + 24), isBlended: try reader.uint8(start + 25) == 1)
  }

  private mutating func checkSequence(at content: Range<Int>) throws(ImageHeaderError) {
    guard content.count >= 4, try reader.big32(content.lowerBound) == sequence else {
      throw .impossible("the chunks of the APNG are out of order")
    }
    sequence += 1
  }
}
