internal import CVips
internal import ImageCodec

/// Looks through the chunks of a PNG before libpng does, which inflates all that a chunk holds, whatever it is for: a small
/// file could keep it busy for seconds. See PNG, third edition, sections 5 and 11.
struct PNGScreening {
  private let file: UnsafeRawBufferPointer

  init(_ file: UnsafeRawBufferPointer) { self.file = file }

  /// The file without compressed text, which nobody reads; nil when there is none.
  func screened() throws(DecodeError) -> EncodedFile? {
    var (imageData, hasText) = (0, false)
    forEachChunk { name, range in
      if name == Self.imageData { imageData += range.count }
      if Self.text.contains(name) { hasText = true }
    }
    // What may still be a lie costs time, which the limit to each decode bounds, but no memory.
    if let pixels = bytesOfPixels, imageData > 2 * pixels + 16384 {
      throw .corrupt("there is more in the PNG than its pixels")
    }
    return hasText ? try withoutText() : nil
  }

  private static let imageData = name("IDAT")
  private static let end = name("IEND")
  private static let text = [name("zTXt"), name("iTXt")]
  private static let firstChunk = 8

  private static func name(_ text: StaticString) -> UInt32 {
    UnsafeRawPointer(text.utf8Start).loadUnaligned(as: UInt32.self).bigEndian
  }

  private func number(at offset: Int) -> UInt32 {
    file.loadUnaligned(fromByteOffset: offset, as: UInt32.self).bigEndian
  }

  /// Up to the last, or to where the file is cut. A range is of the whole chunk.
  private func forEachChunk(_ body: (_ name: UInt32, _ range: Range<Int>) -> Void) {
    var position = Self.firstChunk
    while file.count - position >= 12 {
      let (length, name) = (Int(number(at: position)), number(at: position + 4))
      guard length <= file.count - position - 12 else { return }
      body(name, position..<position + 12 + length)
      if name == Self.end { return }
      position += 12 + length
    }
  }

  /// What its header says that all rows take, uncompressed; nil where no file could be as large.
  private var bytesOfPixels: Int? {
    guard file.count >= 33 else { return nil }
    let samples =
      switch file[25] {
      case 2: 3
      case 4: 2
      case 6: 4
      default: 1
      }
    let row = (Int(number(at: 16)) * samples * Int(file[24]) + 7) / 8 + 1
    let all = row.multipliedReportingOverflow(by: Int(number(at: 20)))
    return all.overflow || all.partialValue > Int.max / 4 ? nil : all.partialValue
  }

  private func withoutText() throws(DecodeError) -> EncodedFile {
    guard let start = file.baseAddress, let copy = g_try_malloc(gsize(file.count)) else {
      throw .tooManyPixels("a decoder may not have as much memory as this takes")
    }
    var count = 0
    func take(_ range: Range<Int>) {
      copy.advanced(by: count).copyMemory(from: start + range.lowerBound, byteCount: range.count)
      count += range.count
    }
    var end = Self.firstChunk
    take(0..<end)
    forEachChunk { name, range in
      if !Self.text.contains(name) { take(range) }
      end = range.upperBound
    }
    // A file that is cut stays one.
    take(end..<file.count)
    return EncodedFile(bytes: copy, count: count)
  }
}
