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
