/// The size of an SVG, as browsers show it if nothing else sets one (CSS Images 3, section 5, with SVG 2, section
/// 8.12).
///
/// `width` and `height` of the root count if they are lengths; a missing one follows from the other and the proportions
/// of `viewBox`. With only proportions, the size is the largest within 300 x 150; with nothing, 300 x 150.
enum SVGHeader {
  /// The maximum offset of the end of the root's tag.
  private static let maxLength = 65_536
  private static let usualWidth = 300.0
  private static let usualHeight = 150.0

  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    let count = min(maxLength, reader.count)
    let bytes = SVGProlog.inBytes(try reader.bytes(0, count: count)[...])
    guard let tag = SVGProlog.rootAttributes(bytes) else {
      if count == reader.count { throw .cut }
      throw .impossible("the SVG does not begin with its root")
    }
    let attributes = attributes(of: tag)
    let proportions = attributes["preserveAspectRatio"] == "none" ? nil : proportions(attributes["viewBox"])
    let declared = (attributes["width"].flatMap(pixels), attributes["height"].flatMap(pixels))
    let size = size(declared.0, declared.1, proportions)
    guard let width = whole(size.width), let height = whole(size.height) else {
      throw .impossible("the width or height of the SVG is out of range")
    }
    return ImageHeader(.svg, width: width, height: height)
  }

  private static func size(
    _ width: Double?, _ height: Double?, _ proportions: Double?
  ) -> (width: Double, height: Double) {
    switch (width, height, proportions) {
    case (let width?, let height?, _): return (width, height)
    case (let width?, nil, let proportions?): return (width, width / proportions)
    case (nil, let height?, let proportions?): return (height * proportions, height)
    case (nil, nil, let proportions?):
      let width = min(usualWidth, usualHeight * proportions)
      return (width, width / proportions)
    case (let width, let height, nil): return (width ?? usualWidth, height ?? usualHeight)
    }
  }

  /// Nil if the side is not a whole number of pixels of at least 1.
  private static func whole(_ side: Double) -> Int? {
    let rounded = side.rounded()
    return rounded >= 1 && rounded <= Double(Int32.max) ? Int(rounded) : nil
  }

  /// The length in pixels. Its unit must be a CSS unit that is absolute or relative to the default font.
  private static func pixels(_ text: String) -> Double? {
    let text = text.trimmingSpaces
    let end = text.lastIndex { "0123456789.".contains($0) }.map { text.index(after: $0) } ?? text.startIndex
    guard let number = number(text[..<end]) else { return nil }
    let factor: Double? =
      switch text[end...].lowercased() {
      case "", "px": 1
      case "in": 96
      case "cm": 96 / 2.54
      case "mm": 96 / 25.4
      case "q": 96 / 101.6
      case "pt": 96 / 72
      case "pc": 16
      case "em", "rem": 16
      case "ex", "ch": 8
      default: nil
      }
    return factor.map { number * $0 }
  }

  private static func proportions(_ viewBox: String?) -> Double? {
    let parts = (viewBox ?? "").split { $0 == "," || $0.isWhitespace }.compactMap { number($0) }
    guard parts.count == 4, parts[2] > 0, parts[3] > 0 else { return nil }
    let proportions = parts[2] / parts[3]
    return proportions.isFinite && proportions > 0 ? proportions : nil
  }

  private static func number(_ text: Substring) -> Double? {
    guard !text.isEmpty, text.utf8.count <= 64, text.allSatisfy({ "0123456789.+-eE".contains($0) }) else { return nil }
    return Double(text)
  }

  /// The attributes of the tag; of several with the same name, the first.
  private static func attributes(of tag: ArraySlice<UInt8>) -> [String: String] {
    var attributes: [String: String] = [:]
    var rest = tag
    let isSpace = { (byte: UInt8) in byte == 0x20 || (9...13).contains(byte) }
    while true {
      rest = rest.drop(while: isSpace)
      let name = rest.prefix { !isSpace($0) && $0 != UInt8(ascii: "=") }
      rest = rest.dropFirst(name.count).drop(while: isSpace)
      guard !name.isEmpty, rest.popFirst() == UInt8(ascii: "=") else { return attributes }
      rest = rest.drop(while: isSpace)
      guard let quote = rest.popFirst(), let end = rest.firstIndex(of: quote) else { return attributes }
      let key = String(decoding: name, as: UTF8.self)
      if ["width", "height", "viewBox", "preserveAspectRatio"].contains(key), attributes[key] == nil {
        attributes[key] = String(decoding: rest[..<end].prefix(256), as: UTF8.self)
      }
      rest = rest[(end + 1)...]
    }
  }
}

extension String {
  fileprivate var trimmingSpaces: Substring {
    let start = drop(while: \.isWhitespace)
    return start.lastIndex { !$0.isWhitespace }.map { start[...$0] } ?? ""
  }
}
