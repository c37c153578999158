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

  private var isClipped = false

  /// Whether the boxes that have been read are all, and none is truncated.
  var isWhole: Bool { position == end && left > 0 && !isClipped }

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
    if length > stop - position { isClipped = true }
    defer { position = stop }
    return Box(name: name, content: (position + header)..<stop)
  }
}

/// The first picture track of an image sequence (AVIF `avis`, HEIF `hevc`).
struct HEIFTrack {
  let width: Int
  let height: Int
  let frames: Int

  /// Nil if there is no track or it is damaged.
  static func first(_ reader: inout HeaderReader, movie: BoxSequence.Box) -> HEIFTrack? {
    do throws(ImageHeaderError) {
      var boxes = BoxSequence(in: movie)
      while let box = try boxes.next(&reader) {
        if box.name == "trak", let track = try HEIFTrack(&reader, track: box) { return track }
      }
    } catch {
      // A damaged track is treated as absent.
    }
    return nil
  }

  private init?(_ reader: inout HeaderReader, track: BoxSequence.Box) throws(ImageHeaderError) {
    guard let header = try Self.child("tkhd", of: track, &reader),
      let media = try Self.child("mdia", of: track, &reader),
      let handler = try Self.child("hdlr", of: media, &reader),
      try reader.name(handler.content.lowerBound + 8) == "pict",
      let information = try Self.child("minf", of: media, &reader),
      let table = try Self.child("stbl", of: information, &reader),
      let sizes = try Self.child("stsz", of: table, &reader)
    else { return nil }
    // Width and height are the last two fields, in 16.16 fixed point.
    let isLong = try reader.uint8(header.content.lowerBound) == 1
    let end = header.content.lowerBound + (isLong ? 96 : 84)
    width = try reader.big16(end - 8)
    height = try reader.big16(end - 4)
    frames = max(1, try reader.big32(sizes.content.lowerBound + 8))
  }

  private static func child(_ name: FourCC, of parent: BoxSequence.Box, _ reader: inout HeaderReader)
    throws(ImageHeaderError) -> BoxSequence.Box?
  {
    var boxes = BoxSequence(in: parent)
    while let box = try boxes.next(&reader) {
      if box.name == name { return box }
    }
    return nil
  }
}
