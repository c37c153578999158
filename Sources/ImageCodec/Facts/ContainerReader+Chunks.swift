internal import CZlib

/// Files of segments, chunks or blocks.
extension ContainerReader {
  // MARK: - JPEG (ITU-T T.81 annex B)

  mutating func readJPEG() throws(ImageHeaderError) {
    facts.hasAlpha = false
    var (profile, parts): ([Int: ArraySlice<UInt8>], Int) = ([:], 0)
    var extendedXMP: [UInt8] = []
    var segments = reader
    try JPEGHeader.forEachSegment(&segments) { (segment, marker, content) throws(ImageHeaderError) in
      let start = content.lowerBound
      switch marker {
      // The first frame header counts, as in `JPEGHeader`.
      case 0xC0...0xCF where ![0xC4, 0xC8, 0xCC].contains(marker) && content.count >= 6 && facts.bitDepth == nil:
        facts.bitDepth = try segment.uint8(start)
        let components = try segment.uint8(start + 5)
        colors.otherwise = components == 1 ? "gray" : components == 4 ? "CMYK" : components == 3 ? "sRGB" : nil
      case 0xE1:
        let bytes = source.bytes(at: start, count: content.count)
        if bytes.starts(with: EXIF.mark) {
          readEXIF(at: start)
        } else if bytes.starts(with: Self.xmp) {
          search(bytes)
        } else if bytes.starts(with: Self.extendedXMP) {
          // After an identifier, the length and the place of the part. Writers keep the order.
          extendedXMP += bytes.dropFirst(Self.extendedXMP.count + 40)
        }
      case 0xE2:
        // Its number, from 1, and the number of parts follow (ICC.1:2022 annex B.4).
        let bytes = source.bytes(at: start, count: content.count)
        guard bytes.starts(with: Self.profile), bytes.count > 14 else { break }
        let numbers = bytes.dropFirst(12)
        profile[Int(numbers[numbers.startIndex])] = bytes.dropFirst(14)
        parts = Int(numbers[numbers.startIndex + 1])
      // Two letters, two numbers of the part, and the box (ISO/IEC 19566-5 annex D.2; C2PA 2.4 appendix A.3).
      case 0xEB where content.count > 8:
        guard try segment.big16(start) == 0x4A50 else { break }
        if try beginsManifest((start + 8)..<content.upperBound) { hasManifest = true }
      default: break
      }
    }
    search(extendedXMP)
    guard parts > 0 else { return }
    // Decoders ignore a profile that lacks a part.
    let whole = (1...parts).compactMap { profile[$0] }
    if whole.count == parts { colors.profile = Array(whole.joined()) } else { colors.otherwise = nil }
  }

  private static let xmp = Array("http://ns.adobe.com/xap/1.0/\0".utf8)
  private static let extendedXMP = Array("http://ns.adobe.com/xmp/extension/\0".utf8)
  private static let profile = Array("ICC_PROFILE\0".utf8)

  // MARK: - PNG (third edition)

  mutating func readPNG(at fileStart: Int = 0) throws(ImageHeaderError) {
    _ = try PNGHeader.size(&reader, at: fileStart)
    let (depth, color) = (try reader.uint8(fileStart + 24), try reader.uint8(fileStart + 25))
    // Those of a palette have 8 bits.
    facts.bitDepth = color == 3 ? 8 : depth
    facts.hasAlpha = color & 4 != 0
    var declared = PNGDeclarations()
    var isBeforePixels = true
    var position = fileStart + 33
    while true {
      let length = try reader.big32(position)
      let content = (position + 8)..<(position + 8 + length)
      let start = content.lowerBound
      let name = try reader.name(position + 4)
      switch (name, length) {
      case ("IEND", _):
        colors = declared.colors(isGray: color & 2 == 0)
        return
      case ("IDAT", _): isBeforePixels = false
      case ("tRNS", 1...) where isBeforePixels: facts.hasAlpha = true
      case ("PLTE", _), ("cICP", 4), ("sRGB", 1), ("gAMA", 4), ("cHRM", 32):
        if isBeforePixels { try declared.read(name, at: start, &reader) }
      case ("iCCP", _) where isBeforePixels:
        // A name, its end, the method, and zlib data.
        let bytes = source.bytes(at: start, count: min(length, Self.maxText))
        guard let end = bytes.prefix(80).firstIndex(of: 0), end + 2 < bytes.endIndex else { break }
        declared.profile = Self.inflated(bytes[(end + 2)...], atMost: Self.maxProfile).bytes
      case ("eXIf", _): readEXIF(at: start)
      case ("iTXt", _): readText(content)
      // ImageMagick writes metadata in hexadecimal digits.
      case ("tEXt", _), ("zTXt", _):
        let keyword = source.bytes(at: start, count: min(length, Self.rawProfile.count))
        if keyword.elementsEqual(Self.rawProfile) { mayHavePosition = true }
      // C2PA 2.4 appendix A.3.
      case ("caBX", _): if try beginsManifest(content) { hasManifest = true }
      default: break
      }
      position = content.upperBound + 4
    }
  }

  private static let maxProfile = 4 << 20
  private static let rawProfile = Array("Raw profile type ".utf8)
  private static let xmpKeyword = Array("XML:com.adobe.xmp\0".utf8)

  /// An iTXt chunk: a keyword, two bytes about compression, two texts that end with zero, and the text.
  private mutating func readText(_ content: Range<Int>) {
    let bytes = source.bytes(at: content.lowerBound, count: min(content.count, Self.maxText))
    guard bytes.starts(with: Self.xmpKeyword) else { return }
    var rest = bytes.dropFirst(Self.xmpKeyword.count)
    let isCompressed = rest.first == 1
    rest = rest.dropFirst(2)
    for _ in 0..<2 { rest = rest.drop { $0 != 0 }.dropFirst() }
    if bytes.count < content.count { mayHavePosition = true }
    guard isCompressed else { return search(rest) }
    let (text, isWhole) = Self.inflated(rest, atMost: Self.maxText)
    if !isWhole { mayHavePosition = true }
    search(text)
  }

  /// The first bytes of zlib data (RFC 1950).
  static func inflated(_ data: ArraySlice<UInt8>, atMost limit: Int) -> (bytes: [UInt8], isWhole: Bool) {
    var stream = z_stream()
    guard inflateInit_(&stream, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else { return ([], false) }
    defer { inflateEnd(&stream) }
    var bytes: [UInt8] = []
    var isWhole = false
    data.withUnsafeBufferPointer { input in
      (stream.next_in, stream.avail_in) = (input.baseAddress, UInt32(input.count))
      while bytes.count < limit, !isWhole {
        let room = min(65_536, limit - bytes.count)
        var status = Z_OK
        let piece = [UInt8](unsafeUninitializedCapacity: room) { output, count in
          (stream.next_out, stream.avail_out) = (output.baseAddress, UInt32(room))
          status = inflate(&stream, Z_NO_FLUSH)
          count = room - Int(stream.avail_out)
        }
        bytes += piece
        isWhole = status == Z_STREAM_END
        if status != Z_OK { break }
      }
    }
    return (bytes, isWhole)
  }

  // MARK: - WebP (RFC 9649)

  mutating func readWebP() throws(ImageHeaderError) {
    facts.bitDepth = 8
    facts.hasAlpha = false
    let end = 8 + (try reader.little32(4))
    var position = 12
    while position < end {
      let name = try reader.name(position)
      let length = try reader.little32(position + 4)
      let content = (position + 8)..<(position + 8 + length)
      let start = content.lowerBound
      switch name {
      case "VP8X" where length >= 10: facts.hasAlpha = try reader.uint8(start) & 0x10 != 0
      case "ALPH": facts.hasAlpha = true
      // After 14 bits for each side.
      case "VP8L" where length >= 5: facts.hasAlpha = try reader.little32(start + 1) >> 28 & 1 == 1
      case "ICCP" where colors.profile == nil:
        colors.profile = Array(source.bytes(at: start, count: min(length, Self.maxProfile)))
      case "EXIF": readEXIF(at: start)
      case "XMP ": searchXMP(content)
      // C2PA 2.4 appendix A.3.
      case "C2PA": if try beginsManifest(content) { hasManifest = true }
      default: break
      }
      guard content.upperBound <= reader.count else { throw .cut }
      position = content.upperBound + length % 2
    }
  }

  // MARK: - GIF (GIF89a)

  mutating func readGIF() throws(ImageHeaderError) {
    (facts.bitDepth, facts.hasAlpha) = (8, false)
    var scan = try GIFScan(source)
    while let frame = try scan.next() { if frame.transparentIndex != nil { facts.hasAlpha = true } }
    guard scan.isAtEnd else { throw .cut }
    // The bytes of XMP are those of the blocks themselves (XMP specification part 3, section 1.1.2).
    for blocks in scan.applications["XMP DataXMP"] ?? [] { searchXMP(blocks) }
    // A length of one byte precedes the box (C2PA 2.4 section A.3.8).
    for blocks in scan.applications["C2PA_GIF\u{1}\0\0"] ?? [] {
      let start = blocks.lowerBound + 1
      if try beginsManifest(start..<(start + (try reader.uint8(start - 1)))) { hasManifest = true }
    }
  }
}

/// The chunks by which a PNG declares its colours (third edition, section 4.3): cICP before iCCP before sRGB before
/// gAMA and cHRM.
private struct PNGDeclarations {
  var profile: [UInt8]?
  private var codePoints: (primaries: Int, transfer: Int?)?
  private var hasPalette = false
  private var isStandard = false
  private var gamma: Int?
  private var chromaticities: [Int]?

  mutating func read(_ name: FourCC, at start: Int, _ reader: inout HeaderReader) throws(ImageHeaderError) {
    switch name {
    case "PLTE": hasPalette = true
    case "cICP" where codePoints == nil && !hasPalette:
      // Only RGB in full range is valid (section 11.3.2.6).
      guard try reader.big16(start + 2) == 1 else { return }
      codePoints = (try reader.uint8(start), try reader.uint8(start + 1))
    case "sRGB": isStandard = try reader.uint8(start) < 4
    case "gAMA" where gamma == nil: gamma = try reader.big32(start)
    case "cHRM" where chromaticities == nil:
      var points: [Int] = []
      for index in 0..<8 { points.append(try reader.big32(start + 4 * index)) }
      chromaticities = points
    default: break
    }
  }

  func colors(isGray: Bool) -> DeclaredColors {
    var colors = DeclaredColors()
    if isGray { colors.otherwise = "gray" }
    colors.codePoints = codePoints
    if codePoints != nil { return colors }
    // A profile that cannot be inflated is ignored, as in libpng.
    if let profile, profile.count >= 132 {
      colors.profile = profile
    } else if !isStandard, !isGray, let gamma, !isThatOfSRGB(gamma) {
      colors.otherwise = nil
    }
    return colors
  }

  /// White, red, green and blue of BT.709, in 1/100000.
  private static let standard = [31_270, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000]

  private func isThatOfSRGB(_ gamma: Int) -> Bool {
    (43_000...48_000).contains(gamma)
      && zip(chromaticities ?? Self.standard, Self.standard).allSatisfy { abs($0 - $1) <= 200 }
  }
}
