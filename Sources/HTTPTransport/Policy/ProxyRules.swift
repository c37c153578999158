internal import HTTPTypes
internal import Platform

/// Chooses the proxy for a URL by the rules that curl documents for its environment variables.
///
/// The choice is made here and not in curl, because the network policy must know whether a proxy may be used.
struct ProxyRules {
  private let option: String?
  private let http: Variable?
  private let https: Variable?
  private let exempt: [Substring]

  /// An environment variable that is set.
  private struct Variable {
    let name: String
    let value: String
  }

  /// - Parameter option: overrides the environment; an empty text switches proxies off.
  init(option: String?, environment: (String) -> String?) {
    func first(_ names: String...) -> Variable? {
      for name in names {
        if let value = environment(name), !value.isEmpty { return Variable(name: name, value: value) }
      }
      return nil
    }
    self.option = option
    // HTTP_PROXY is not read: a web server sets it from a request's Proxy field (CVE-2016-5385).
    http = first("http_proxy", "all_proxy", "ALL_PROXY")
    https = first("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    exempt = first("no_proxy", "NO_PROXY")?.value.split { $0 == "," || $0 == " " } ?? []
  }

  /// The problem of a variable that would be used, in words that name it and do not quote it; nil if there is none.
  var problem: String? {
    guard option == nil else { return nil }
    return [http, https].compactMap(\.self).lazy.compactMap { variable in
      Self.problem(in: variable.value).map { "the environment variable \(variable.name) \($0)" }
    }.first
  }

  /// The problem of a proxy URL, in words that do not quote it; nil if there is none, or if `proxy` is empty.
  static func problem(in proxy: String) -> String? {
    var rest = proxy[...]
    if let scheme = proxy.utf8.firstRange(ofPart: "://".utf8) {
      let name = proxy[..<scheme.lowerBound].lowercased()
      guard ["http", "https", "socks4", "socks4a", "socks5", "socks5h"].contains(name) else {
        return "must have one of the schemes http, https, socks4, socks4a, socks5, socks5h"
      }
      rest = proxy[scheme.upperBound...]
    }
    let authority = rest.prefix { $0 != "/" }
    let port = authority[(authority.lastIndex(where: { "]@".contains($0) }) ?? authority.startIndex)...]
      .split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).dropFirst().first
    if let port, !port.isEmpty, !(1...65_535).contains(Int(port) ?? 0) {
      return "must have a port from 1 to 65535"
    }
    let isClean = proxy.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }
    return isClean && (proxy.isEmpty || !rest.isEmpty) ? nil : "must be the URL of a proxy"
  }

  /// Whether any URL would be fetched through a proxy.
  var mayUseProxy: Bool {
    let proxies = option.map { [$0] } ?? [http, https].compactMap { $0?.value }
    return proxies.contains { !$0.isEmpty } && !exempt.contains("*")
  }

  /// The proxy's URL, or nil for a direct connection.
  func proxy(for origin: Origin) -> String? {
    guard let proxy = option ?? (origin.scheme == "https" ? https : http)?.value, !proxy.isEmpty else { return nil }
    return isExempt(origin) ? nil : proxy
  }

  /// Entries are as in curl; also, as other programs read them, `*.name`, `[address]`, and each of them with a port.
  private func isExempt(_ origin: Origin) -> Bool {
    let host = Self.bare(origin.host[...])
    let address = IPAddress(host)
    return exempt.contains { entry in
      if entry == "*" { return true }
      var entry = entry
      // An address of IPv6 without brackets has more than one colon.
      if let colon = entry.lastIndex(of: ":"), entry.hasPrefix("[") || entry.firstIndex(of: ":") == colon,
        let port = Int(entry[entry.index(after: colon)...])
      {
        guard port == origin.port else { return false }
        entry = entry[..<colon]
      }
      entry = Self.bare(entry)
      if let address { return address.matches(entry) }
      let name = entry.drop { $0 == "*" }.drop { $0 == "." }.lowercased()
      return !name.isEmpty && (host == name || host.hasSuffix("." + name))
    }
  }

  /// A host without brackets and without the dot at its end.
  private static func bare(_ host: Substring) -> Substring {
    if host.hasPrefix("["), host.hasSuffix("]") { return host.dropFirst().dropLast() }
    return host.hasSuffix(".") ? host.dropLast() : host
  }
}
