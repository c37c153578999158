/// The chunks of a PNG (third edition, section 5.3) up to IEND or the end of a truncated file.
struct PNGChunks: Sequence, IteratorProtocol {
  struct Chunk {
    var name: UInt32
    /// The range with length, name and checksum, as far as the file has them.
    var range: Range<Int>
    var content: Range<Int>
    var isWhole: Bool
  }

  static let imageData = name("IDAT")
  static let palette = name("PLTE")
  static let transparency = name("tRNS")
  static let codePoints = name("cICP")
  static let profile = name("iCCP")
  static let standardColors = name("sRGB")
  static let gamma = name("gAMA")
  static let chromaticities = name("cHRM")
  static let compressedText = [name("zTXt"), name("iTXt")]
  /// The offset of the first chunk.
  static let start = 8
  static let end = name("IEND")

  private let file: UnsafeRawBufferPointer
  private var position = start

  init(_ file: UnsafeRawBufferPointer) { self.file = file }

  mutating func next() -> Chunk? {
    guard file.count - position >= 8 else { return nil }
    let (length, name) = (Int(file.bigEndian(at: position)), file.bigEndian(at: position + 4))
    let content = position + 8
    let after = content + length + 4
    defer { position = name == Self.end ? file.count : Swift.min(after, file.count) }
    return Chunk(
      name: name, range: position..<Swift.min(after, file.count),
      content: content..<Swift.min(content + length, file.count), isWhole: after <= file.count)
  }

  private static func name(_ text: StaticString) -> UInt32 {
    UnsafeRawPointer(text.utf8Start).loadUnaligned(as: UInt32.self).bigEndian
  }
}

extension UnsafeRawBufferPointer {
  func bigEndian(at offset: Int) -> UInt32 { loadUnaligned(fromByteOffset: offset, as: UInt32.self).bigEndian }
}
