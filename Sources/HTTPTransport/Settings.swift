internal import CCurl
internal import HTTPTypes

/// A configuration in force, with what its transfers share: cookies and TLS sessions.
///
/// A new configuration gets new ones, so that nothing learned under looser rules is used under stricter ones. (curl
/// itself keeps apart connections with other proxies or another `insecure`; addresses are checked for each request.)
final class Settings {
  let configuration: TransportConfiguration
  let proxies: ProxyRules
  /// What keeps the configuration from being used.
  let problem: String?
  let certificateFile: String?
  let certificateDirectory: String?
  /// nil when memory is short; then nothing is shared.
  let share: UnsafeMutableRawPointer?

  init(_ configuration: TransportConfiguration, environment: (String) -> String?) {
    func value(_ name: String) -> String? { environment(name).flatMap { $0.isEmpty ? nil : $0 } }
    self.configuration = configuration
    problem = RequestHeaders.problem(in: ["user-agent": configuration.userAgent])
    proxies = ProxyRules(option: configuration.proxy, environment: environment)
    let bundle = value("CURL_CA_BUNDLE")
    certificateFile = bundle ?? value("SSL_CERT_FILE")
    certificateDirectory = bundle == nil ? value("SSL_CERT_DIR") : nil
    share = curl_share_init()
    if let share {
      _ = ccurl_share(share, CURL_LOCK_DATA_SSL_SESSION)
      if let file = configuration.cookiesFile {
        _ = ccurl_share(share, CURL_LOCK_DATA_COOKIE)
        Self.loadCookies(from: file, into: share)
      }
    }
  }

  deinit {
    // All handles are gone by now: each keeps its settings alive.
    curl_share_cleanup(share)
  }

  private static func loadCookies(from file: String, into share: UnsafeMutableRawPointer) {
    guard let easy = curl_easy_init() else { return }
    defer { curl_easy_cleanup(easy) }
    _ = ccurl_set_pointer(easy, CURLOPT_SHARE, share)
    // To curl "-" is standard input, which is not ours to read.
    _ = ccurl_set_string(easy, CURLOPT_COOKIEFILE, file == "-" ? "./-" : file)
    _ = ccurl_set_string(easy, CURLOPT_COOKIELIST, "RELOAD")
  }
}
