internal import CCurl

/// The cookies and TLS sessions that transfers have in common.
///
/// Sessions made without checking certificates must not be resumed by transfers that check them, so `insecure` belongs
/// to its identity. (Curl itself keeps apart connections with other proxies or another `insecure`; addresses are
/// checked for each request.)
final class Share {
  let raw: UnsafeMutableRawPointer
  private let cookies: String?
  private let insecure: Bool

  /// nil when memory is short; then nothing is shared.
  init?(_ configuration: TransportConfiguration) {
    guard let raw = curl_share_init() else { return nil }
    self.raw = raw
    cookies = configuration.cookies
    insecure = configuration.insecure
    _ = ccurl_share(raw, CURL_LOCK_DATA_SSL_SESSION)
    if let cookies {
      _ = ccurl_share(raw, CURL_LOCK_DATA_COOKIE)
      add(cookies)
    }
  }

  deinit {
    // All handles are gone by now: each keeps its settings and so its share alive.
    curl_share_cleanup(raw)
  }

  /// Whether it can be used under `configuration` too.
  func suits(_ configuration: TransportConfiguration) -> Bool {
    cookies == configuration.cookies && insecure == configuration.insecure
  }

  private func add(_ cookies: String) {
    guard let easy = curl_easy_init() else { return }
    defer { curl_easy_cleanup(easy) }
    _ = ccurl_set_pointer(easy, CURLOPT_SHARE, raw)
    for line in cookies.split(whereSeparator: \.isNewline) {
      _ = ccurl_set_string(easy, CURLOPT_COOKIELIST, String(line.drop { $0 == " " || $0 == "\t" }))
    }
  }
}
