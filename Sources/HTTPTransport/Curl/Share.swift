internal import CCurl

/// The cookies and TLS sessions that transfers share.
///
/// A session made without certificate checks must not be resumed by a transfer that checks certificates, so `insecure`
/// is part of the share's identity. (Curl itself separates connections by proxy and by `insecure`; addresses are
/// checked for each request.)
final class Share {
  let raw: UnsafeMutableRawPointer
  private let cookies: String?
  private let insecure: Bool

  /// Fails if memory is short; then nothing is shared.
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
    // No handle is left: each handle keeps its settings alive, and so their share.
    curl_share_cleanup(raw)
  }

  /// Whether the share can be used under `configuration` too.
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
