internal import CCurl
internal import Platform

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
