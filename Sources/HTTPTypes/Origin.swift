/// The origin of a URL (RFC 6454 section 4): limits, back-off and credentials apply per origin.
public struct Origin: Sendable, Hashable, CustomStringConvertible {
  /// `http` or `https`.
  public let scheme: String
  /// In lower case; an IPv6 address is in brackets.
  public let host: String
  /// 1 to 65535.
  public let port: Int

  public init(scheme: String, host: String, port: Int) {
    (self.scheme, self.host, self.port) = (scheme, host, port)
  }

  /// `http://host:port`, without a default port.
  public var description: String {
    port == Self.defaultPort(of: scheme) ? "\(scheme)://\(host)" : "\(scheme)://\(host):\(port)"
  }

  /// Host and port, always with the port: the address of a connection.
  public var hostAndPort: String { "\(host):\(port)" }

  /// Whether the host is an IP address: in brackets, or with a number as its last label (WHATWG URL, section 3.5).
  public var isAddress: Bool {
    guard !host.hasPrefix("[") else { return true }
    let label = host.utf8.lazy.reversed().prefix { $0 != UInt8(ascii: ".") }
    return !label.isEmpty && label.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }

  static func defaultPort(of scheme: String) -> Int { scheme == "https" ? 443 : 80 }
}
