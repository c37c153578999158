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
    for chunk in WebPChunks(of: file) where isKept(chunk) {
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
