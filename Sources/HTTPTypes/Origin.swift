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

  /// Whether the host is an IP address in any notation.
  public var isAddress: Bool { Self.isAddress(host) }

  /// Whether a host in lower case is in brackets, or has a number as its last label (WHATWG URL, "ends in a number").
  public static func isAddress(_ host: String) -> Bool {
    if host.hasPrefix("[") { return true }
    let name = host.utf8.last == UInt8(ascii: ".") ? host.utf8.dropLast() : host.utf8[...]
    let label = name.suffix(from: name.lastIndex(of: UInt8(ascii: ".")).map(name.index(after:)) ?? name.startIndex)
    guard !label.isEmpty else { return false }
    return label.allSatisfy(\.isASCIIDigit)
      || label.starts(with: "0x".utf8) && label.dropFirst(2).allSatisfy { $0.hexadecimalValue != nil }
  }

  static func defaultPort(of scheme: String) -> Int { scheme == "https" ? 443 : 80 }
}
