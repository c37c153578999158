/// Takes a URL apart from left to right and writes it as it will be sent.
struct URLParser {
  /// Offsets of UTF-8 in what is sent, which has at most `ResourceURL.maximumLength` of them.
  struct Parts: Sendable, Hashable {
    let isSecure: Bool
    let authorityStart: UInt16
    let hostStart: UInt16
    let hostEnd: UInt16
    let port: UInt16
    let pathStart: UInt16
    /// Where the question mark is, if there is one.
    let pathEnd: UInt16
    let end: UInt16
    /// Whether `cacheKey` has nothing to normalise.
    let isNormalized: Bool
  }

  private let input: [UInt8]
  private(set) var output: [UInt8] = []
  private var position = 0

  init(_ text: String) throws(ResourceURLError) {
    guard !text.isEmpty else { throw ResourceURLError(.empty, "the URL is empty") }
    guard text.utf8.count <= ResourceURL.maximumLength else {
      throw ResourceURLError(.tooLong, "the URL is over \(ResourceURL.maximumLength) bytes long")
    }
    input = Array(text.utf8)
    output.reserveCapacity(input.count)
  }

  var isUnchanged: Bool { output == input }

  mutating func parse() throws(ResourceURLError) -> Parts {
    if let index = input.firstIndex(where: { $0 < 0x20 || $0 == 0x7F }) {
      let code = String(input[index], radix: 16, uppercase: true)
      throw ResourceURLError(.controlCharacter, "the URL has a control character (0x\(code)) at byte \(index)")
    }
    let scheme = try takeScheme()
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
    let host = try URLHost.normalized(hostAndPort[..<(portMark ?? hostAndPort.endIndex)])
    output += host
    let hostEnd = output.count
    var port = Origin.defaultPort(of: scheme)
    if let portMark, portMark + 1 < hostAndPort.endIndex {
      port = try Self.port(hostAndPort[(portMark + 1)...])
      output += hostAndPort[portMark...]
    }

    let pathStart = output.count
    var queryMark: Int?
    var mayHaveDotSegment = false
    while position < input.count, input[position] != UInt8(ascii: "#") {
      let byte = input[position]
      if byte == UInt8(ascii: "?"), queryMark == nil { queryMark = output.count }
      if byte == UInt8(ascii: "."), output.last == UInt8(ascii: "/") { mayHaveDotSegment = true }
      write(byte, ifNot: Self.mustBeEncoded)
      position += 1
    }
    guard output.count <= ResourceURL.maximumLength else {
      throw ResourceURLError(.tooLong, "the URL is over \(ResourceURL.maximumLength) bytes long once it is encoded")
    }
    return Parts(
      isSecure: scheme == "https", authorityStart: UInt16(authorityStart), hostStart: UInt16(hostStart),
      hostEnd: UInt16(hostEnd), port: UInt16(port), pathStart: UInt16(pathStart),
      pathEnd: UInt16(queryMark ?? output.count), end: UInt16(output.count),
      isNormalized: !mayHaveDotSegment && !output.contains(UInt8(ascii: "%")))
  }

  private mutating func takeScheme() throws(ResourceURLError) -> String {
    guard let colon = input.firstIndex(of: UInt8(ascii: ":")), colon > 0, input[0].isASCIILetter,
      input[..<colon].allSatisfy(Self.isOfScheme)
    else { throw ResourceURLError(.noScheme, "the URL has no scheme; it must begin with http:// or https://") }
    let scheme = input[..<colon].map(\.asciiLowercased)
    let name: String
    switch scheme {
    case Self.http: name = "http"
    case Self.https: name = "https"
    default:
      let shown = String(decoding: scheme.prefix(32), as: UTF8.self)
      throw ResourceURLError(.unsupportedScheme, "the scheme \(shown) is not supported; http, https and data are")
    }
    guard input[colon...].starts(with: Self.authorityMark) else {
      throw ResourceURLError(.noAuthority, "the URL has no // after its scheme")
    }
    output += scheme
    output += Self.authorityMark
    position = colon + Self.authorityMark.count
    return name
  }

  private static let http = Array("http".utf8)
  private static let https = Array("https".utf8)
  private static let authorityMark = Array("://".utf8)

  private mutating func writeUserInfo(_ userInfo: ArraySlice<UInt8>) throws(ResourceURLError) {
    // Programs disagree on whether a backslash ends the host, so that each would go to another one.
    guard !userInfo.contains(UInt8(ascii: "\\")) else {
      throw ResourceURLError(.userInfo, "the URL has a backslash in its user info")
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
    if mustBeEncoded(byte) { PercentEncoding.append(byte, to: &output) } else { output.append(byte) }
  }

  private static func endsAuthority(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
  }

  private static func isOfScheme(_ byte: UInt8) -> Bool {
    byte.isASCIILetter || byte.isASCIIDigit || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-")
      || byte == UInt8(ascii: ".")
  }

  /// What RFC 3986 lets stand nowhere. Brackets stay as they are, as they do in browsers.
  private static func mustBeEncoded(_ byte: UInt8) -> Bool {
    guard byte > 0x20, byte < 0x80 else { return true }
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "^"),
      UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
      return true
    default: return false
    }
  }

  /// Where the colon before the port is; the colons of an IPv6 address stand before its bracket.
  private static func portMark(in hostAndPort: ArraySlice<UInt8>) -> Int? {
    let afterAddress = hostAndPort.lastIndex(of: UInt8(ascii: "]")) ?? hostAndPort.startIndex
    return hostAndPort[afterAddress...].firstIndex(of: UInt8(ascii: ":"))
  }

  private static func port(_ digits: ArraySlice<UInt8>) throws(ResourceURLError) -> Int {
    var port = 0
    for digit in digits {
      guard digit.isASCIIDigit else { throw ResourceURLError(.port, "the port of the URL is not a number") }
      port = min(port * 10 + Int(digit - UInt8(ascii: "0")), 65_536)
    }
    guard (1...65_535).contains(port) else {
      throw ResourceURLError(.port, "the port of the URL is not between 1 and 65535")
    }
    return port
  }
}
