/// An absolute `http` or `https` URL, validated and encoded so that it can be sent.
///
/// The spelling is kept as far as it is allowed. The scheme and the host are lowercased; the fragment, an empty port
/// and an empty user info are removed; characters that a URL must not have (spaces, `"<>\^`{|}`, everything beyond
/// ASCII) are percent-encoded as UTF-8. Nothing is trimmed and no error is corrected: control characters, a missing
/// host or a port out of range are refused.
public struct ResourceURL: Sendable, Hashable {
  /// The longest URL in bytes, both as written and as sent.
  public static let maximumLength = 8192

  /// The URL as sent: encoded and without its fragment.
  public let requestURL: String
  /// Stores the offsets of the parts instead of the parts, to stay small: very many URLs may be waiting.
  private let parts: URLParser.Parts

  public init(_ text: String) throws(ResourceURLError) {
    var text = text
    let result = text.withUTF8 { utf8 in
      Result { () throws(ResourceURLError) in
        var parser = URLParser(utf8)
        return (parts: try parser.parse(), changed: parser.text)
      }
    }
    let (parts, changed) = try result.get()
    self.parts = parts
    requestURL = changed ?? text
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
  public var requestTarget: String {
    let target = text(parts.pathStart, parts.end)
    return parts.pathStart == parts.pathEnd ? "/" + target : target
  }

  /// The URL without user info, query and fragment, as messages and log lines may show it.
  public var redacted: String {
    if parts.hostStart == parts.authorityStart, parts.pathEnd == parts.end { return requestURL }
    return text(0, parts.authorityStart) + text(parts.hostStart, parts.pathEnd)
  }

  /// The cache key: the URL without the query parameters that `ignored` matches, normalized by RFC 3986 section 6.2.2
  /// (case, percent-encoding, dot segments) and no further.
  ///
  /// The order of the other parameters is kept. The `?` is removed if all parameters are.
  public func cacheKey(ignoring ignored: QueryNameFilter = .none) -> String {
    let hasQuery = parts.pathEnd < parts.end
    guard hasQuery && !ignored.isEmpty || !parts.isNormalized else { return requestURL }
    let bytes = Array(requestURL.utf8)
    let (pathStart, pathEnd) = (Int(parts.pathStart), Int(parts.pathEnd))
    var key = URLNormalization.percentEncoding(of: bytes[..<pathStart])
    key += URLNormalization.withoutDotSegments(URLNormalization.percentEncoding(of: bytes[pathStart..<pathEnd]))
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
