/// An absolute `http` or `https` URL as browsers read it, in the form in which it is sent (WHATWG URL).
///
/// Tabs, line breaks and surrounding blanks are dropped, a backslash is a slash, and dot segments are resolved. The
/// scheme and the host are in lower case; an international name is in ASCII (UTS 46). The fragment, a default port and
/// empty user information are removed. Characters that a URL must not have are percent-encoded as UTF-8. All of the
/// worker uses this one form: requests, cache keys, robots.txt, messages.
public struct ResourceURL: Sendable, Hashable {
  /// The longest URL of a host in bytes, both as written and as sent.
  public static let maximumLength = 8192
  /// The longest URL to which a redirect may lead.
  public static let maxFinalLength = Int(UInt16.max)

  /// The URL as sent: encoded and without its fragment.
  public let requestURL: String
  /// Stores the offsets of the parts instead of the parts, to stay small: very many URLs may be waiting.
  private let parts: URLParser.Parts

  public init(_ text: String) throws(ResourceURLError) { try self.init(text, maxLength: Self.maximumLength) }

  /// Parses the URL of a response after redirects, which may be longer than that of a host.
  public init(final text: String) throws(ResourceURLError) { try self.init(text, maxLength: Self.maxFinalLength) }

  private init(_ text: String, maxLength: Int) throws(ResourceURLError) {
    var text = text
    if text.withUTF8({ $0.contains { $0 <= 0x20 } }) { text = Self.withoutBlanks(text) }
    let result = text.withUTF8 { utf8 in
      Result { () throws(ResourceURLError) in
        var parser = URLParser(utf8, maxLength: maxLength)
        return (parts: try parser.parse(), changed: parser.text)
      }
    }
    let (parts, changed) = try result.get()
    self.parts = parts
    requestURL = changed ?? text
  }

  /// Resolves the reference of a redirect against the URL of the response. User information of `base` is not inherited.
  public init(_ reference: String, relativeTo base: ResourceURL) throws(ResourceURLError) {
    var reference = Self.withoutBlanks(reference)
    try self.init(final: reference.withUTF8 { base.absolute($0) } ?? reference)
  }

  /// The URL of a relative reference; nil if the reference is absolute.
  private func absolute(_ reference: UnsafeBufferPointer<UInt8>) -> String? {
    var rest = reference[...]
    if let named = URLParser.scheme(of: reference) {
      rest = reference[(named.endIndex + 1)...]
      let isSame = URLParser.isScheme(named, parts.isSecure ? "https" : "http")
      guard isSame, !rest.starts(with: "//".utf8) else { return nil }
    }
    let slashes = rest.prefix(2).prefix(while: URLParser.isSlash).count
    let authority = "\(scheme)://\(text(parts.hostStart, parts.pathStart))"
    let beginning: String
    switch rest.first {
    case _ where slashes == 2: beginning = "\(scheme):"
    case _ where slashes == 1: beginning = authority
    case nil, UInt8(ascii: "#"): beginning = authority + requestTarget
    case UInt8(ascii: "?"): beginning = authority + text(parts.pathStart, parts.pathEnd)
    default:
      let path = text(parts.pathStart, parts.pathEnd)
      beginning = authority + path[...(path.lastIndex(of: "/") ?? path.startIndex)]
    }
    return beginning + String(decoding: rest, as: UTF8.self)
  }

  /// A text without tabs and line breaks, and without control characters and blanks at its ends.
  private static func withoutBlanks(_ text: String) -> String {
    let inner = text.utf8.drop { $0 <= 0x20 }
    let end = inner.lastIndex { $0 > 0x20 }.map(inner.index(after:)) ?? inner.startIndex
    return String(decoding: inner[..<end].filter { ![0x09, 0x0A, 0x0D].contains($0) }, as: UTF8.self)
  }

  public var origin: Origin { Origin(scheme: scheme, host: host, port: port) }
  public var scheme: String { parts.isSecure ? "https" : "http" }
  public var host: String { text(parts.hostStart, parts.hostEnd) }
  public var port: Int { Int(parts.port) }

  /// `name` or `name:password`, percent-encoded; nil if the URL has none.
  public var userInfo: String? {
    parts.hostStart == parts.authorityStart ? nil : text(parts.authorityStart, parts.hostStart - 1)
  }

  /// `name:password` as HTTP's Basic scheme sends it (RFC 7617), without percent-encoding; nil if the URL has no user
  /// info.
  public var basicCredentials: [UInt8]? {
    guard let userInfo else { return nil }
    let credentials = PercentEncoding.decoded(Array(userInfo.utf8))
    return userInfo.utf8.contains(UInt8(ascii: ":")) ? credentials : credentials + [UInt8(ascii: ":")]
  }

  /// `requestURL` without user info.
  public var withoutUserInfo: String {
    parts.hostStart == parts.authorityStart
      ? requestURL : text(0, parts.authorityStart) + text(parts.hostStart, parts.end)
  }

  /// Path and query as in the request line; at least `/`.
  public var requestTarget: String { text(parts.pathStart, parts.end) }

  /// The URL without user info, query and fragment, as messages and log lines may show it.
  public var redacted: String {
    if parts.hostStart == parts.authorityStart, parts.pathEnd == parts.end { return requestURL }
    return text(0, parts.authorityStart) + text(parts.hostStart, parts.pathEnd)
  }

  /// The cache key: the URL without the query parameters that `ignored` matches, with normalized percent-encoding (RFC
  /// 3986 section 6.2.2).
  ///
  /// The order of the other parameters is kept. The `?` is removed if all parameters are.
  public func cacheKey(ignoring ignored: QueryNameFilter = .none) -> String {
    let hasQuery = parts.pathEnd < parts.end
    guard hasQuery && !ignored.isEmpty || !parts.isNormalized else { return requestURL }
    let bytes = Array(requestURL.utf8)
    let pathEnd = Int(parts.pathEnd)
    var key = URLNormalization.percentEncoding(of: bytes[..<pathEnd])
    if hasQuery, let query = ignored.filtered(bytes[(pathEnd + 1)...]) {
      key.append(UInt8(ascii: "?"))
      key += URLNormalization.percentEncoding(of: query)
    }
    return String(decoding: key, as: UTF8.self)
  }

  private func text(_ start: UInt16, _ end: UInt16) -> String {
    let bytes = requestURL.utf8
    let first = bytes.index(bytes.startIndex, offsetBy: Int(start))
    return String(decoding: bytes[first..<bytes.index(first, offsetBy: Int(end - start))], as: UTF8.self)
  }
}

/// The reason why a text is not a URL that can be loaded. `description` quotes nothing secret, so an error may show it.
public struct ResourceURLError: Error, Hashable, CustomStringConvertible {
  public enum Kind: Sendable, Hashable {
    case empty, tooLong, noScheme, unsupportedScheme, userInfo, host, port
  }

  public let kind: Kind
  public let description: String

  init(_ kind: Kind, _ description: String) { (self.kind, self.description) = (kind, description) }
}

/// The origin of a URL (RFC 6454 section 4): limits, back-off and credentials apply per origin.
public struct Origin: Sendable, Hashable, CustomStringConvertible {
  /// `http` or `https`.
  public let scheme: String
  /// In lower case; an IPv6 address is in brackets.
  public let host: String
  /// 1 to 65535.
  public let port: Int

  public init(scheme: String, host: String, port: Int) {
    (self.scheme, self.host, self.port) = (scheme, host, port)
  }

  /// `http://host:port`, without a default port.
  public var description: String {
    port == Self.defaultPort(of: scheme) ? "\(scheme)://\(host)" : "\(scheme)://\(host):\(port)"
  }

  /// Host and port, always with the port: the address of a connection.
  public var hostAndPort: String { "\(host):\(port)" }

  /// Whether the host is an IP address.
  public var isAddress: Bool { Self.isAddress(host) }

  /// Whether a host in lower case is in brackets, or has a number as its last label (WHATWG URL, "ends in a number").
  public static func isAddress(_ host: String) -> Bool { host.hasPrefix("[") || URLHost.endsInNumber(host.utf8) }

  static func defaultPort(of scheme: String) -> Int { scheme == "https" ? 443 : 80 }
}
