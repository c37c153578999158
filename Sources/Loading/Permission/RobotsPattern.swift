/// A path pattern of a robots.txt: `*` stands for any bytes, `$` at the end for the end of the path (RFC 9309 section
/// 2.2.3).
struct RobotsPattern: Sendable {
  /// The normalised pattern between its asterisks.
  private let parts: [[UInt8]]
  private let isAnchored: Bool
  /// The number of bytes of the normalised pattern, which decides between two patterns that match.
  let length: Int

  /// Nil for an empty pattern.
  init?(_ text: String) {
    var bytes = Array(text.utf8)
    // A rule that is written as a URL is a path that begins with it.
    if text.hasPrefix("http://") || text.hasPrefix("https://") { bytes.insert(UInt8(ascii: "/"), at: 0) }
    isAnchored = bytes.last == UInt8(ascii: "$")
    if isAnchored { bytes.removeLast() }
    let pattern = Self.normalized(bytes, keepingAsterisks: true)
    length = pattern.count + (isAnchored ? 1 : 0)
    guard length > 0 else { return nil }
    parts = pattern.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false).map(Array.init)
  }

  /// - Parameter path: as `normalized` gives it.
  func matches(_ path: [UInt8]) -> Bool {
    guard path.starts(with: parts[0]) else { return false }
    var rest = path[parts[0].count...]
    guard parts.count > 1 else { return !isAnchored || rest.isEmpty }
    for part in parts[1..<(parts.count - 1)] where !part.isEmpty {
      guard let end = Self.endOfFirst(part, in: rest) else { return false }
      rest = rest[end...]
    }
    let last = parts[parts.count - 1]
    if isAnchored { return rest.count >= last.count && rest.suffix(last.count).elementsEqual(last) }
    return last.isEmpty || Self.endOfFirst(last, in: rest) != nil
  }

  private static func endOfFirst(_ part: [UInt8], in bytes: ArraySlice<UInt8>) -> Int? {
    guard bytes.count >= part.count else { return nil }
    for start in bytes.startIndex...(bytes.endIndex - part.count)
    where bytes[start] == part[0] && bytes[start...].starts(with: part) {
      return start + part.count
    }
    return nil
  }

  /// The bytes with the same percent-encoding for the same characters: letters, digits and `-._~/=` are themselves, and
  /// everything else is encoded. The encoded forms of `/` and `%`, and of `*` in a pattern, stay as they are, because
  /// they are other characters.
  static func normalized(_ bytes: [UInt8], keepingAsterisks keepsAsterisks: Bool) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    var index = 0
    while index < bytes.count {
      var byte = bytes[index]
      var isEncoded = false
      if byte == UInt8(ascii: "%"), index + 2 < bytes.count, let high = digit(bytes[index + 1]),
        let low = digit(bytes[index + 2])
      {
        byte = high << 4 | low
        isEncoded = true
        index += 2
      }
      index += 1
      let isSpecial =
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "%") || keepsAsterisks && byte == UInt8(ascii: "*")
      if isSpecial ? !isEncoded : isPlain(byte) {
        result.append(byte)
      } else {
        result += [UInt8(ascii: "%"), hexadecimal(byte >> 4), hexadecimal(byte & 15)]
      }
    }
    return result
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "-._~=".utf8.contains(byte)
    }
  }

  private static func digit(_ byte: UInt8) -> UInt8? { Character(UnicodeScalar(byte)).hexDigitValue.map(UInt8.init) }

  private static func hexadecimal(_ digit: UInt8) -> UInt8 { digit < 10 ? 0x30 + digit : 0x37 + digit }
}
