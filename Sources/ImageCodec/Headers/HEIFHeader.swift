internal import Platform

/// AVIF and HEIC (ISO/IEC 23008-12): the properties of the primary item.
enum HEIFHeader {
  static func read(_ reader: inout HeaderReader, format: ImageFormat) throws(ImageHeaderError) -> ImageHeader {
    var boxes = BoxSequence(from: 0, to: reader.count)
    var item: HEIFItem?
    var track: HEIFTrack?
    // A file that is truncated after the item is left to the decoder to reject.
    while let box = item == nil ? try boxes.next(&reader) : try? boxes.next(&reader) {
      switch box.name {
      case "meta" where item == nil: item = try HEIFItem(&reader, meta: box, format: format)
      case "mini" where item == nil:
        if let minimized = try HEIFMinimized.header(&reader, format: format, box) { return minimized }
      case "moov" where track == nil: track = HEIFTrack.first(&reader, movie: box)
      default: break
      }
    }
    if let item {
      return ImageHeader(
        format, width: item.width, height: item.height, frames: track?.frames ?? 1,
        orientation: item.orientation.exifValue)
    }
    guard let track else { throw .impossible("the file has no primary image") }
    return ImageHeader(format, width: track.width, height: track.height, frames: track.frames)
  }
}

/// The colours of a HEIC, and its high dynamic range.
package struct HEIFColors {
  /// The numbers of the primaries and of the transfer function of the primary item (ITU-T H.273); nil if it has an ICC
  /// profile, or no colours.
  package private(set) var codePoints: (primaries: Int, transfer: Int)?
  /// Whether the file has a gain map: a tone-mapped image (ISO 21496-1), or the auxiliary image of Apple.
  package private(set) var hasGainMap = false

  package init(_ source: any ByteSource) {
    var reader = HeaderReader(source)
    var boxes = BoxSequence(from: 0, to: reader.count)
    while let box = try? boxes.next(&reader) {
      let content = source.bytes(at: box.content.lowerBound, count: min(box.content.count, Self.maxSearched))
      switch box.name {
      case "ftyp": hasGainMap = content.has("tmap".utf8)
      case "meta":
        let item = try? HEIFItem(&reader, meta: box, format: .heic)
        codePoints = item?.hasProfile == true ? nil : item?.codePoints
        hasGainMap = hasGainMap || content.has("urn:com:apple:photo:2020:aux:hdrgainmap".utf8)
        return
      default: break
      }
    }
  }

  private static let maxSearched = 1 << 17
}

/// The size, the rotations and the colours of the item to show.
struct HEIFItem {
  private(set) var width = 0
  private(set) var height = 0
  fileprivate private(set) var codePoints: (primaries: Int, transfer: Int)?
  fileprivate private(set) var hasProfile = false
  private(set) var orientation = Orientation()

  private static let maxAssociations = 16
  private static let maxItems = 65_536

  init(_ reader: inout HeaderReader, meta: BoxSequence.Box, format: ImageFormat) throws(ImageHeaderError) {
    var primary: Int?
    var properties: BoxSequence.Box?
    var boxes = BoxSequence(in: meta, skipping: 4)
    while let box = try boxes.next(&reader) {
      if box.name == "pitm" {
        primary = try Self.primary(&reader, in: box)
      } else if box.name == "iprp", properties == nil {
        properties = box
      }
    }
    guard let primary else { throw .impossible("the file has no primary image") }
    let selected =
      try properties.map { (box) throws(ImageHeaderError) in
        try Self.properties(&reader, in: box, of: primary)
      } ?? []
    // The size is that of the coded picture, at any position among the properties. AVIF has a fixed order of the others
    // (MIAF, ISO/IEC 23000-22 section 7.3.6.7), which browsers use even if a file has another order. HEIC properties
    // are applied in the order of the file.
    for box in selected where box.name == "ispe" { try apply(box, &reader) }
    for box in selected where ["clap", "colr"].contains(box.name) { try apply(box, &reader) }
    let turns = selected.filter { ["irot", "imir"].contains($0.name) }
    let inOrder = format == .avif ? turns.filter { $0.name == "irot" } + turns.filter { $0.name == "imir" } : turns
    for box in inOrder { try apply(box, &reader) }
    guard width > 0, height > 0 else { throw .impossible("the primary image has no size") }
  }

  /// The number of the primary item.
  ///
  /// - Parameter box: the box `pitm`.
  static func primary(_ reader: inout HeaderReader, in box: BoxSequence.Box) throws(ImageHeaderError) -> Int {
    let isShort = try reader.uint8(box.content.lowerBound) == 0
    let start = box.content.lowerBound + 4
    return isShort ? try reader.big16(start) : try reader.big32(start)
  }

  /// The properties of an item, in the order in which they apply.
  ///
  /// - Parameter box: the box `iprp`.
  static func properties(
    _ reader: inout HeaderReader, in box: BoxSequence.Box, of item: Int
  ) throws(ImageHeaderError) -> [BoxSequence.Box] {
    var properties: [BoxSequence.Box] = []
    var associations: [BoxSequence.Box] = []
    var inner = BoxSequence(in: box)
    while let part = try inner.next(&reader) {
      if part.name == "ipma", associations.count < maxAssociations { associations.append(part) }
      guard part.name == "ipco", properties.isEmpty else { continue }
      var list = BoxSequence(in: part)
      while let property = try list.next(&reader) { properties.append(property) }
    }
    var selected: [BoxSequence.Box] = []
    for box in associations {
      for index in try indices(&reader, in: box, of: item) where properties.indices.contains(index - 1) {
        selected.append(properties[index - 1])
      }
    }
    return selected
  }

  private mutating func apply(_ property: BoxSequence.Box, _ reader: inout HeaderReader) throws(ImageHeaderError) {
    let start = property.content.lowerBound
    switch property.name {
    case "ispe": (width, height) = (try reader.big32(start + 4), try reader.big32(start + 8))
    case "clap":
      var numbers: [Int] = []
      for index in 0..<8 { numbers.append(try reader.big32(start + 4 * index)) }
      if let aperture = CleanAperture(numbers, width: width, height: height) {
        (width, height) = (aperture.width, aperture.height)
      }
    case "colr":
      // ISO/IEC 14496-12 section 12.1.5.
      switch try reader.name(start) {
      case "nclx": codePoints = (try reader.big16(start + 4), try reader.big16(start + 6))
      case "prof", "rICC": hasProfile = true
      default: break
      }
    case "irot": orientation.turnLeft(times: try reader.uint8(start) & 3)
    case "imir": orientation.mirror(isLeftRight: try reader.uint8(start) & 1 == 1)
    default: break
    }
  }

  /// The one-based indices of an item's properties, in the order in which they apply (section 9.3).
  private static func indices(_ reader: inout HeaderReader, in box: BoxSequence.Box, of item: Int)
    throws(ImageHeaderError) -> [Int]
  {
    let start = box.content.lowerBound
    let isLongItem = try reader.uint8(start) > 0
    let isLongIndex = try reader.uint8(start + 3) & 1 == 1
    let entries = min(try reader.big32(start + 4), maxItems)
    var position = start + 8
    var entry = 0
    while entry < entries, position < box.content.upperBound {
      let id = isLongItem ? try reader.big32(position) : try reader.big16(position)
      position += isLongItem ? 4 : 2
      let count = try reader.uint8(position)
      position += 1
      if id == item {
        var found: [Int] = []
        for index in 0..<count {
          found.append(
            isLongIndex ? try reader.big16(position + 2 * index) & 0x7FFF : try reader.uint8(position + index) & 0x7F)
        }
        return found
      }
      position += isLongIndex ? 2 * count : count
      entry += 1
    }
    return []
  }
}

/// The minimized image box (ISO/IEC 23008-12:2025, annex O): size and orientation in its first bits.
package enum HEIFMinimized {
  /// Nil for unknown versions.
  static func header(
    _ reader: inout HeaderReader, format: ImageFormat, _ box: BoxSequence.Box
  ) throws(ImageHeaderError) -> ImageHeader? {
    let start = box.content.lowerBound
    // Two bits of version, nine flags, two bits of chroma subsampling, three bits of orientation.
    let flags = try reader.big16(start)
    guard flags >> 14 == 0 else { return nil }
    let sides = try reader.big32(start + 2)
    let bits = sides >> 31 == 1 ? 7 : 15
    let mask = 1 << bits - 1
    return ImageHeader(
      format, width: (sides >> (31 - bits) & mask) + 1, height: (sides >> (31 - 2 * bits) & mask) + 1,
      orientation: flags & 7 + 1)
  }

  /// Whether the image is described by a minimized image box, which the libraries here do not read.
  package static func isIn(_ source: any ByteSource) -> Bool {
    var reader = HeaderReader(source)
    var boxes = BoxSequence(from: 0, to: reader.count)
    while let box = try? boxes.next(&reader) {
      if box.name == "mini" { return true }
      if box.name == "meta" || box.name == "moov" { return false }
    }
    return false
  }
}

/// The visible part of a coded picture (`clap`, ISO/IEC 14496-12 section 12.1.4).
public struct CleanAperture: Sendable, Hashable {
  public let x: Int
  public let y: Int
  public let width: Int
  public let height: Int

  /// Nil if the edges are not on whole pixels of the picture. Then the whole picture is shown, as in browsers.
  ///
  /// - Parameters:
  ///   - numbers: the eight 32-bit fields of the box: numerator and denominator of the width, of the height, and of the
  ///     horizontal and vertical distance of the part's middle from that of the picture. The numerators of the
  ///     distances are signed.
  ///   - width: the width of the coded picture, less than 2^32.
  public init?(_ numbers: [Int], width: Int, height: Int) {
    guard let across = Self.extent(numbers[0], numbers[1], offset: (numbers[4], numbers[5]), of: width),
      let down = Self.extent(numbers[2], numbers[3], offset: (numbers[6], numbers[7]), of: height)
    else { return nil }
    (x, self.width) = (across.start, across.length)
    (y, self.height) = (down.start, down.length)
  }

  private static func extent(
    _ numerator: Int, _ denominator: Int, offset: (numerator: Int, denominator: Int), of whole: Int
  ) -> (start: Int, length: Int)? {
    guard denominator > 0, offset.denominator > 0, numerator.isMultiple(of: denominator) else { return nil }
    let length = numerator / denominator
    // Doubled, so that half pixels are integers.
    let doubled = 2 * Int(Int32(truncatingIfNeeded: offset.numerator))
    guard length > 0, length <= whole, doubled.isMultiple(of: offset.denominator) else { return nil }
    let start = whole - length + doubled / offset.denominator
    guard start >= 0, start.isMultiple(of: 2), start / 2 + length <= whole else { return nil }
    return (start / 2, length)
  }
}
