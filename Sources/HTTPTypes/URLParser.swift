/// Parses a URL from left to right and writes it as it will be sent.
struct URLParser {
  /// UTF-8 offsets in the URL as sent, which is not longer than `ResourceURL.maximumLength`.
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
  private var output: Rewriting
  private var position = 0

  /// - Parameter input: the URL's UTF-8, which must stay valid until `text` has been read.
  init(_ input: UnsafeBufferPointer<UInt8>) {
    self.input = input
    output = Rewriting(of: input)
  }

  /// The URL as it will be sent; nil if that equals the input.
  var text: String? {
    output.isWhole ? nil : output.withBytes { String(decoding: $0, as: UTF8.self) }
  }

  mutating func parse() throws(ResourceURLError) -> Parts {
    guard !input.isEmpty else { throw ResourceURLError(.empty, "the URL must not be empty") }
    guard input.count <= ResourceURL.maximumLength else {
      throw ResourceURLError(.tooLong, "the URL must not be longer than \(ResourceURL.maximumLength) bytes")
    }
    if let index = input.firstIndex(where: { $0 < 0x20 || $0 == 0x7F }) {
      let code = String(input[index], radix: 16, uppercase: true)
      throw ResourceURLError(.controlCharacter, "the URL must not have control characters (0x\(code) at byte \(index))")
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
    var port = isSecure ? 443 : 80
    if let portMark, portMark + 1 < hostAndPort.endIndex {
      port = try Self.port(hostAndPort[(portMark + 1)...])
      for byte in hostAndPort[portMark...] { output.append(byte) }
    }

    let pathStart = output.count
    var queryMark: Int?
    var mayHaveDotSegment = false
    while position < input.count, input[position] != UInt8(ascii: "#") {
      let byte = input[position]
      if byte == UInt8(ascii: "?"), queryMark == nil { queryMark = output.count }
      if byte == UInt8(ascii: "."), input[position - 1] == UInt8(ascii: "/") { mayHaveDotSegment = true }
      write(byte, ifNot: Self.mustBeEncoded)
      position += 1
    }
    guard output.count <= ResourceURL.maximumLength else {
      throw ResourceURLError(
        .tooLong, "the URL must not be longer than \(ResourceURL.maximumLength) bytes when encoded")
    }
    return Parts(
      isSecure: isSecure, authorityStart: UInt16(authorityStart), hostStart: UInt16(hostStart),
      hostEnd: UInt16(hostEnd), port: UInt16(port), pathStart: UInt16(pathStart),
      pathEnd: UInt16(queryMark ?? output.count), end: UInt16(output.count),
      isNormalized: !mayHaveDotSegment && !output.hasPercentSign)
  }

  /// Returns whether the scheme is `https`.
  private mutating func consumeScheme() throws(ResourceURLError) -> Bool {
    guard let colon = input.firstIndex(of: UInt8(ascii: ":")), colon > 0, input[0].isASCIILetter,
      input[..<colon].allSatisfy(Self.isOfScheme)
    else { throw ResourceURLError(.noScheme, "the URL must begin with http:// or https://") }
    let isSecure = Self.isScheme(input[..<colon], "https")
    guard isSecure || Self.isScheme(input[..<colon], "http") else {
      let shown = String(decoding: input[..<colon].prefix(32).map(\.asciiLowercased), as: UTF8.self)
      throw ResourceURLError(.unsupportedScheme, "the scheme of the URL must be http, https or data, not \(shown)")
    }
    position = colon + 3
    guard input.count >= position, input[colon + 1] == UInt8(ascii: "/"), input[colon + 2] == UInt8(ascii: "/") else {
      throw ResourceURLError(.noAuthority, "the URL must have // after its scheme")
    }
    for byte in input[..<position] { output.append(byte.asciiLowercased) }
    return isSecure
  }

  private static func isScheme(_ scheme: Slice<UnsafeBufferPointer<UInt8>>, _ name: StaticString) -> Bool {
    scheme.count == name.utf8CodeUnitCount
      && scheme.elementsEqual(UnsafeBufferPointer(start: name.utf8Start, count: scheme.count)) {
        $0.asciiLowercased == $1
      }
  }

  private mutating func writeUserInfo(_ userInfo: Slice<UnsafeBufferPointer<UInt8>>) throws(ResourceURLError) {
    // Programs disagree on whether a backslash ends the host, so they would connect to different hosts.
    guard !userInfo.contains(UInt8(ascii: "\\")) else {
      throw ResourceURLError(.userInfo, "the user info of the URL must not have a backslash")
    }
    for mark in userInfo.indices where userInfo[mark] == UInt8(ascii: "%") {
      if let byte = PercentEncoding.decodedByte(at: mark, of: userInfo), byte < 0x20 || byte == 0x7F {
        throw ResourceURLError(.userInfo, "the user info of the URL must not have control characters")
      }
    }
    guard !userInfo.isEmpty else { return }
    for byte in userInfo {
      write(byte) {
        Self.mustBeEncoded($0) || $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "]")
      }
    }
    output.append(UInt8(ascii: "@"))
  }

  private mutating func write(_ byte: UInt8, ifNot mustBeEncoded: (UInt8) -> Bool) {
    if mustBeEncoded(byte) { output.append(percentEncoding: byte) } else { output.append(byte) }
  }

  private static func endsAuthority(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
  }

  private static func isOfScheme(_ byte: UInt8) -> Bool {
    byte.isASCIILetter || byte.isASCIIDigit || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-")
      || byte == UInt8(ascii: ".")
  }

  /// Whether RFC 3986 forbids the character everywhere. Brackets are left unencoded, as in browsers.
  private static func mustBeEncoded(_ byte: UInt8) -> Bool {
    guard byte > 0x20, byte < 0x80 else { return true }
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "^"),
      UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
      return true
    default: return false
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
  private(set) var hasPercentSign = false

  init(of original: UnsafeBufferPointer<UInt8>) { self.original = original }

  /// Whether the text equals the whole original.
  var isWhole: Bool { changed == nil && count == original.count }

  @inline(__always)
  mutating func append(_ byte: UInt8) {
    if byte == UInt8(ascii: "%") { hasPercentSign = true }
    if changed != nil || count == original.count || original[count] != byte { change(byte) }
    count += 1
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

  func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    changed?.withUnsafeBufferPointer(body) ?? body(UnsafeBufferPointer(rebasing: original[..<count]))
  }
}
