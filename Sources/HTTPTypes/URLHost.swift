internal import CIDN2
internal import Platform

/// The host of a URL: a name, an IPv4 address, or an IPv6 address in brackets (WHATWG URL section 3.5, "host parser").
enum URLHost {
  /// Writes `host` in the form in which it is sent: a name in lower case and ASCII (UTS 46), an address in its shortest
  /// form (RFC 5952, but all in hexadecimal digits).
  static func normalized(
    _ host: Slice<UnsafeBufferPointer<UInt8>>, _ write: (UInt8) -> Void
  ) throws(ResourceURLError) {
    guard let first = host.first else { throw ResourceURLError(.host, "the URL must have a host") }
    if first == UInt8(ascii: "[") {
      guard host.last == UInt8(ascii: "]"), let address = address6(host.dropFirst().dropLast()) else {
        throw ResourceURLError(.host, "the host of the URL must be a valid IPv6 address if it is in brackets")
      }
      return "[\(address)]".utf8.forEach(write)
    }
    if isPlainAddress(host) { return host.forEach(write) }
    if host.allSatisfy({ $0 < 0x80 && $0 != UInt8(ascii: "%") }), !endsInNumber(host) {
      try check(host)
      return host.forEach { write($0.asciiLowercased) }
    }
    let name = try ascii(PercentEncoding.decoded(Array(host)))
    try name.withUnsafeBufferPointer { bytes in
      Result { () throws(ResourceURLError) in try check(bytes[...]) }
    }.get()
    guard endsInNumber(name) else { return name.forEach(write) }
    guard let address = address4(name) else {
      throw ResourceURLError(.host, "the host of the URL must be a valid IPv4 address if it ends in a number")
    }
    let bytes = [24, 16, 8, 0].map { String(address >> $0 & 0xff) }
    bytes.joined(separator: ".").utf8.forEach(write)
  }

  /// Whether the host is an IPv4 address in its shortest form already, as nearly all are.
  private static func isPlainAddress(_ host: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
    var (dots, digits, number) = (0, 0, 0)
    for byte in host {
      if byte == UInt8(ascii: "."), digits > 0 {
        (dots, digits, number) = (dots + 1, 0, 0)
      } else if byte.isASCIIDigit, digits == 0 || number > 0 {
        (digits, number) = (digits + 1, number * 10 + Int(byte - UInt8(ascii: "0")))
        if number > 255 { return false }
      } else {
        return false
      }
    }
    return dots == 3 && digits > 0
  }

  /// - Parameter name: must be ASCII.
  private static func check(_ name: Slice<UnsafeBufferPointer<UInt8>>) throws(ResourceURLError) {
    // The standard permits more characters, but no host has them and libcurl accepts none of them.
    if let bad = name.first(where: { !$0.isUnreserved }) {
      throw ResourceURLError(.host, "the host of the URL must not have the character '\(UnicodeScalar(bad))'")
    }
    guard name.count <= 255 else {
      throw ResourceURLError(.host, "the host of the URL must not be longer than 255 bytes")
    }
    guard name.contains(where: { $0 != UInt8(ascii: ".") }) else {
      throw ResourceURLError(.host, "the URL must have a host")
    }
  }

  /// A name in lower case and ASCII (UTS 46 section 4). As in curl, the rules are those of IDNA2008, or those before if
  /// these forbid the name, as they do with emoji.
  private static func ascii(_ name: [UInt8]) throws(ResourceURLError) -> [UInt8] {
    if name.allSatisfy({ $0 < 0x80 }) { return name.map(\.asciiLowercased) }
    for flags in [IDN2_NONTRANSITIONAL, IDN2_TRANSITIONAL] where !name.contains(0) {
      var output: UnsafeMutablePointer<UInt8>?
      guard idn2_lookup_u8(name + [0], &output, Int32(flags.rawValue)) == IDN2_OK.rawValue, let output else { continue }
      defer { idn2_free(output) }
      return Array(String(cString: output).utf8)
    }
    throw ResourceURLError(.host, "the host of the URL must be a valid international name (UTS 46)")
  }

  /// Whether the last label is a number ("ends in a number checker").
  static func endsInNumber(_ name: some BidirectionalCollection<UInt8>) -> Bool {
    let whole = name.last == UInt8(ascii: ".") ? name.dropLast() : name[...]
    let label = whole.suffix(from: whole.lastIndex(of: UInt8(ascii: ".")).map(whole.index(after:)) ?? whole.startIndex)
    guard label.first?.isASCIIDigit == true else { return false }
    return label.allSatisfy(\.isASCIIDigit) || number(Array(label)) != nil
  }

  /// An IPv4 address of one to four numbers, the last of which takes the rest ("IPv4 parser").
  private static func address4(_ name: [UInt8]) -> UInt32? {
    var parts = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    if parts.last?.isEmpty == true { parts.removeLast() }
    guard parts.count <= 4 else { return nil }
    var address: UInt64 = 0
    for (index, part) in parts.enumerated() {
      guard let number = number(Array(part)) else { return nil }
      let isLast = index == parts.count - 1
      guard number < (isLast ? 1 << UInt64(8 * (4 - index)) : 256) else { return nil }
      address |= isLast ? number : number << UInt64(8 * (3 - index))
    }
    return UInt32(address)
  }

  /// A number in decimal, octal (`0` first) or hexadecimal digits (`0x` first); at most 2^32 ("IPv4 number parser").
  private static func number(_ digits: [UInt8]) -> UInt64? {
    let lowercased = digits.map(\.asciiLowercased)
    let isHexadecimal = lowercased.starts(with: "0x".utf8)
    let radix = isHexadecimal ? 16 : lowercased.first == UInt8(ascii: "0") && lowercased.count > 1 ? 8 : 10
    guard !digits.isEmpty else { return nil }
    var number: UInt64 = 0
    for digit in lowercased.dropFirst(isHexadecimal ? 2 : 0) {
      guard let value = digit.hexadecimalValue, value < radix else { return nil }
      number = min(number * UInt64(radix) + UInt64(value), 1 << 32)
    }
    return number
  }

  /// An IPv6 address without a zone, with the longest run of zeros compressed ("IPv6 serializer").
  private static func address6(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> String? {
    var address = in6_addr()
    guard inet_pton(AF_INET6, String(decoding: text, as: UTF8.self), &address) == 1 else { return nil }
    let bytes = withUnsafeBytes(of: &address) { Array($0) }
    let pieces = stride(from: 0, to: 16, by: 2).map { Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]) }
    var zeros = 0..<0
    for start in pieces.indices {
      let end = pieces[start...].firstIndex { $0 != 0 } ?? pieces.endIndex
      if end - start > max(zeros.count, 1) { zeros = start..<end }
    }
    func joined(_ pieces: ArraySlice<Int>) -> String {
      pieces.map { String($0, radix: 16) }.joined(separator: ":")
    }
    return zeros.isEmpty
      ? joined(pieces[...]) : "\(joined(pieces[..<zeros.lowerBound]))::\(joined(pieces[zeros.upperBound...]))"
  }
}
