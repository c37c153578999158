/// Takes EXIF, XMP and the colour profile out of a WebP file, in place (WebP Container Specification, "Extended File
/// Format"): libvips 8.14 writes an EXIF block of its own into each, whether it is told to or not, and into those whose
/// source had a profile 7 kB of sRGB, which is what a file without one is taken for.
struct WebPMetadata {
  private static let headerLength = 12
  private static let (metadataFlags, otherFlags): (UInt8, UInt8) = (0x2C, 0x12)

  private let file: UnsafeMutableRawBufferPointer
  private var length = WebPMetadata.headerLength

  /// - Returns: how many of the bytes are left.
  static func remove(from file: UnsafeMutableRawBufferPointer) -> Int {
    var metadata = WebPMetadata(file: file)
    return metadata.remove()
  }

  private init(file: UnsafeMutableRawBufferPointer) { self.file = file }

  private mutating func remove() -> Int {
    var position = Self.headerLength
    while file.count - position >= 8 {
      let name = String(decoding: file[position..<(position + 4)], as: UTF8.self)
      let size = Int(UInt32(littleEndian: file.loadUnaligned(fromByteOffset: position + 4, as: UInt32.self)))
      let end = min(position + 8 + size + size % 2, file.count)
      if keeps(name, at: position) {
        file[length..<(length + end - position)].copyBytes(from: file[position..<end])
        length += end - position
      }
      position = end
    }
    file.storeBytes(of: UInt32(length - 8).littleEndian, toByteOffset: 4, as: UInt32.self)
    return length
  }

  /// The extended header is of no use where nothing is left that it announces.
  private func keeps(_ name: String, at position: Int) -> Bool {
    switch name {
    case "EXIF", "XMP ", "ICCP": return false
    case "VP8X" where position + 8 < file.count:
      file[position + 8] &= ~Self.metadataFlags
      return file[position + 8] & Self.otherFlags != 0
    default: return true
    }
  }
}
