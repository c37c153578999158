internal import HTTPTypes

/// The way to find the addresses of a URL's host, as far as the host alone determines it.
enum HostKind: Hashable {
  /// An IP address, which curl reads itself.
  case address
  /// A name of the loopback interface. No name server is asked for it (RFC 6761 section 6.3).
  case loopback
  /// A name to look up. If it ends in a dot, no search domain is appended.
  case name
  /// A name that cannot exist or must not be asked for: by its lengths (RFC 1035 section 2.3.4), `invalid` (RFC 6761
  /// section 6.4), `onion` (RFC 7686), or characters that no host name has. This also excludes text that would mean
  /// something else in CURLOPT_RESOLVE.
  case impossible
  /// A name of multicast DNS (`local`, RFC 6762 section 3), for the system's resolver.
  case system

  /// - Parameter host: in lower case, as in `Origin`.
  init(_ host: String) {
    if host.hasPrefix("[") || IPAddress(host) != nil {
      self = .address
      return
    }
    let name = host.hasSuffix(".") ? host.dropLast() : host[...]
    let labels = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    let areLabels = labels.allSatisfy { (1...63).contains($0.count) && $0.allSatisfy(Self.mayStandInName) }
    guard name.utf8.count <= 253, areLabels, let last = labels.last, !Origin.isAddress(host) else {
      self = .impossible
      return
    }
    switch String(last) {
    case "localhost": self = .loopback
    case "invalid", "onion": self = .impossible
    case "local": self = .system
    default: self = .name
    }
  }

  private static func mayStandInName(_ byte: UInt8) -> Bool {
    (0x61...0x7a).contains(byte) || byte.isASCIIDigit || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
  }
}
