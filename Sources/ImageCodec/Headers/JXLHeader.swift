/// JPEG XL (ISO/IEC 18181): the size and the orientation at the start of the codestream, bare or in its container.
package enum JXLHeader {
  /// An upper bound of the bytes that size and metadata take.
  private static let maxLength = 32

  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    var bits = try bits(&reader)
    let (width, height) = try size(&bits)
    return ImageHeader(.jxl, width: width, height: height, orientation: metadata(&bits).orientation)
  }

  /// Whether the image has frames. False for an image with a preview, because its metadata are not parsed so far.
  package static func isAnimated(_ source: any ByteSource) -> Bool {
    var reader = HeaderReader(source)
    do throws(ImageHeaderError) {
      var bits = try bits(&reader)
      _ = try size(&bits)
      return metadata(&bits).isAnimated
    } catch {
      return false
    }
  }

  private static func bits(_ reader: inout HeaderReader) throws(ImageHeaderError) -> BitReader {
    let start = try codestream(&reader)
    guard try reader.big16(start) == 0xFF0A else { throw .impossible("the JPEG XL codestream has no signature") }
    return BitReader(try reader.bytes(start + 2, count: min(maxLength, reader.count - start - 2)))
  }

  private static func codestream(_ reader: inout HeaderReader) throws(ImageHeaderError) -> Int {
    guard try reader.uint8(0) == 0 else { return 0 }
    var boxes = BoxSequence(from: 12, to: reader.count)
    while let box = try boxes.next(&reader) {
      if box.name == "jxlc" { return box.content.lowerBound }
      // A part of the codestream starts with its index; the first is 0.
      if box.name == "jxlp", try reader.big32(box.content.lowerBound) & 0x7FFF_FFFF == 0 {
        return box.content.lowerBound + 4
      }
    }
    throw .impossible("the JPEG XL container has no codestream")
  }

  /// SizeHeader (part 1, annex D.2).
  private static func size(_ bits: inout BitReader) throws(ImageHeaderError) -> (width: Int, height: Int) {
    let isSmall = try bits.take(1) == 1
    let height = try side(&bits, isSmall: isSmall)
    let width =
      switch try bits.take(3) {
      case 0: try side(&bits, isSmall: isSmall)
      case 1: height
      case 2: height * 12 / 10
      case 3: height * 4 / 3
      case 4: height * 3 / 2
      case 5: height * 16 / 9
      case 6: height * 5 / 4
      default: height * 2
      }
    return (width, height)
  }

  private static func side(_ bits: inout BitReader, isSmall: Bool) throws(ImageHeaderError) -> Int {
    if isSmall { return (try bits.take(5) + 1) * 8 }
    return switch try bits.take(2) {
    case 0: try bits.take(9) + 1
    case 1: try bits.take(13) + 1
    case 2: try bits.take(18) + 1
    default: try bits.take(30) + 1
    }
  }

  /// The first fields of ImageMetadata, if it has any (annex D.3).
  private static func metadata(_ bits: inout BitReader) -> (orientation: Int, isAnimated: Bool) {
    var orientation = 1
    do throws(ImageHeaderError) {
      let isAllDefault = try bits.take(1) == 1
      guard !isAllDefault, try bits.take(1) == 1 else { return (1, false) }
      orientation = try bits.take(3) + 1
      let hasIntrinsicSize = try bits.take(1) == 1
      if hasIntrinsicSize { _ = try size(&bits) }
      let hasPreview = try bits.take(1) == 1
      if hasPreview { return (orientation, false) }
      return (orientation, try bits.take(1) == 1)
    } catch {
      return (orientation, false)
    }
  }
}

/// Reads bits, starting with the lowest of each byte.
private struct BitReader {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// `count` must be at most 30.
  mutating func take(_ count: Int) throws(ImageHeaderError) -> Int {
    guard position + count <= bytes.count * 8 else { throw .cut }
    var value = 0
    for index in 0..<count {
      value |= Int(bytes[position / 8] >> UInt8(position % 8) & 1) << index
      position += 1
    }
    return value
  }
}
