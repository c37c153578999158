/// An absolute `http` or `https` URL, checked and encoded so that it can be sent.
///
/// Spelling is kept where it is allowed: only the scheme and the host go to lower case, the fragment goes away, an empty
/// port and user info go away, and what may not stand in a URL (spaces, `"<>\^`{|}`, everything beyond ASCII) is
/// percent-encoded as UTF-8. Nothing is trimmed and no error is mended: control characters, a missing host or a port
/// out of range are refused.
public struct ResourceURL: Sendable, Hashable {
  /// The longest URL, in bytes, as given and as sent.
  public static let maximumLength = 8192

  /// What is sent: the URL as given less its fragment, encoded.
  public let requestURL: String
  public let origin: Origin
  /// UTF-8 offsets in `requestURL`.
  private let authorityStart: Int
  private let hostStart: Int
  private let pathStart: Int
  private let queryMark: Int?
  /// Whether `cacheKey` has nothing to normalise.
  private let isNormalized: Bool

  public init(_ text: String) throws(ResourceURLError) {
    var parser = try URLParser(text)
    let parts = try parser.parse()
    requestURL = parser.isUnchanged ? text : String(decoding: parser.output, as: UTF8.self)
    origin = parts.origin
    (authorityStart, hostStart) = (parts.authorityStart, parts.hostStart)
    (pathStart, queryMark, isNormalized) = (parts.pathStart, parts.queryMark, parts.isNormalized)
    guard requestURL.utf8.count <= Self.maximumLength else {
      throw ResourceURLError(.tooLong, "the URL is over \(Self.maximumLength) bytes long once it is encoded")
    }
  }

  public var scheme: String { origin.scheme }
  public var host: String { origin.host }
  public var port: Int { origin.port }

  /// `name` or `name:password`, percent-encoded, where the URL has it.
  public var userInfo: String? {
    hostStart == authorityStart ? nil : text(authorityStart..<hostStart - 1)
  }

  /// Path and query as the request line has them; at least `/`.
  public var requestTarget: String {
    let target = text(pathStart..<requestURL.utf8.count)
    return pathStart == (queryMark ?? requestURL.utf8.count) ? "/" + target : target
  }

  /// The URL without user info, query and fragment: what messages and log lines may show.
  public var redacted: String {
    text(0..<authorityStart) + text(hostStart..<(queryMark ?? requestURL.utf8.count))
  }

  /// What the cache knows the resource by: the URL less the query parameters that `ignored` names, with the
  /// normalisation of RFC 3986 section 6.2.2 (case, percent-encoding, dot segments) and no other.
  ///
  /// The order of the other parameters is kept; `?` goes away when none is left of those there were.
  public func cacheKey(ignoring ignored: QueryNameFilter = .none) -> String {
    let mayDropParameters = queryMark != nil && !ignored.isEmpty
    guard mayDropParameters || !isNormalized else { return requestURL }
    let bytes = Array(requestURL.utf8)
    let pathEnd = queryMark ?? bytes.count
    var key = URLNormalization.percentEncoding(of: bytes[..<pathStart])
    key += URLNormalization.withoutDotSegments(URLNormalization.percentEncoding(of: bytes[pathStart..<pathEnd]))
    if let queryMark, let query = ignored.filtered(bytes[(queryMark + 1)...]) {
      key.append(UInt8(ascii: "?"))
      key += URLNormalization.percentEncoding(of: query)
    }
    return String(decoding: key, as: UTF8.self)
  }

  private func text(_ range: Range<Int>) -> String {
    let bytes = requestURL.utf8
    let start = bytes.index(bytes.startIndex, offsetBy: range.lowerBound)
    return String(decoding: bytes[start..<bytes.index(start, offsetBy: range.count)], as: UTF8.self)
  }
}
