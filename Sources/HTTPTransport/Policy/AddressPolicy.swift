/// Decides whether an IP address is on the public Internet, by IANA's registries of special-purpose addresses (RFC
/// 6890) and of IPv4 and IPv6 multicast.
public enum AddressPolicy {
  /// - Parameter bytes: 4 or 16 bytes in network order; any other number is not routable.
  ///
  /// An IPv6 address that carries an IPv4 address (mapped, compatible, translated, NAT64, 6to4, Teredo) is judged by
  /// the IPv4 address alone.
  public static func isGloballyRoutable(_ bytes: some RandomAccessCollection<UInt8>) -> Bool {
    let bytes = Array(bytes)
    switch bytes.count {
    case 4: return !specialIPv4.contains { $0.contains(bytes) }
    case 16: return isGloballyRoutableIPv6(bytes)
    default: return false
    }
  }

  private static func isGloballyRoutableIPv6(_ bytes: [UInt8]) -> Bool {
    for carrier in ipv4Carriers where carrier.block.contains(bytes) {
      let embedded = bytes[carrier.offset..<(carrier.offset + 4)].map { $0 ^ carrier.mask }
      return isGloballyRoutable(embedded)
    }
    // Only 2000::/3 is allocated for global unicast; everything else is special, reserved or unassigned.
    return globalUnicast.contains(bytes) && !specialIPv6.contains { $0.contains(bytes) }
  }

  private struct Block {
    let prefix: [UInt8]
    let length: Int

    init(_ prefix: [UInt8], _ length: Int) {
      self.prefix = prefix
      self.length = length
    }

    func contains(_ address: [UInt8]) -> Bool { address.begins(with: prefix, bits: length) }
  }

  private static let specialIPv4 = [
    Block([0], 8),  // this network
    Block([10], 8),  // private
    Block([100, 64], 10),  // carrier-grade NAT
    Block([127], 8),  // loopback
    Block([169, 254], 16),  // link-local, cloud metadata
    Block([172, 16], 12),  // private
    Block([192, 0, 0], 24),  // protocol assignments
    Block([192, 0, 2], 24),  // documentation
    Block([192, 31, 196], 24),  // AS112
    Block([192, 52, 193], 24),  // AMT
    Block([192, 88, 99], 24),  // 6to4 relays
    Block([192, 168], 16),  // private
    Block([192, 175, 48], 24),  // AS112
    Block([198, 18], 15),  // benchmarks
    Block([198, 51, 100], 24),  // documentation
    Block([203, 0, 113], 24),  // documentation
    Block([224], 4),  // multicast
    Block([240], 4),  // reserved, broadcast
  ]

  private static let globalUnicast = Block([0x20], 3)

  private static let specialIPv6 = [
    Block([0x20, 0x01, 0x00], 23),  // protocol assignments: ORCHID, benchmarks, drones and more
    Block([0x20, 0x01, 0x0d, 0xb8], 32),  // documentation
    Block([0x26, 0x20, 0x00, 0x4f, 0x80, 0x00], 48),  // AS112
    Block([0x3f, 0xff, 0x00], 20),  // documentation
  ]

  private static let ipv4Carriers: [(block: Block, offset: Int, mask: UInt8)] = [
    (Block([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff], 96), 12, 0),  // mapped
    (Block([0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0], 96), 12, 0),  // translated
    (Block([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 96), 12, 0),  // compatible; :: and ::1 too, as 0.0.0.0/8
    (Block([0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0], 96), 12, 0),  // NAT64
    (Block([0x20, 0x02], 16), 2, 0),  // 6to4
    (Block([0x20, 0x01, 0, 0], 32), 12, 0xff),  // Teredo
  ]
}
