/// An absolute `http` or `https` URL, checked and encoded so that it can be sent.
///
/// Spelling is kept where it is allowed: only the scheme and the host go to lower case, the fragment goes away, an
/// empty port and user info go away, and what may not stand in a URL (spaces, `"<>\^`{|}`, everything beyond ASCII) is
/// percent-encoded as UTF-8. Nothing is trimmed and no error is mended: control characters, a missing host or a port
/// out of range are refused.
public struct ResourceURL: Sendable, Hashable {
  /// The longest URL, in bytes, as given and as sent.
  public static let maximumLength = 8192

  /// What is sent: the URL as given less its fragment, encoded.
  public let requestURL: String
  /// Small, since very many URLs may be waiting: where its parts begin instead of the parts.
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

  /// `name` or `name:password`, percent-encoded, where the URL has it.
  public var userInfo: String? {
    parts.hostStart == parts.authorityStart ? nil : text(parts.authorityStart, parts.hostStart - 1)
  }

  /// Path and query as the request line has them; at least `/`.
  public var requestTarget: String {
    let target = text(parts.pathStart, parts.end)
    return parts.pathStart == parts.pathEnd ? "/" + target : target
  }

  /// The URL without user info, query and fragment: what messages and log lines may show.
  public var redacted: String { text(0, parts.authorityStart) + text(parts.hostStart, parts.pathEnd) }

  /// What the cache knows the resource by: the URL less the query parameters that `ignored` names, with the
  /// normalisation of RFC 3986 section 6.2.2 (case, percent-encoding, dot segments) and no other.
  ///
  /// The order of the other parameters is kept; `?` goes away when none is left of those there were.
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
