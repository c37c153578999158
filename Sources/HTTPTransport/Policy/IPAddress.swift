internal import CAres
internal import CCurl
internal import Platform

/// Returns whether a connection to an address is allowed.
typealias AddressFilter = @Sendable (IPAddress) -> Bool

/// An IPv4 or IPv6 address in network order.
struct IPAddress: Hashable {
  /// 4 or 16.
  let bytes: [UInt8]

  /// - Parameter bytes: 4 or 16 in network order.
  init(bytes: ArraySlice<UInt8>) { self.bytes = Array(bytes) }

  /// Parses the usual notation, without brackets and zone; nil for anything else.
  init?(_ text: some StringProtocol) {
    let text = String(text)
    var ipv4 = in_addr()
    var ipv6 = in6_addr()
    if inet_pton(AF_INET, text, &ipv4) == 1 {
      bytes = withUnsafeBytes(of: ipv4) { Array($0) }
    } else if inet_pton(AF_INET6, text, &ipv6) == 1 {
      bytes = withUnsafeBytes(of: ipv6) { Array($0) }
    } else {
      return nil
    }
  }

  /// The address of a socket's peer; nil if it is not an IP address.
  init?(_ address: UnsafePointer<sockaddr>) {
    switch Int32(address.pointee.sa_family) {
    case AF_INET:
      bytes = address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { ipv4 in
        withUnsafeBytes(of: ipv4.pointee.sin_addr) { Array($0) }
      }
    case AF_INET6:
      bytes = address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { ipv6 in
        withUnsafeBytes(of: ipv6.pointee.sin6_addr) { Array($0) }
      }
    default: return nil
    }
  }

  /// The notation of inet_ntop(3), which curl uses too; IPv6 without brackets.
  var text: String {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    guard inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count)) != nil else {
      return ""
    }
    return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// Whether the address equals the one in `pattern`, or is in its block (`10.0.0.0/8`).
  func matches(_ pattern: some StringProtocol) -> Bool {
    let parts = pattern.split(separator: "/", maxSplits: 1)
    guard let prefix = parts.first.flatMap({ IPAddress($0) }), prefix.bytes.count == bytes.count else { return false }
    guard parts.count == 2 else { return prefix == self }
    guard let length = Int(parts[1]), (0...(bytes.count * 8)).contains(length) else { return false }
    return bytes.begins(with: prefix.bytes, bits: length)
  }
}

extension [UInt8] {
  /// Whether the first `count` bits are those of `prefix`.
  func begins(with prefix: [UInt8], bits count: Int) -> Bool {
    let (whole, rest) = count.quotientAndRemainder(dividingBy: 8)
    guard self.prefix(whole).elementsEqual(prefix.prefix(whole)) else { return false }
    return rest == 0 || (self[whole] ^ prefix[whole]) >> (8 - rest) == 0
  }
}
