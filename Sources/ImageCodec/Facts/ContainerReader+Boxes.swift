/// Files of boxes.
extension ContainerReader {
  // MARK: - AVIF and HEIC (ISO/IEC 23008-12)

  mutating func readHEIF() throws(ImageHeaderError) {
    var boxes = BoxSequence(from: 0, to: reader.count)
    var meta: BoxSequence.Box?
    while let box = try boxes.next(&reader) {
      switch box.name {
      case "meta" where meta == nil: meta = box
      case "uuid": try readUUID(box)
      default: break
      }
    }
    guard let meta else { throw .impossible("the file has no primary image") }
    try readItems(meta)
    guard boxes.isWhole else { throw .cut }
  }

  private static let manifestBox: [UInt8] = [
    0xD8, 0xFE, 0xC3, 0xD6, 0x1B, 0x0E, 0x48, 0x3C, 0x92, 0x97, 0x58, 0x28, 0x87, 0x7E, 0xC4, 0x81,
  ]
  private static let xmpBox: [UInt8] = [
    0xBE, 0x7A, 0xCF, 0xCB, 0x97, 0xA9, 0x42, 0xE8, 0x9C, 0x71, 0x99, 0x94, 0x91, 0xE3, 0xAF, 0xAC,
  ]

  private mutating func readUUID(_ box: BoxSequence.Box) throws(ImageHeaderError) {
    let start = box.content.lowerBound
    switch try reader.bytes(start, count: 16) {
    case Self.xmpBox: searchXMP((start + 16)..<box.content.upperBound)
    // Four bytes of version and flags, and the purpose, which may be that of an auxiliary box (C2PA 2.4 section A.5.1).
    case Self.manifestBox:
      let purpose = source.bytes(at: start + 20, count: 9).prefix { $0 != 0 }
      if ["manifest", "original", "update"].contains(String(decoding: purpose, as: UTF8.self)) { hasManifest = true }
    default: break
    }
  }

  private mutating func readItems(_ meta: BoxSequence.Box) throws(ImageHeaderError) {
    var parts: [FourCC: BoxSequence.Box] = [:]
    var boxes = BoxSequence(in: meta, skipping: 4)
    while let box = try boxes.next(&reader) { if parts[box.name] == nil { parts[box.name] = box } }
    guard boxes.isWhole else { throw .cut }
    if let list = parts["iinf"] { try readMetadata(list, parts["iloc"], content: parts["idat"]) }
    guard let primary = parts["pitm"], let properties = parts["iprp"] else {
      throw .impossible("the primary image has no properties")
    }
    let item = try HEIFItem.primary(&reader, in: primary)
    let found = try HEIFItem.properties(&reader, in: properties, of: item)
    guard !found.isEmpty else { throw .impossible("the primary image has no properties") }
    try readProperties(found)
    facts.hasAlpha = parts["iref"] == nil ? false : try hasAlpha(item, properties)
  }

  private mutating func readProperties(_ properties: [BoxSequence.Box]) throws(ImageHeaderError) {
    var (bitDepth, isGray) = (Int?.none, false)
    colors.otherwise = nil
    for property in properties {
      let (start, length) = (property.content.lowerBound, property.content.count)
      switch property.name {
      // The bits of each channel.
      case "pixi" where length > 4:
        let channels = try reader.uint8(start + 4)
        guard length >= 5 + channels else { break }
        var depth = 0
        for index in 0..<channels { depth = max(depth, try reader.uint8(start + 5 + index)) }
        facts.bitDepth = depth
        if channels == 1 { isGray = true }
      // AV1 in ISOBMFF, section 2.3.3.
      case "av1C" where length >= 4:
        let flags = try reader.uint8(start + 2)
        bitDepth = flags & 0x40 == 0 ? 8 : flags & 0x20 == 0 ? 10 : 12
        if flags & 0x10 != 0 { isGray = true }
      // ISO/IEC 14496-15 section 8.3.3.1.2.
      case "hvcC" where length >= 18:
        bitDepth = 8 + (try reader.uint8(start + 17) & 7)
        if try reader.uint8(start + 16) & 3 == 0 { isGray = true }
      case "colr" where length >= 4:
        // ISO/IEC 14496-12 section 12.1.5.
        switch try reader.name(start) {
        case "nclx" where length >= 8: colors.codePoints = (try reader.big16(start + 4), try reader.big16(start + 6))
        case "prof", "rICC":
          colors.profile = Array(source.bytes(at: start + 4, count: min(length - 4, Self.maxText)))
        default: break
        }
      default: break
      }
    }
    facts.bitDepth = facts.bitDepth ?? bitDepth
    colors.otherwise = isGray ? "gray" : colors.codePoints == nil ? nil : "sRGB"
  }

  private static let alphaTypes = Set([
    "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1",
  ])

  /// Nil if the references cannot be read.
  private mutating func hasAlpha(_ item: Int, _ properties: BoxSequence.Box) throws(ImageHeaderError) -> Bool? {
    guard let images = HEIFReferences(source)?.items(referringTo: item, as: "auxl"), images.count <= Self.maxItems
    else { return nil }
    for image in images {
      for property in try HEIFItem.properties(&reader, in: properties, of: image) where property.name == "auxC" {
        let name = source.bytes(at: property.content.lowerBound + 4, count: property.content.count - 4)
        if Self.alphaTypes.contains(String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)) { return true }
      }
    }
    return false
  }

  // MARK: - Items with metadata

  private static let maxItems = 16
  private static let xmpType = Array("application/rdf+xml".utf8)

  /// Reads the items of EXIF and XMP (annexes A.2.1 and A.3).
  ///
  /// - Parameters:
  ///   - list: the box `iinf` (ISO/IEC 14496-12 section 8.11.6).
  ///   - places: the box `iloc`.
  ///   - content: the box `idat`.
  private mutating func readMetadata(
    _ list: BoxSequence.Box, _ places: BoxSequence.Box?, content: BoxSequence.Box?
  ) throws(ImageHeaderError) {
    var entries = BoxSequence(in: list, skipping: try reader.uint8(list.content.lowerBound) == 0 ? 6 : 8)
    var count = 0
    while let entry = try entries.next(&reader) {
      let start = entry.content.lowerBound
      let version = try reader.uint8(start)
      // Older versions have no type.
      guard entry.name == "infe", version == 2 || version == 3 else { continue }
      let item = version == 2 ? try reader.big16(start + 4) : try reader.big32(start + 4)
      let type = try reader.name(start + (version == 2 ? 8 : 10))
      guard type == "Exif" || type == "mime" else { continue }
      count += 1
      guard count <= Self.maxItems, let places, let place = try self.place(of: item, places, content),
        place.upperBound <= reader.count
      else {
        mayHavePosition = true
        continue
      }
      if type == "Exif" {
        guard place.count > 4 else { continue }
        readEXIF(at: place.lowerBound + 4 + (try reader.big32(place.lowerBound)))
      } else {
        // A name, the media type, and the encoding, which is empty without compression.
        let names = start + (version == 2 ? 12 : 14)
        let texts = source.bytes(at: names, count: min(entry.content.upperBound - names, 4096))
          .split(separator: 0, maxSplits: 3, omittingEmptySubsequences: false)
        guard texts.count > 1, texts[1].elementsEqual(Self.xmpType) else { continue }
        if texts.count > 2, !texts[2].isEmpty { mayHavePosition = true }
        searchXMP(place)
      }
    }
    if !entries.isWhole { mayHavePosition = true }
  }

  /// The place of an item in the file (ISO/IEC 14496-12 section 8.11.3). Nil if it has several parts or is made of
  /// other items.
  private mutating func place(
    of item: Int, _ box: BoxSequence.Box, _ content: BoxSequence.Box?
  ) throws(ImageHeaderError) -> Range<Int>? {
    let start = box.content.lowerBound
    let version = try reader.uint8(start)
    let sizes = try reader.big16(start + 4)
    let (ofOffset, ofLength, ofBase) = (sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15)
    let ofIndex = version == 0 ? 0 : sizes & 15
    guard version <= 2, [ofOffset, ofLength, ofBase, ofIndex].allSatisfy({ [0, 4, 8].contains($0) }) else { return nil }
    let isLong = version == 2
    let count = isLong ? try reader.big32(start + 6) : try reader.big16(start + 6)
    var position = start + (isLong ? 10 : 8)
    for _ in 0..<count where position < box.content.upperBound {
      let id = isLong ? try reader.big32(position) : try reader.big16(position)
      position += isLong ? 4 : 2
      let method = version == 0 ? 0 : try reader.big16(position) & 15
      // The file of the data is this one.
      position += version == 0 ? 2 : 4
      let base = try integer(position, bytes: ofBase)
      let extents = try reader.big16(position + ofBase)
      position += ofBase + 2
      if id == item {
        guard extents == 1, method <= 1, method == 0 || content != nil else { return nil }
        let offset = base + (try integer(position + ofIndex, bytes: ofOffset))
        let length = try integer(position + ofIndex + ofOffset, bytes: ofLength)
        let first = offset + (method == 0 ? 0 : content?.content.lowerBound ?? 0)
        return first..<(first + length)
      }
      position += extents * (ofIndex + ofOffset + ofLength)
    }
    return nil
  }

  private mutating func integer(_ place: Int, bytes: Int) throws(ImageHeaderError) -> Int {
    try reader.offset(reader.uint64(place, bytes: bytes, isLittleEndian: false))
  }

  // MARK: - JPEG XL (ISO/IEC 18181)

  mutating func readJXL() throws(ImageHeaderError) {
    if let samples = try? JXLHeader.samples(&reader) {
      (facts.bitDepth, facts.hasAlpha) = (samples.bits, samples.hasAlpha)
      colors = samples.colors
    } else {
      colors.otherwise = nil
    }
    // Only a container has metadata.
    guard try reader.uint8(0) == 0 else { return }
    var boxes = BoxSequence(from: 0, to: reader.count)
    while let box = try boxes.next(&reader) {
      let start = box.content.lowerBound
      switch box.name {
      case "Exif" where box.content.count > 4: readEXIF(at: start + 4 + (try reader.big32(start)))
      case "xml ": searchXMP(box.content)
      // Compressed by Brotli.
      case "brob": if ["Exif", "xml "].contains(try reader.name(start)) { mayHavePosition = true }
      // C2PA 2.4 section A.3.9.
      case "jumb": if try beginsManifest(box.content, isContent: true) { hasManifest = true }
      default: break
      }
    }
    guard boxes.isWhole else { throw .cut }
  }
}
