internal import Platform

/// Reads what the structure of a file tells about its image. No pixel is decoded.
///
/// The file is not believed. A negative answer is given only if every place that could say otherwise has been read: it
/// is left out if the file is cut or damaged before, or has data of a kind that is not read.
package struct ContainerReader {
  let source: any ByteSource
  var reader: HeaderReader
  var facts = ContainerFacts()
  var colors = DeclaredColors()
  private(set) var hasPosition = false
  var hasManifest = false
  /// Whether the file has data that could contain a position and is not read.
  var mayHavePosition = false

  /// The most bytes of a text that are searched.
  static let maxText = 16 << 20

  package static func read(_ source: any ByteSource, _ format: ImageFormat) -> ContainerFacts {
    var this = ContainerReader(source: source, reader: HeaderReader(source))
    do throws(ImageHeaderError) {
      try this.read(format)
      return this.found(isWhole: true)
    } catch {
      return this.found(isWhole: false)
    }
  }

  private mutating func read(_ format: ImageFormat) throws(ImageHeaderError) {
    switch format {
    case .jpeg: try readJPEG()
    case .png: try readPNG()
    case .gif: try readGIF()
    case .webp: try readWebP()
    case .avif, .heic: try readHEIF()
    case .jxl: try readJXL()
    case .tiff: try readTIFF()
    case .bmp: try readBMP()
    case .ico: try readICO()
    case .svg: try readSVG()
    // The format is not decoded, so that nobody asks.
    case .jp2: throw .impossible("JPEG 2000 is not read")
    }
  }

  private func found(isWhole: Bool) -> ContainerFacts {
    func answer(_ isSo: Bool?, mayBe: Bool = false) -> Bool? { isSo == true || isWhole && !mayBe ? isSo : nil }
    var facts = facts
    facts.hasAlpha = answer(facts.hasAlpha)
    facts.hasGPS = answer(hasPosition, mayBe: mayHavePosition)
    facts.c2pa = answer(hasManifest)
    facts.colorSpace = isWhole || colors.profile != nil ? colors.name : nil
    if let depth = facts.bitDepth, !(1...64).contains(depth) { facts.bitDepth = nil }
    return facts
  }

  // MARK: - Metadata

  /// Reads EXIF data whose TIFF header, or the `Exif` mark before it, is at an offset.
  mutating func readEXIF(at offset: Int) {
    switch EXIFReader.hasPosition(source, at: offset) {
    case true?: hasPosition = true
    case false?: break
    case nil: mayHavePosition = true
    }
  }

  /// Searches XMP. Its name in EXIF's namespace is `exif:GPSLatitude` (XMP specification part 2, section 3.3), with any
  /// prefix.
  mutating func search(_ xmp: some Collection<UInt8>) {
    if xmp.has("GPSLatitude".utf8) { hasPosition = true }
  }

  mutating func searchXMP(_ range: Range<Int>) {
    let bytes = source.bytes(at: range.lowerBound, count: min(range.count, Self.maxText))
    if bytes.count < range.count { mayHavePosition = true }
    search(bytes)
  }

  /// Whether a range begins with a C2PA manifest store: a JUMBF superbox (ISO/IEC 19566-5 section B.1) whose
  /// description has the type of C2PA (C2PA specification 2.4, section 11.1).
  ///
  /// - Parameter isContent: whether the range is the content of the superbox.
  mutating func beginsManifest(_ range: Range<Int>, isContent: Bool = false) throws(ImageHeaderError) -> Bool {
    var content = range.lowerBound
    if !isContent {
      guard range.count >= 8, try reader.name(content + 4) == "jumb" else { return false }
      // A length of 1 means that a longer one follows.
      content += try reader.big32(content) == 1 ? 16 : 8
    }
    guard content + 24 <= range.upperBound, try reader.name(content + 4) == "jumd" else { return false }
    return try reader.bytes(content + 8, count: 16) == Self.manifestType
  }

  private static let manifestType: [UInt8] =
    Array("c2pa".utf8) + [0, 0x11, 0, 0x10, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71]
}

/// The colours that a file declares.
struct DeclaredColors {
  /// The first bytes of the ICC profile.
  var profile: [UInt8]?
  /// ITU-T H.273. The file has other ones if the transfer function is nil.
  var codePoints: (primaries: Int, transfer: Int?)?
  /// The name without a profile and code points; nil if it is not known.
  var otherwise: String? = "sRGB"

  /// The transfer functions that browsers show as that of sRGB, or leave open.
  private static let usualTransfers: Set = [1, 2, 6, 13, 14, 15]
  /// PQ and HLG.
  private static let highTransfers: Set = [16, 18]

  var name: String? {
    if let profile { return ProfileName.read(profile) }
    guard let (primaries, transfer) = codePoints, otherwise == "sRGB" else { return otherwise }
    guard let transfer else { return nil }
    let isHigh = Self.highTransfers.contains(transfer)
    guard isHigh || Self.usualTransfers.contains(transfer) else { return nil }
    switch primaries {
    // Unspecified primaries are shown as those of sRGB.
    case 1, 2: return isHigh ? nil : "sRGB"
    case 9: return "Rec. 2020"
    case 12: return "Display P3"
    default: return nil
    }
  }
}

/// The name of the colours of an ICC profile (ICC.1:2022 and, for version 2, ICC.1:2001-04).
enum ProfileName {
  private static let (headerLength, maxTags) = (128, 100)

  /// The description; without a valid one, `gray` or `CMYK` if the device has such colours.
  static func read(_ profile: [UInt8]) -> String? {
    var reader = HeaderReader(profile)
    guard (try? reader.name(36)) == "acsp" else { return nil }
    if case .text(let text)? = try? description(&reader) { return text }
    switch try? reader.name(16) {
    case "GRAY": return "gray"
    case "CMYK": return "CMYK"
    default: return nil
    }
  }

  private static func description(_ reader: inout HeaderReader) throws(ImageHeaderError) -> EXIFValue? {
    for index in 0..<min(try reader.big32(headerLength), maxTags) {
      let entry = headerLength + 4 + 12 * index
      guard try reader.name(entry) == "desc" else { continue }
      return try text(&reader, at: try reader.big32(entry + 4))
    }
    return nil
  }

  private static func text(_ reader: inout HeaderReader, at start: Int) throws(ImageHeaderError) -> EXIFValue? {
    switch try reader.name(start) {
    // textDescriptionType: a length and ASCII characters.
    case "desc":
      let length = min(try reader.big32(start + 8), EXIFValue.maxLength + 1)
      return EXIFValue(text: try reader.bytes(start + 12, count: length).prefix { $0 != 0 })
    // multiLocalizedUnicodeType: records of 12 bytes, each with the length and place of a text in UTF-16. The first
    // one is for readers without a preference.
    case "mluc" where try reader.big32(start + 8) > 0:
      let length = min(try reader.big32(start + 20), 2 * EXIFValue.maxLength + 2)
      let place = start + (try reader.big32(start + 24))
      var units: [UInt16] = []
      for index in 0..<(length / 2) { units.append(UInt16(try reader.big16(place + 2 * index))) }
      guard let text = String(validating: units.prefix { $0 != 0 }, as: UTF16.self) else { return nil }
      return EXIFValue(text: Array(text.utf8)[...])
    default: return nil
    }
  }
}
