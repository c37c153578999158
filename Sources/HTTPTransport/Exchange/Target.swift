internal import CCurl
internal import HTTPTypes
internal import Text

/// The URL of one hop.
struct Target {
  enum Problem: Error {
    case malformed
    case scheme
  }

  /// Without fragment and user information; the host is in lower case.
  let url: String
  let origin: Origin
  /// Value of an `authorization` field, made from the URL's user information.
  let authorization: String?

  init(_ url: ResourceURL) throws(Problem) {
    let origin = url.origin
    // Curl reads addresses in all notations, such as 127.1, and connects to their usual form.
    if origin.isAddress, IPAddress(origin.host) == nil {
      self = try Target(parsing: url.requestURL)
      return
    }
    self.url = url.withoutUserInfo
    self.origin = origin
    authorization = url.basicCredentials.map(Self.basic)
  }

  /// Parses a Location as curl does, which connects later.
  ///
  /// - Parameter base: the URL against which a relative `reference` is resolved (RFC 3986 section 5).
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
    let hasUserInfo = user != nil || password != nil
    authorization = hasUserInfo ? Self.basic(Array("\(user ?? ""):\(password ?? "")".utf8)) : nil
  }

  /// The value of an `authorization` field (RFC 7617) for `user:password`.
  private static func basic(_ credentials: [UInt8]) -> String {
    "Basic " + String(decoding: Base64.encode(credentials), as: UTF8.self)
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
