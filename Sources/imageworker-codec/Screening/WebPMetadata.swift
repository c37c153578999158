/// Takes EXIF, XMP and the colour profile out of a WebP file, in place (WebP Container Specification, "Extended File
/// Format"): libvips 8.14 writes an EXIF block of its own into each, whether it is told to or not, and into those whose
/// source had a profile 7 kB of sRGB, which is what a file without one is taken for.
struct WebPMetadata {
  private static let (metadataFlags, otherFlags): (UInt8, UInt8) = (0x2C, 0x12)

  private let file: UnsafeMutableRawBufferPointer

  /// - Returns: how many of the bytes are left.
  static func remove(from file: UnsafeMutableRawBufferPointer) -> Int {
    WebPMetadata(file: file).remove()
  }

  private func remove() -> Int {
    var length = WebPChunks.headerLength
    for chunk in WebPChunks(of: file) where keeps(chunk) {
      file[length..<(length + chunk.whole.count)].copyBytes(from: file[chunk.whole])
      length += chunk.whole.count
    }
    file.storeBytes(of: UInt32(length - 8).littleEndian, toByteOffset: 4, as: UInt32.self)
    return length
  }

  /// The extended header is of no use where nothing is left that it announces.
  private func keeps(_ chunk: WebPChunks.Chunk) -> Bool {
    switch chunk.name {
    case "EXIF", "XMP ", "ICCP": return false
    case "VP8X" where !chunk.content.isEmpty:
      file[chunk.content.lowerBound] &= ~Self.metadataFlags
      return file[chunk.content.lowerBound] & Self.otherFlags != 0
    default: return true
    }
  }
}
