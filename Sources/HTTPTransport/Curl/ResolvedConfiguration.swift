internal import CCurl
internal import HTTPTypes

/// A configuration and everything that is derived from it.
final class ResolvedConfiguration {
  let configuration: TransportConfiguration
  /// The reason why the configuration cannot be used.
  let problem: String?
  let proxies: ProxyRules
  let certificates: TrustedCertificates
  let share: Share?
  /// The list of the last request. Most requests have the same fields.
  private var lastList: HeaderList?

  /// - Parameter previous: the configuration whose cookies and TLS sessions are kept if they are compatible.
  init(
    _ configuration: TransportConfiguration, environment: (String) -> String?, previous: ResolvedConfiguration? = nil
  ) {
    self.configuration = configuration
    problem = configuration.problem(environment: environment)
    proxies = ProxyRules(option: configuration.proxy, environment: environment)
    certificates = TrustedCertificates(environment: environment)
    if let share = previous?.share, share.suits(configuration) {
      self.share = share
    } else {
      share = Share(configuration)
    }
  }

  /// The fields of a request as a list for curl; nil if memory is short.
  func list(of headers: HeaderFields) -> HeaderList? {
    if let lastList, lastList.headers == headers { return lastList }
    lastList = HeaderList(headers, leavingOut: configuration.fieldsLeftOut)
    return lastList
  }
}

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
