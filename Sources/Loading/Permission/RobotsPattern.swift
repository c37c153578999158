internal import Platform

/// The matching of paths with the patterns of a robots.txt: `*` stands for any bytes, `$` at the end for the end of the
/// path (RFC 9309 section 2.2.3).
enum RobotsPattern {
  /// The bytes with the same percent-encoding for the same characters: letters, digits and `-._~/=` are themselves, and
  /// everything else is encoded. The encoded forms of `/` and `%`, and of `*` in a pattern, stay as they are, because
  /// they are other characters.
  static func normalized(_ bytes: some Collection<UInt8>, keepingAsterisks keepsAsterisks: Bool) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    var index = bytes.startIndex
    while index < bytes.endIndex {
      var byte = bytes[index]
      index = bytes.index(after: index)
      var isEncoded = false
      if byte == UInt8(ascii: "%"), let second = bytes.index(index, offsetBy: 1, limitedBy: bytes.endIndex),
        second < bytes.endIndex, let high = digit(bytes[index]), let low = digit(bytes[second])
      {
        byte = high << 4 | low
        isEncoded = true
        index = bytes.index(after: second)
      }
      let isSpecial =
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "%") || keepsAsterisks && byte == UInt8(ascii: "*")
      if isSpecial ? !isEncoded : isPlain(byte) {
        result.append(byte)
      } else {
        result.append(UInt8(ascii: "%"))
        result.append(hexadecimal(byte >> 4))
        result.append(hexadecimal(byte & 15))
      }
    }
    return result
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"), UInt8(ascii: "="):
      true
    default: false
    }
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  private static func hexadecimal(_ digit: UInt8) -> UInt8 { digit < 10 ? 0x30 + digit : 0x37 + digit }
}

/// A path that is compared with many patterns.
struct RobotsPath {
  private let bytes: [UInt8]
  /// A bit for each pair of neighbouring bytes in the path: most patterns that do not match have another pair.
  private var pairs: [UInt64] = []

  /// - Parameter hasWildcards: whether patterns with `*` will follow.
  init(_ target: String, hasWildcards: Bool) {
    bytes = RobotsPattern.normalized(Array(target.utf8), keepingAsterisks: false)
    guard hasWildcards else { return }
    pairs = [UInt64](repeating: 0, count: 1024)
    for (first, second) in zip(bytes, bytes.dropFirst()) {
      let pair = Int(first) << 8 | Int(second)
      pairs[pair >> 6] |= 1 << UInt64(pair & 63)
    }
  }

  var isRobotsFile: Bool { bytes.elementsEqual("/robots.txt".utf8) }

  /// Whether the path begins with the bytes; is them, if anchored.
  func matches(_ prefix: UnsafeRawBufferPointer, isAnchored: Bool) -> Bool {
    guard isAnchored ? bytes.count == prefix.count : bytes.count >= prefix.count else { return false }
    guard let start = prefix.baseAddress else { return true }
    return bytes.withUnsafeBytes { memcmp($0.baseAddress!, start, prefix.count) == 0 }
  }

  /// Whether the path matches a pattern with asterisks. Takes O(n) in the bytes of both: each part is found at its first
  /// place after the part before, which leaves the most for the others.
  func matches(wildcards pattern: UnsafeRawBufferPointer, isAnchored: Bool) -> Bool {
    let parts = pattern.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false)
    guard let first = parts.first, let last = parts.last, parts.count > 1, bytes.starts(with: first),
      parts.dropFirst().allSatisfy(hasPairs)
    else { return false }
    var rest = bytes[first.count...]
    for part in isAnchored ? parts[1..<(parts.count - 1)] : parts[1...] where !part.isEmpty {
      guard let end = Self.endOfFirst(part, in: rest) else { return false }
      rest = rest[end...]
    }
    return !isAnchored || rest.count >= last.count && rest.suffix(last.count).elementsEqual(last)
  }

  private func hasPairs(of part: Slice<UnsafeRawBufferPointer>) -> Bool {
    zip(part, part.dropFirst()).allSatisfy { first, second in
      let pair = Int(first) << 8 | Int(second)
      return pairs[pair >> 6] & 1 << UInt64(pair & 63) != 0
    }
  }

  /// The search of Knuth, Morris and Pratt.
  private static func endOfFirst(_ part: Slice<UnsafeRawBufferPointer>, in bytes: ArraySlice<UInt8>) -> Int? {
    let part = Array(part)
    guard bytes.count >= part.count else { return nil }
    /// The length of the longest border of each prefix.
    var borders = [Int](repeating: 0, count: part.count)
    var length = 0
    for index in part.indices.dropFirst() {
      while length > 0, part[index] != part[length] { length = borders[length - 1] }
      if part[index] == part[length] { length += 1 }
      borders[index] = length
    }
    length = 0
    for index in bytes.indices {
      while length > 0, bytes[index] != part[length] { length = borders[length - 1] }
      if bytes[index] == part[length] { length += 1 }
      if length == part.count { return index + 1 }
    }
    return nil
  }
}
