/// Where a transfer goes: what limits, back-off and credentials are counted by (RFC 6454 section 4).
public struct Origin: Sendable, Hashable, CustomStringConvertible {
  /// `http` or `https`.
  public let scheme: String
  /// In lower case; an IPv6 address stands in brackets.
  public let host: String
  /// 1 to 65535.
  public let port: Int

  public init(scheme: String, host: String, port: Int) {
    (self.scheme, self.host, self.port) = (scheme, host, port)
  }

  /// As in `http://host:port`, with the scheme's own port left out.
  public var description: String {
    port == Self.defaultPort(of: scheme) ? "\(scheme)://\(host)" : "\(scheme)://\(host):\(port)"
  }

  /// Host and port, always with the port: what a connection is made to.
  public var hostAndPort: String { "\(host):\(port)" }

  static func defaultPort(of scheme: String) -> Int { scheme == "https" ? 443 : 80 }
}
