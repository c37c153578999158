/// The chunks of a PNG (third edition, section 5.3) up to IEND or the end of a truncated file.
package struct PNGChunks: Sequence, IteratorProtocol {
  package struct Chunk {
    package var name: UInt32
    package var content: Range<Int>
    /// Whether the file has the content and the checksum.
    package var isWhole: Bool

    /// The bytes of which the checksum is.
    var checked: Range<Int> { (content.lowerBound - 4)..<content.upperBound }
  }

  static let imageData = name("IDAT")
  static let palette = name("PLTE")
  static let transparency = name("tRNS")
  static let codePoints = name("cICP")
  static let profile = name("iCCP")
  static let standardColors = name("sRGB")
  static let gamma = name("gAMA")
  static let chromaticities = name("cHRM")
  static let animation = name("acTL")
  static let end = name("IEND")

  private let file: UnsafeRawBufferPointer
  /// After the signature and IHDR.
  private var position = 33

  package init(_ file: UnsafeRawBufferPointer) { self.file = file }

  package mutating func next() -> Chunk? {
    guard file.count - position >= 8 else { return nil }
    let (length, name) = (Int(file.bigEndian(at: position)), file.bigEndian(at: position + 4))
    let content = position + 8
    let after = content + length + 4
    defer { position = name == Self.end ? file.count : Swift.min(after, file.count) }
    return Chunk(
      name: name, content: content..<Swift.min(content + length, file.count), isWhole: after <= file.count)
  }

  static func name(_ text: StaticString) -> UInt32 {
    UnsafeRawPointer(text.utf8Start).loadUnaligned(as: UInt32.self).bigEndian
  }
}

extension UnsafeRawBufferPointer {
  package func bigEndian(at offset: Int) -> UInt32 {
    loadUnaligned(fromByteOffset: offset, as: UInt32.self).bigEndian
  }
}
