internal import HTTPTypes

/// The addresses to which a transfer may connect.
public enum NetworkPolicy: String, Sendable, Hashable, CaseIterable {
  /// Every address.
  case any
  /// Only globally routable addresses (`AddressPolicy`). The resolved address of every connection is checked, redirects
  /// and reused connections included.
  ///
  /// It excludes proxies (`TransportConfiguration.problem(environment:)`): a proxy resolves names itself, or again, and
  /// connects to what it finds then.
  case publicOnly = "public"
}

/// Settings of all transfers that start after they were set.
public struct TransportConfiguration: Sendable, Hashable {
  /// Longest time for resolving, connecting and the TLS handshake together.
  public var connectTimeout: Duration = .seconds(10)
  /// The resolver of host names, unless a proxy resolves them.
  public var resolver = NameResolver.cAres
  public var network: NetworkPolicy = .any
  /// Proxy URL (http, https, socks4, socks4a, socks5, socks5h) that overrides those of the environment. As in curl, an
  /// empty text means no proxy.
  public var proxy: String?
  /// An empty text sends no User-Agent.
  public var userAgent: String
  /// Names, in lower case, of fields that are sent only if the request itself has them, as with curl's `-H 'Name:'`;
  /// see `RequestHeaders.problem(inLeavingOut:)`. Fields that a range request needs are sent regardless.
  public var fieldsLeftOut: Set<String> = []
  /// Cookies, one a line, in Netscape's format or as `Set-Cookie` fields, as in a file for curl's `-b`. All transfers
  /// share them and the cookies that servers set, until `cookies` or `insecure` changes. If nil, only the request's own
  /// Cookie field is sent.
  public var cookies: String?
  /// Accepts every certificate, like curl's `--insecure`.
  public var insecure = false
  /// Bytes of a body that must arrive within 30 seconds; 0 for no limit. Time in which the consumer has paused the
  /// transfer does not count.
  public var minRate: Int64 = 1024
  /// Largest number of open connections, idle ones included. One more closes the connection that has been idle for
  /// longest; if none is idle, the transfer waits, within `connectTimeout`. If the system has no socket for one more,
  /// the limit falls below the number of open connections, and rises by one with each transfer that ends.
  public var maxConnections = 128

  public init(userAgent: String) { self.userAgent = userAgent }

  /// The reason why the configuration cannot be used, as a sentence; nil if it can. With a problem, all transfers fail
  /// with `invalidRequest`.
  ///
  /// - Parameter environment: returns the value of an environment variable (for proxies), or nil.
  public func problem(environment: (String) -> String? = processEnvironment) -> String? {
    let proxies = ProxyRules(option: proxy, environment: environment)
    if let problem = proxies.problem { return problem }
    if network == .publicOnly, proxies.mayUseProxy {
      let source = proxy == nil ? "the environment (http_proxy, https_proxy or all_proxy)" : "the option proxy"
      return "network public cannot be combined with a proxy, because the proxy resolves names itself; \(source) "
        + "names one: set proxy to an empty text, or use network any and let the proxy refuse non-public addresses"
    }
    return RequestHeaders.problem(in: ["user-agent": userAgent])
  }

  /// The problem of a proxy URL, in words that do not quote the URL; nil if there is none.
  public static func problem(inProxy proxy: String) -> String? { ProxyRules.problem(in: proxy) }
}
