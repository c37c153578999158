/// WebP (RFC 9649): lossy, lossless, or extended with frames and EXIF.
enum WebPHeader {
  private static let maxChunks = 100_000

  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    switch try reader.name(12) {
    case "VP8 ":
      guard try reader.uint8(20) & 1 == 0, try reader.bytes(23, count: 3) == [0x9D, 0x01, 0x2A] else {
        throw .impossible("the WebP does not begin with a key frame")
      }
      return ImageHeader(.webp, width: try reader.little16(26) & 0x3FFF, height: try reader.little16(28) & 0x3FFF)
    case "VP8L":
      guard try reader.uint8(20) == 0x2F else { throw .impossible("the lossless WebP has no signature") }
      let bits = try reader.little32(21)
      return ImageHeader(.webp, width: (bits & 0x3FFF) + 1, height: (bits >> 14 & 0x3FFF) + 1)
    case "VP8X":
      let (width, height) = (try reader.little24(24) + 1, try reader.little24(27) + 1)
      let (frames, orientation) = extras(&reader, flags: try reader.uint8(20))
      return ImageHeader(.webp, width: width, height: height, frames: frames, orientation: orientation)
    default: throw .impossible("the WebP does not begin with an image")
    }
  }

  private static func extras(_ reader: inout HeaderReader, flags: Int) -> (frames: Int, orientation: Int) {
    let (isAnimated, hasEXIF) = (flags & 0x02 != 0, flags & 0x08 != 0)
    var frames = 0
    var orientation: Int?
    var position = 12
    do throws(ImageHeaderError) {
      for _ in 0..<maxChunks where isAnimated || hasEXIF {
        let name = try reader.name(position)
        let length = try reader.little32(position + 4)
        if name == "ANMF", isAnimated { frames += 1 }
        if name == "EXIF", hasEXIF, orientation == nil { orientation = EXIF.orientation(&reader, at: position + 8) }
        position += 8 + length + length % 2
      }
    } catch {
      // The last chunk is behind us.
    }
    return (max(frames, 1), orientation ?? 1)
  }
}
