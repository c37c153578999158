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

/// Whether IPv6 addresses on the Internet can be reached.
struct IPv6Route {
  private static let validity = Duration.seconds(10)
  private var exists = false
  private var askedAt: Instant?

  /// Whether the system has a route to global addresses, with a global source address. A private source address would
  /// come after IPv4 anyway (RFC 6724 section 2.1).
  mutating func exists(now: Instant) -> Bool {
    if let askedAt, askedAt.duration(to: now) < Self.validity { return exists }
    askedAt = now
    exists = Self.ask()
    return exists
  }

  /// Connects a datagram socket, which sends nothing.
  private static func ask() -> Bool {
    let probe = openSocket(AF_INET6, datagramSocket)
    guard probe >= 0 else { return false }
    defer { close(probe) }
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    address.sin6_port = UInt16(53).bigEndian
    // Any global address will do; this is that of a root name server.
    guard inet_pton(AF_INET6, "2001:503:ba3e::2:30", &address.sin6_addr) == 1 else { return false }
    return withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        guard connect(probe, address, length) == 0, getsockname(probe, address, &length) == 0 else { return false }
        return IPAddress(address).map { AddressPolicy.isGloballyRoutable($0.bytes) } ?? false
      }
    }
  }
}
