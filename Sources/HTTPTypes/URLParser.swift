/// Parses an absolute URL from left to right and writes it as it will be sent (WHATWG URL section 4.4, "basic URL
/// parser", for `http` and `https`).
struct URLParser {
  /// UTF-8 offsets in the URL as sent, which is not longer than `ResourceURL.maxFinalLength`.
  struct Parts: Sendable, Hashable {
    let isSecure: Bool
    let authorityStart: UInt16
    let hostStart: UInt16
    let hostEnd: UInt16
    let port: UInt16
    let pathStart: UInt16
    /// Offset of the question mark, or of the end if there is none.
    let pathEnd: UInt16
    let end: UInt16
    /// Whether `cacheKey` has nothing to normalize.
    let isNormalized: Bool
  }

  private let input: UnsafeBufferPointer<UInt8>
  private let maxLength: Int
  private var output: Rewriting
  private var position = 0

  /// - Parameter input: the URL's UTF-8 without tabs, line breaks and surrounding blanks, which must stay valid until
  ///   `text` has been read.
  init(_ input: UnsafeBufferPointer<UInt8>, maxLength: Int) {
    (self.input, self.maxLength) = (input, maxLength)
    output = Rewriting(of: input)
  }

  /// The URL as it will be sent; nil if that equals the input.
  var text: String? {
    output.isWhole ? nil : output.withBytes { String(decoding: $0, as: UTF8.self) }
  }

  mutating func parse() throws(ResourceURLError) -> Parts {
    guard !input.isEmpty else { throw ResourceURLError(.empty, "the URL must not be empty") }
    guard input.count <= maxLength else {
      throw ResourceURLError(.tooLong, "the URL must not be longer than \(maxLength) bytes")
    }
    let isSecure = try consumeScheme()
    let authorityStart = output.count
    let authority = input[position..<(input[position...].firstIndex(where: Self.endsAuthority) ?? input.count)]
    position = authority.endIndex

    var hostAndPort = authority
    if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
      hostAndPort = authority[(at + 1)...]
      try writeUserInfo(authority[..<at])
    }
    let hostStart = output.count
    let portMark = Self.portMark(in: hostAndPort)
    try URLHost.normalized(hostAndPort[..<(portMark ?? hostAndPort.endIndex)]) { output.append($0) }
    let hostEnd = output.count
    let defaultPort = isSecure ? 443 : 80
    var port = defaultPort
    if let portMark, portMark + 1 < hostAndPort.endIndex {
      port = try Self.port(hostAndPort[(portMark + 1)...])
      if port != defaultPort { for byte in ":\(port)".utf8 { output.append(byte) } }
    }

    let pathStart = output.count
    writePath()
    let pathEnd = output.count
    writeQuery()
    guard output.count <= maxLength else {
      throw ResourceURLError(.tooLong, "the URL must not be longer than \(maxLength) bytes when encoded")
    }
    return Parts(
      isSecure: isSecure, authorityStart: UInt16(authorityStart), hostStart: UInt16(hostStart),
      hostEnd: UInt16(hostEnd), port: UInt16(port), pathStart: UInt16(pathStart), pathEnd: UInt16(pathEnd),
      end: UInt16(output.count), isNormalized: output.withBytes { !$0.contains(UInt8(ascii: "%")) })
  }

  /// The scheme at the beginning of a reference, without its colon; nil if there is none.
  static func scheme(of reference: UnsafeBufferPointer<UInt8>) -> Slice<UnsafeBufferPointer<UInt8>>? {
    guard let colon = reference.firstIndex(of: UInt8(ascii: ":")), colon > 0, reference[0].isASCIILetter,
      reference[..<colon].allSatisfy(isOfScheme)
    else { return nil }
    return reference[..<colon]
  }

  /// Returns whether the scheme is `https`. As in browsers, any number of slashes and backslashes may follow.
  private mutating func consumeScheme() throws(ResourceURLError) -> Bool {
    guard let scheme = Self.scheme(of: input) else {
      throw ResourceURLError(.noScheme, "the URL must begin with http:// or https://")
    }
    let isSecure = Self.isScheme(scheme, "https")
    guard isSecure || Self.isScheme(scheme, "http") else {
      let shown = String(decoding: scheme.prefix(32).map(\.asciiLowercased), as: UTF8.self)
      throw ResourceURLError(.unsupportedScheme, "the scheme of the URL must be http, https or data, not \(shown)")
    }
    position = input[(scheme.endIndex + 1)...].firstIndex { !Self.isSlash($0) } ?? input.endIndex
    output.append(isSecure ? "https://" : "http://")
    return isSecure
  }

  static func isScheme(_ scheme: Slice<UnsafeBufferPointer<UInt8>>, _ name: StaticString) -> Bool {
    scheme.count == name.utf8CodeUnitCount
      && scheme.elementsEqual(UnsafeBufferPointer(start: name.utf8Start, count: scheme.count)) {
        $0.asciiLowercased == $1
      }
  }

  private mutating func writeUserInfo(_ userInfo: Slice<UnsafeBufferPointer<UInt8>>) throws(ResourceURLError) {
    if PercentEncoding.decoded(userInfo).contains(where: { $0 < 0x20 || $0 == 0x7F }) {
      throw ResourceURLError(.userInfo, "the user info of the URL must not have control characters")
    }
    let colon = userInfo.firstIndex(of: UInt8(ascii: ":"))
    guard userInfo.count > (colon == nil ? 0 : 1) else { return }
    for index in userInfo.indices {
      let byte = userInfo[index]
      if Self.isEncodedInUserInfo(byte), index != colon {
        output.append(percentEncoding: byte)
      } else {
        output.append(byte)
      }
    }
    output.append(UInt8(ascii: "@"))
  }

  /// Writes the path without its dot segments. A backslash is a slash.
  private mutating func writePath() {
    let start = output.count
    output.append(UInt8(ascii: "/"))
    if position < input.count, Self.isSlash(input[position]) { position += 1 }
    var segment = output.count
    while true {
      keepPlain()
      let byte = position < input.count ? input[position] : UInt8(ascii: "#")
      let isEnd = byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
      if isEnd || Self.isSlash(byte) {
        let dots = dotCount(from: segment)
        if dots > 0 {
          output.truncate(to: segment)
          if dots == 2 { removeLastSegment(of: start) }
        } else if !isEnd {
          output.append(UInt8(ascii: "/"))
        }
        if isEnd { return }
        segment = output.count
      } else if Self.isEncodedInPath(byte) {
        output.append(percentEncoding: byte)
      } else {
        output.append(byte)
      }
      position += 1
    }
  }

  /// 1 or 2 if the rest of the output is a segment of one or two dots, which may be percent-encoded; otherwise 0.
  private func dotCount(from segment: Int) -> Int {
    guard (1...6).contains(output.count - segment) else { return 0 }
    var (index, dots) = (segment, 0)
    while index < output.count {
      if output[index] == UInt8(ascii: ".") {
        index += 1
      } else if index + 2 < output.count, output[index] == UInt8(ascii: "%"), output[index + 1] == UInt8(ascii: "2"),
        output[index + 2].asciiLowercased == UInt8(ascii: "e")
      {
        index += 3
      } else {
        return 0
      }
      dots += 1
    }
    return dots <= 2 ? dots : 0
  }

  /// Removes the last segment of a path that ends in a slash, but not the slash at the path's start.
  private mutating func removeLastSegment(of start: Int) {
    guard output.count - 1 > start else { return }
    var end = output.count - 1
    while output[end - 1] != UInt8(ascii: "/") { end -= 1 }
    output.truncate(to: end)
  }

  /// Writes the query with its question mark, up to the fragment.
  private mutating func writeQuery() {
    while true {
      keepPlain()
      guard position < input.count, input[position] != UInt8(ascii: "#") else { return }
      let byte = input[position]
      if Self.isEncodedInQuery(byte) { output.append(percentEncoding: byte) } else { output.append(byte) }
      position += 1
    }
  }

  /// Writes the bytes up to the next that may need a change or end a segment. Several times as fast as byte by byte.
  private mutating func keepPlain() {
    guard output.count == position, let count = output.keep(while: \.isUnreserved) else { return }
    position += count
  }

  static func isSlash(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\") }

  private static func endsAuthority(_ byte: UInt8) -> Bool {
    isSlash(byte) || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
  }

  private static func isOfScheme(_ byte: UInt8) -> Bool {
    byte.isASCIILetter || byte.isASCIIDigit || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-")
      || byte == UInt8(ascii: ".")
  }

  /// The "special-query percent-encode set".
  private static func isEncodedInQuery(_ byte: UInt8) -> Bool {
    guard byte > 0x20, byte < 0x7F else { return true }
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: "<"), UInt8(ascii: ">"): return true
    default: return false
    }
  }

  /// The "path percent-encode set".
  private static func isEncodedInPath(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "^"), UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "}"): true
    case UInt8(ascii: "'"): false
    default: isEncodedInQuery(byte)
    }
  }

  /// The "userinfo percent-encode set". The separators of a URL are not among these bytes.
  private static func isEncodedInUserInfo(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: ":"), UInt8(ascii: ";"), UInt8(ascii: "="), UInt8(ascii: "@"), UInt8(ascii: "["),
      UInt8(ascii: "]"), UInt8(ascii: "|"):
      true
    default: isEncodedInPath(byte)
    }
  }

  /// The index of the colon before the port. The colons of an IPv6 address are before its bracket.
  private static func portMark(in hostAndPort: Slice<UnsafeBufferPointer<UInt8>>) -> Int? {
    let afterAddress = hostAndPort.lastIndex(of: UInt8(ascii: "]")) ?? hostAndPort.startIndex
    return hostAndPort[afterAddress...].firstIndex(of: UInt8(ascii: ":"))
  }

  private static func port(_ digits: Slice<UnsafeBufferPointer<UInt8>>) throws(ResourceURLError) -> Int {
    var port = 0
    for digit in digits {
      guard digit.isASCIIDigit else { throw ResourceURLError(.port, "the port of the URL must be a number") }
      port = min(port * 10 + Int(digit - UInt8(ascii: "0")), 65_536)
    }
    guard (1...65_535).contains(port) else {
      throw ResourceURLError(.port, "the port of the URL must be from 1 to 65535")
    }
    return port
  }
}

/// A text that is written from its beginning. It allocates no memory while it equals the beginning of the original
/// text, as with a URL that needs no change.
private struct Rewriting {
  private let original: UnsafeBufferPointer<UInt8>
  /// nil while the text equals the first `count` bytes of the original.
  private var changed: [UInt8]?
  private(set) var count = 0

  init(of original: UnsafeBufferPointer<UInt8>) { self.original = original }

  /// Whether the text equals the whole original.
  var isWhole: Bool { changed == nil && count == original.count }

  @inline(__always)
  mutating func append(_ byte: UInt8) {
    if changed != nil || count == original.count || original[count] != byte { change(byte) }
    count += 1
  }

  /// Appends the bytes that follow in the original. Returns their number; nil if the text is not its beginning.
  @inline(__always)
  mutating func keep(while isKept: (UInt8) -> Bool) -> Int? {
    guard changed == nil else { return nil }
    let kept = original[count...].prefix(while: isKept).count
    count += kept
    return kept
  }

  @inline(never)
  private mutating func change(_ byte: UInt8) {
    var bytes = changed.take() ?? Array(original[..<count])
    bytes.append(byte)
    changed = bytes
  }

  mutating func append(percentEncoding byte: UInt8) {
    for byte in PercentEncoding.encoded(byte) { append(byte) }
  }

  mutating func append(_ text: StaticString) {
    for byte in UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount) { append(byte) }
  }

  subscript(_ index: Int) -> UInt8 { changed?[index] ?? original[index] }

  /// Removes all after the first `count` bytes.
  mutating func truncate(to count: Int) {
    changed?.removeSubrange(count...)
    self.count = count
  }

  func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    changed?.withUnsafeBufferPointer(body) ?? body(UnsafeBufferPointer(rebasing: original[..<count]))
  }
}

enum URLNormalization {
  /// Decodes unreserved characters, and writes the digits of all others in upper case (RFC 3986 sections 6.2.2.1 and
  /// 6.2.2.2), which never changes the resource.
  static func percentEncoding(of bytes: ArraySlice<UInt8>) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var index = bytes.startIndex
    while index < bytes.endIndex {
      let byte = bytes[index]
      if byte == UInt8(ascii: "%"), let decoded = PercentEncoding.decodedByte(at: index, of: bytes) {
        // A decoded digit after a literal `%` would change its meaning.
        let completesEscape = decoded.hexadecimalValue != nil && output.suffix(2).contains(UInt8(ascii: "%"))
        if decoded.isUnreserved, !completesEscape {
          output.append(decoded)
        } else {
          output += PercentEncoding.encoded(decoded)
        }
        index += 3
      } else {
        output.append(byte)
        index += 1
      }
    }
    return output
  }
}
