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

  /// The depth, the alpha channel and the colours, which follow. Throws for an image with a preview or an animation.
  static func samples(
    _ reader: inout HeaderReader
  ) throws(ImageHeaderError) -> (bits: Int, hasAlpha: Bool, colors: DeclaredColors) {
    var bits = try bits(&reader, atMost: 1024)
    _ = try size(&bits)
    return try JXLSamples.read(&bits) { (bits) throws(ImageHeaderError) in _ = try size(&bits) }
  }

  private static func bits(
    _ reader: inout HeaderReader, atMost length: Int = maxLength
  ) throws(ImageHeaderError) -> BitReader {
    let stream = try codestream(&reader)
    let start = stream.lowerBound
    guard try reader.big16(start) == 0xFF0A else { throw .impossible("the JPEG XL codestream has no signature") }
    return BitReader(try reader.bytes(start + 2, count: max(0, min(length, stream.upperBound - start - 2))))
  }

  /// The codestream, or its first part.
  private static func codestream(_ reader: inout HeaderReader) throws(ImageHeaderError) -> Range<Int> {
    guard try reader.uint8(0) == 0 else { return 0..<reader.count }
    var boxes = BoxSequence(from: 12, to: reader.count)
    while let box = try boxes.next(&reader) {
      if box.name == "jxlc" { return box.content }
      // A part of the codestream starts with its index; the first is 0.
      if box.name == "jxlp", try reader.big32(box.content.lowerBound) & 0x7FFF_FFFF == 0 {
        return (box.content.lowerBound + 4)..<max(box.content.lowerBound + 4, box.content.upperBound)
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

/// The rest of ImageMetadata (annex D.3): what the samples are.
private enum JXLSamples {
  typealias Bits = BitReader

  /// - Parameter skipSize: skips a SizeHeader.
  static func read(
    _ bits: inout Bits, skipSize: (inout Bits) throws(ImageHeaderError) -> Void
  ) throws(ImageHeaderError) -> (bits: Int, hasAlpha: Bool, colors: DeclaredColors) {
    if try bits.flag() { return (8, false, DeclaredColors()) }
    if try bits.flag() {
      _ = try bits.take(3)
      if try bits.flag() { try skipSize(&bits) }
      let (hasPreview, isAnimated) = (try bits.flag(), try bits.flag())
      if hasPreview || isAnimated { throw .impossible("previews and animations are not read") }
    }
    let depth = try self.depth(&bits)
    _ = try bits.take(1)
    var hasAlpha = false
    for _ in 0..<(try bits.number((0, 0), (0, 1), (4, 2), (12, 1))) where try isAlpha(&bits) { hasAlpha = true }
    _ = try bits.take(1)
    return (depth, hasAlpha, try colors(&bits))
  }

  private static func depth(_ bits: inout Bits) throws(ImageHeaderError) -> Int {
    guard try bits.flag() else { return try bits.number((0, 8), (0, 10), (0, 12), (6, 1)) }
    let depth = try bits.number((0, 32), (0, 16), (0, 24), (6, 1))
    _ = try bits.take(4)
    return depth
  }

  private static func enumeration(_ bits: inout Bits) throws(ImageHeaderError) -> Int {
    try bits.number((0, 0), (0, 1), (4, 2), (6, 18))
  }

  /// ExtraChannelInfo.
  private static func isAlpha(_ bits: inout Bits) throws(ImageHeaderError) -> Bool {
    if try bits.flag() { return true }
    let type = try enumeration(&bits)
    _ = try depth(&bits)
    _ = try bits.number((0, 0), (0, 3), (0, 4), (3, 1))
    for _ in 0..<(try bits.number((0, 0), (4, 0), (5, 16), (10, 48))) { _ = try bits.take(8) }
    switch type {
    case 0: _ = try bits.take(1)
    // The four numbers of a spot colour.
    case 2: for _ in 0..<4 { _ = try bits.take(16) }
    case 5: _ = try bits.number((0, 1), (2, 0), (4, 3), (8, 19))
    default: break
    }
    return type == 0
  }

  /// ColourEncoding (annex E.2). The numbers of transfer functions and of most primaries are those of ITU-T H.273.
  private static func colors(_ bits: inout Bits) throws(ImageHeaderError) -> DeclaredColors {
    var colors = DeclaredColors()
    if try bits.flag() { return colors }
    let (hasProfile, space) = (try bits.flag(), try enumeration(&bits))
    // The profile follows the metadata, in a compression of its own.
    guard !hasProfile, space <= 1 else {
      colors.otherwise = nil
      return colors
    }
    if space == 1 {
      colors.otherwise = "gray"
      return colors
    }
    let white = try enumeration(&bits)
    if white == 2 { try skipPoints(&bits, 1) }
    let primaries = try enumeration(&bits)
    if primaries == 2 { try skipPoints(&bits, 3) }
    let hasGamma = try bits.flag()
    let transfer = hasGamma ? nil : try enumeration(&bits)
    colors.codePoints = (primaries == 11 ? 12 : primaries, transfer)
    if white != 1 || primaries == 2 { colors.otherwise = nil }
    return colors
  }

  private static func skipPoints(_ bits: inout Bits, _ count: Int) throws(ImageHeaderError) {
    for _ in 0..<(2 * count) { _ = try bits.number((19, 0), (19, 524_288), (20, 1_048_576), (21, 2_097_152)) }
  }
}

/// Reads bits, starting with the lowest of each byte.
private struct BitReader {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func flag() throws(ImageHeaderError) -> Bool { try take(1) == 1 }

  /// A number with one of four ranges (annex B.2.2): so many bits, and a number to add.
  mutating func number(
    _ ranges: (bits: Int, start: Int)...
  ) throws(ImageHeaderError) -> Int {
    let range = ranges[try take(2)]
    return range.start + (try take(range.bits))
  }

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
