/// Replaces the secrets in URLs: the user information, and if asked the values of the query and the fragment.
struct URLRedaction: Sendable {
  let redactsQueries: Bool

  private static let schemeEnd = Array("://".utf8)

  /// The text with the secrets of each URL in it replaced.
  func redact(_ text: String, _ placeholders: inout Placeholders) -> String {
    let bytes = Array(text.utf8)
    guard bytes.contains(UInt8(ascii: ":")), !isDataURL(bytes) else { return text }
    // A URL extends to the end of the text: the worker encodes characters that a URL must not have.
    let isURL = Self.find(Self.schemeEnd, in: bytes, from: 0).map { bytes[..<$0].allSatisfy(Self.isOfScheme) } ?? false
    var result: [UInt8] = []
    var position = 0
    while let mark = Self.find(Self.schemeEnd, in: bytes, from: position) {
      let authority = mark + Self.schemeEnd.count
      result += bytes[position..<authority]
      position = authority
      let end = isURL ? bytes.count : bytes[authority...].firstIndex(where: Self.endsURL) ?? bytes.count
      redactURL(bytes, &position, end, into: &result, &placeholders)
    }
    if position == 0 { return text }
    return String(decoding: result + bytes[position...], as: UTF8.self)
  }

  /// Copies a URL from its authority to `end`.
  private func redactURL(
    _ bytes: [UInt8], _ position: inout Int, _ end: Int, into result: inout [UInt8], _ placeholders: inout Placeholders
  ) {
    let authorityEnd = bytes[position..<end].firstIndex(where: Self.endsAuthority) ?? end
    if let at = bytes[position..<authorityEnd].lastIndex(of: UInt8(ascii: "@")) {
      result += placeholder(bytes[position..<at], &placeholders)
      position = at
    }
    guard redactsQueries, let mark = bytes[authorityEnd..<end].firstIndex(where: Self.endsPath) else {
      result += bytes[position..<end]
      position = end
      return
    }
    result += bytes[position..<mark]
    result += query(bytes[mark..<end], &placeholders)
    position = end
  }

  /// The text with the values after its first `?` or `#` replaced, as for a relative URL.
  func redactRelative(_ text: String, _ placeholders: inout Placeholders) -> String {
    let bytes = Array(text.utf8)
    guard redactsQueries, let mark = bytes.firstIndex(where: Self.endsPath) else { return text }
    return String(decoding: bytes[..<mark] + query(bytes[mark...], &placeholders), as: UTF8.self)
  }

  /// The text with everything before its last `@` replaced, as for a proxy without a scheme.
  func redactUserInfo(_ text: String, _ placeholders: inout Placeholders) -> String {
    let bytes = Array(text.utf8)
    guard let at = bytes.lastIndex(of: UInt8(ascii: "@")) else { return text }
    return String(decoding: placeholder(bytes[..<at], &placeholders) + bytes[at...], as: UTF8.self)
  }

  /// A query and a fragment with their marks. The names of parameters remain, since options may select them.
  private func query(_ bytes: ArraySlice<UInt8>, _ placeholders: inout Placeholders) -> [UInt8] {
    let fragment = bytes.firstIndex(of: UInt8(ascii: "#")) ?? bytes.endIndex
    var result: [UInt8] = []
    if bytes.startIndex < fragment {
      result.append(bytes[bytes.startIndex])
      let parameters = bytes[(bytes.startIndex + 1)..<fragment]
        .split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
      for (number, parameter) in parameters.enumerated() {
        if number > 0 { result.append(UInt8(ascii: "&")) }
        let value = parameter.firstIndex(of: UInt8(ascii: "=")).map { $0 + 1 } ?? parameter.startIndex
        result += parameter[..<value] + placeholder(parameter[value...], &placeholders)
      }
    }
    if fragment < bytes.endIndex {
      result += [UInt8(ascii: "#")] + placeholder(bytes[(fragment + 1)...], &placeholders)
    }
    return result
  }

  private func placeholder(_ secret: ArraySlice<UInt8>, _ placeholders: inout Placeholders) -> [UInt8] {
    Array(placeholders.placeholder(for: String(decoding: secret, as: UTF8.self)).utf8)
  }

  // MARK: - Characters

  private func isDataURL(_ bytes: [UInt8]) -> Bool {
    bytes.prefix(5).elementsEqual("data:".utf8) { $0 | 0x20 == $1 | 0x20 }
  }

  private static func isOfScheme(_ byte: UInt8) -> Bool { byte > 0x20 && !"\"'<>()/".utf8.contains(byte) }

  private static func endsAuthority(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "/") || endsPath(byte) }

  private static func endsPath(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") }

  /// Whether the byte ends a URL within a sentence.
  private static func endsURL(_ byte: UInt8) -> Bool { byte <= 0x20 || "\"'<>()".utf8.contains(byte) }

  static func find(_ pattern: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
    guard let first = pattern.first else { return nil }
    var index = start
    while index + pattern.count <= bytes.count {
      guard let found = bytes[index...].firstIndex(of: first), found + pattern.count <= bytes.count else { return nil }
      if bytes[found..<(found + pattern.count)].elementsEqual(pattern) { return found }
      index = found + 1
    }
    return nil
  }
}
