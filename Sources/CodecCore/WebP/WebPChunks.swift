/// The chunks of a WebP file (RFC 9649 section 2.3) in order, parsed lazily.
package struct WebPChunks: Sequence, IteratorProtocol {
  package static let headerLength = 12

  package struct Chunk {
    package let name: String
    /// The range of the whole chunk: its name, length, content and padding.
    package let whole: Range<Int>

    package var content: Range<Int> { (whole.lowerBound + 8)..<whole.upperBound }
  }

  private let file: UnsafeRawBufferPointer
  private var position = Self.headerLength

  package init(of file: UnsafeRawBufferPointer) { self.file = file }

  package mutating func next() -> Chunk? {
    guard file.count - position >= 8 else { return nil }
    let name = String(decoding: file[position..<(position + 4)], as: UTF8.self)
    let size = Int(UInt32(littleEndian: file.loadUnaligned(fromByteOffset: position + 4, as: UInt32.self)))
    let end = Swift.min(position + 8 + size + size % 2, file.count)
    defer { position = end }
    return Chunk(name: name, whole: position..<end)
  }
}
