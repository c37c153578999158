internal import HTTPTypes

/// Which addresses a transfer may connect to.
public enum NetworkPolicy: Sendable, Hashable {
  /// Every address.
  case any
  /// Only addresses that are globally routable (`AddressPolicy`), checked on the resolved address of every connection,
  /// redirects and reused connections included.
  ///
  /// It excludes proxies (`TransportConfiguration.problem(environment:)`): a proxy resolves names itself, or again, and
  /// connects to what it finds then.
  case publicOnly
}

/// What holds for all transfers that are started after it was set.
public struct TransportConfiguration: Sendable, Hashable {
  /// How long resolving, connecting and the TLS handshake may take together.
  public var connectTimeout: Duration = .seconds(10)
  /// The way in which the addresses of host names are found, unless a proxy finds them.
  public var resolver = NameResolver.cAres
  public var network: NetworkPolicy = .any
  /// A proxy URL (http, https, socks4, socks4a, socks5, socks5h) that goes before those of the environment. An empty
  /// one means no proxy at all, as in curl.
  public var proxy: String?
  /// An empty one is not sent.
  public var userAgent: String
  /// Names, in lower case, of fields that are not sent where a request does not have them itself, as with curl's
  /// `-H 'Name:'`; see `RequestHeaders.problem(inLeavingOut:)`. What a range needs is sent all the same.
  public var fieldsLeftOut: Set<String> = []
  /// Lines of cookies in Netscape's format or of `Set-Cookie` fields, as in a file for curl's `-b`. All transfers share
  /// them and what servers set, until others or another `insecure` are set. Without it there are no cookies but those
  /// of the request's own header.
  public var cookies: String?
  /// Accept every certificate, as curl's `--insecure`.
  public var insecure = false
  /// The bytes of a body that have to arrive within 30 seconds; 0 is no limit. Time in which the consumer has paused the
  /// transfer does not count.
  public var minRate: Int64 = 1024
  /// The most connections that are open at once, idle ones included: for one more, the one that was idle for longest is
  /// closed. Transfers for which there is none wait, within their time to connect. If the system has no socket for one
  /// more, the limit falls below the number of those that are open, and rises by one with each transfer that ends.
  public var maxConnections = 128

  public init(userAgent: String) {
    self.userAgent = userAgent
  }

  /// The reason why the configuration cannot be used, as a sentence; nil if it can. With a problem all transfers
  /// are the error `invalidRequest`.
  ///
  /// - Parameter environment: where proxies are looked up; a name's value or nil.
  public func problem(environment: (String) -> String? = processEnvironment) -> String? {
    if network == .publicOnly, ProxyRules(option: proxy, environment: environment).mayUseProxy {
      let source = proxy == nil ? "the environment (http_proxy, https_proxy or all_proxy)" : "the option proxy"
      return "network public cannot be combined with a proxy, because the proxy resolves names itself; \(source) "
        + "names one: set proxy to an empty text, or use network any and let the proxy refuse non-public addresses"
    }
    return RequestHeaders.problem(in: ["user-agent": userAgent])
  }

  /// What is wrong with a proxy's URL, in words that do not quote it; nil when there is nothing.
  public static func problem(inProxy proxy: String) -> String? { ProxyRules.problem(in: proxy) }
}
