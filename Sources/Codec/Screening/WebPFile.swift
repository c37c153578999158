internal import CodecCore

/// Removes EXIF, XMP and the colour profile from a WebP file, in place (WebP Container Specification, "Extended File
/// Format"). libvips 8.14 always adds an EXIF block, and adds a 7 kB sRGB profile if the source had a profile; a file
/// without a profile is sRGB anyway.
struct WebPMetadata {
  private static let (metadataFlags, otherFlags): (UInt8, UInt8) = (0x2C, 0x12)

  private let file: UnsafeMutableRawBufferPointer

  /// - Returns: the number of bytes that are left.
  static func remove(from file: UnsafeMutableRawBufferPointer) -> Int {
    WebPMetadata(file: file).remove()
  }

  private func remove() -> Int {
    var length = WebPChunks.headerLength
    for chunk in WebPChunks(of: UnsafeRawBufferPointer(file)) where isKept(chunk) {
      file[length..<(length + chunk.whole.count)].copyBytes(from: file[chunk.whole])
      length += chunk.whole.count
    }
    file.storeBytes(of: UInt32(length - 8).littleEndian, toByteOffset: 4, as: UInt32.self)
    return length
  }

  /// The extended header is removed if the features that it announces are all removed.
  private func isKept(_ chunk: WebPChunks.Chunk) -> Bool {
    switch chunk.name {
    case "EXIF", "XMP ", "ICCP": return false
    case "VP8X" where !chunk.content.isEmpty:
      file[chunk.content.lowerBound] &= ~Self.metadataFlags
      return file[chunk.content.lowerBound] & Self.otherFlags != 0
    default: return true
    }
  }
}

/// Sets the alpha flag of an animated WebP that has transparent parts, in place (RFC 9649 section 2.7.1).
///
/// libwebp 1.2 sets the flag only if a frame itself has alpha. It ignores canvas areas that no frame covers, and
/// decoders that use the flag paint those black. libwebp also writes a white background, a hint that some decoders
/// follow; a transparent background gives all decoders the same result.
struct WebPTransparency {
  private static let (animationFlag, alphaFlag): (UInt8, UInt8) = (0x02, 0x10)

  private let file: UnsafeMutableRawBufferPointer
  /// The area of the canvas that is empty when the next frame starts.
  private var hole: Area?
  private var showsThrough = false

  static func announce(in file: UnsafeMutableRawBufferPointer) {
    var transparency = WebPTransparency(file: file)
    transparency.announce()
  }

  private init(file: UnsafeMutableRawBufferPointer) { self.file = file }

  private mutating func announce() {
    var background: Range<Int>?
    for chunk in WebPChunks(of: UnsafeRawBufferPointer(file)) {
      let start = chunk.content.lowerBound
      switch chunk.name {
      case "VP8X" where chunk.content.count >= 10:
        guard file[start] & Self.animationFlag != 0 else { return }
        showsThrough = file[start] & Self.alphaFlag != 0
        hole = Area(x: 0, y: 0, width: little24(start + 4) + 1, height: little24(start + 7) + 1)
      case "ANIM" where chunk.content.count >= 6: background = start..<(start + 4)
      case "ANMF" where chunk.content.count >= 16: lay(frameAt: start)
      default: break
      }
    }
    guard showsThrough, let background else { return }
    file[WebPChunks.headerLength + 8] |= Self.alphaFlag
    for place in background { file[place] = 0 }
  }

  private mutating func lay(frameAt start: Int) {
    let frame = Area(
      x: 2 * little24(start), y: 2 * little24(start + 3), width: little24(start + 6) + 1,
      height: little24(start + 9) + 1)
    if let hole, !frame.covers(hole) { showsThrough = true }
    let isDisposed = file[start + 15] & 1 != 0
    hole = isDisposed ? frame : nil
  }

  private func little24(_ position: Int) -> Int {
    Int(file[position]) | Int(file[position + 1]) << 8 | Int(file[position + 2]) << 16
  }

  private struct Area {
    let (x, y, width, height): (Int, Int, Int, Int)

    init(x: Int, y: Int, width: Int, height: Int) { (self.x, self.y, self.width, self.height) = (x, y, width, height) }

    func covers(_ other: Area) -> Bool {
      x <= other.x && y <= other.y && other.x + other.width <= x + width && other.y + other.height <= y + height
    }
  }
}
