internal import Platform

/// TIFFs, bitmaps and drawings.
extension ContainerReader {
  // MARK: - TIFF (6.0) and DNG

  mutating func readTIFF() throws(ImageHeaderError) {
    let first = try TIFFDirectory(&reader, fileStart: 0)
    let metadata = first.entries(&reader)
    readEXIF(at: 0)
    if let xmp = metadata[700] { searchXMP(xmp.place..<(xmp.place + xmp.count)) }
    // C2PA 2.4 appendix A.3.
    if let manifest = metadata[52_545], try beginsManifest(manifest.place..<(manifest.place + manifest.count)) {
      hasManifest = true
    }

    let directory = first.isDNG(&reader) ? try TIFFHeader.rawPicture(&reader, of: first) : first
    guard first.isWhole(reader), directory.isWhole(reader) else { throw .cut }
    let entries = directory.entries(&reader)
    func numbers(_ tag: Int, _ reader: inout HeaderReader) throws(ImageHeaderError) -> [Int] {
      guard let entry = entries[tag] else { return [] }
      var numbers: [Int] = []
      for index in 0..<min(entry.count, 10) {
        guard let number = try directory.number(entry, index, &reader) else { break }
        numbers.append(Int(exactly: number) ?? 0)
      }
      return numbers
    }
    let photometric = try numbers(262, &reader).first
    // Those of a palette have 16 bits. Without the tag, there is one bit.
    facts.bitDepth = photometric == 3 ? 16 : try numbers(258, &reader).max() ?? 1
    colors.otherwise = try colorName(photometric, inks: numbers(332, &reader).first ?? 1)
    if let profile = entries[34_675] {
      colors.profile = Array(source.bytes(at: profile.place, count: min(profile.count, Self.maxText)))
    }
    if entries[338] != nil {
      facts.hasAlpha = try numbers(338, &reader).contains { $0 == 1 || $0 == 2 }
    } else if let photometric, let colors = Self.channels[photometric] {
      // Samples more than the colours need, of which the file does not say what they are, are shown as alpha.
      facts.hasAlpha = try numbers(277, &reader).first ?? 1 > colors
    }
  }

  private static let channels = [0: 1, 1: 1, 2: 3, 3: 1, 5: 4, 6: 3, 8: 3]

  private func colorName(_ photometric: Int?, inks: Int) -> String? {
    switch photometric {
    case 0, 1: "gray"
    case 2, 3, 6: "sRGB"
    case 5 where inks == 1: "CMYK"
    case 8, 9, 10: "Lab"
    default: nil
    }
  }

  // MARK: - BMP and ICO

  mutating func readBMP() throws(ImageHeaderError) {
    let header = try BitmapHeader(&reader, at: BMPHeader.start)
    // The image is a file of another format, which is read instead.
    if [.jpeg, .png].contains(header.compression) { throw .impossible("the bitmap contains another file") }
    try readBitmap(header, at: BMPHeader.start)
  }

  /// The largest picture.
  mutating func readICO() throws(ImageHeaderError) {
    let entry = try ICOHeader.largest(in: source)
    if entry.isPNG { return try readPNG(at: entry.start) }
    try readBitmap(try BitmapHeader(&reader, at: entry.start, isInIcon: true), at: entry.start)
    // An icon has a mask.
    facts.hasAlpha = true
  }

  private mutating func readBitmap(_ header: BitmapHeader, at start: Int) throws(ImageHeaderError) {
    var masks = header.masks ?? []
    let follow = header.compression == .alphaBitFields ? 4 : header.compression == .bitFields ? 3 : 0
    if masks.isEmpty {
      for index in 0..<follow {
        masks.append(UInt32(truncatingIfNeeded: try reader.little32(start + header.length + 4 * index)))
      }
    }
    let isMasked = header.bitCount == 16 || header.bitCount == 32
    let widest = masks.prefix(3).map(\.nonzeroBitCount).max() ?? 0
    facts.bitDepth = isMasked && follow > 0 && widest > 0 ? widest : header.bitCount == 16 ? 5 : 8
    facts.hasAlpha = isMasked && masks.count == 4 && masks[3] != 0 && (header.tellsAlpha || follow == 4)
    guard header.length >= 108 else { return }
    // The type of the colours: a header of version 4 or 5.
    switch try reader.little32(start + 56) {
    case 0x7352_4742, 0x5769_6E20: break
    default: colors.otherwise = nil
    }
    if let profile = header.profile {
      colors.profile = Array(source.bytes(at: start + profile.lowerBound, count: min(profile.count, Self.maxText)))
    }
  }

  // MARK: - SVG

  mutating func readSVG() throws(ImageHeaderError) {
    colors.otherwise = nil
    let bytes = source.bytes(at: 0, count: Self.maxText)
    let text = SVGProlog.inBytes(bytes)
    search(text)
    // C2PA 2.4 appendix A.3.
    if text.has("<c2pa:manifest".utf8) { hasManifest = true }
    guard bytes.count == reader.count else { throw .cut }
  }
}
