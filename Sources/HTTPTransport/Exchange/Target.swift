internal import CCurl
internal import HTTPTypes
internal import Text

/// The URL of one hop, parsed by the code that connects later.
struct Target {
  enum Problem: Error {
    case malformed
    case scheme
  }

  /// Without fragment, user information and default port; the host is in lower case.
  private(set) var url: String
  private(set) var origin: Origin
  /// Value of an `authorization` field, made from the URL's user information.
  private(set) var authorization: String?

  init(url: String, origin: Origin) {
    self.url = url
    self.origin = origin
  }

  init(_ url: String) throws(Problem) {
    if let plain = Target(plain: url) { self = plain } else { try self.init(parsing: url) }
  }

  /// - Parameter base: the URL against which a relative `reference` (a Location) is resolved (RFC 3986 section 5).
  init(parsing reference: String, relativeTo base: Target? = nil) throws(Problem) {
    // Curl turns spaces in a query into plus signs, which no browser does (WHATWG URL).
    let reference = String(decoding: reference.utf8.prefix { $0 != UInt8(ascii: "#") }, as: UTF8.self)
      .split(separator: " ", omittingEmptySubsequences: false).joined(separator: "%20")
    // Curl resolves an empty reference to the origin alone.
    if reference.isEmpty, let base {
      self = base
      return
    }
    guard !reference.utf8.contains(0), let handle = curl_url() else { throw .malformed }
    defer { curl_url_cleanup(handle) }
    let flags = UInt32(CURLU_URLENCODE | CURLU_ALLOW_SPACE | CURLU_NON_SUPPORT_SCHEME)
    if let base, curl_url_set(handle, CURLUPART_URL, base.url, flags) != CURLUE_OK { throw .malformed }
    guard curl_url_set(handle, CURLUPART_URL, reference, flags) == CURLUE_OK else {
      throw Self.hasOtherScheme(reference) ? .scheme : .malformed
    }

    func part(_ part: CURLUPart, _ flags: Int32 = 0) -> String? {
      var text: UnsafeMutablePointer<CChar>?
      guard curl_url_get(handle, part, &text, UInt32(flags)) == CURLUE_OK, let text else { return nil }
      defer { curl_free(text) }
      return String(cString: text)
    }

    guard let scheme = part(CURLUPART_SCHEME)?.lowercased() else { throw .malformed }
    guard scheme == "http" || scheme == "https" else { throw .scheme }
    guard let writtenHost = part(CURLUPART_HOST), !writtenHost.isEmpty,
      let port = part(CURLUPART_PORT, CURLU_DEFAULT_PORT).flatMap({ Int($0) })
    else { throw .malformed }
    let host = writtenHost.lowercased()
    if host != writtenHost { curl_url_set(handle, CURLUPART_HOST, host, 0) }
    let user = part(CURLUPART_USER, CURLU_URLDECODE)
    let password = part(CURLUPART_PASSWORD, CURLU_URLDECODE)
    // Curl does not decode a part that contains control characters.
    guard (user == nil) == (part(CURLUPART_USER) == nil), (password == nil) == (part(CURLUPART_PASSWORD) == nil) else {
      throw .malformed
    }
    for secret in [CURLUPART_FRAGMENT, CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS] {
      curl_url_set(handle, secret, nil, 0)
    }
    // A percent-encoded host may turn out to be an address when the URL is parsed again, which curl does later.
    guard let url = part(CURLUPART_URL, CURLU_NO_DEFAULT_PORT),
      curl_url_set(handle, CURLUPART_URL, url, flags) == CURLUE_OK, part(CURLUPART_HOST) == host
    else { throw .malformed }
    self.url = url
    origin = Origin(scheme: scheme, host: host, port: port)
    if user != nil || password != nil {
      authorization =
        "Basic " + String(decoding: Base64.encode(Array("\(user ?? ""):\(password ?? "")".utf8)), as: UTF8.self)
    }
  }

  /// Whether a reference begins with a scheme (RFC 3986 section 3.1) other than http and https.
  private static func hasOtherScheme(_ reference: String) -> Bool {
    guard let colon = reference.utf8.firstIndex(of: UInt8(ascii: ":")) else { return false }
    let scheme = reference[..<colon].lowercased()
    let isScheme =
      scheme.utf8.first.map { (0x61...0x7a).contains($0) } == true
      && scheme.utf8.allSatisfy { (0x61...0x7a).contains($0) || $0.isASCIIDigit || "+-.".utf8.contains($0) }
    return isScheme && scheme != "http" && scheme != "https"
  }
}
