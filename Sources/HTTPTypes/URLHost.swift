internal import Platform

/// The host of a URL: a name, an IPv4 address, or an IPv6 address in brackets (RFC 3986 section 3.2.2).
enum URLHost {
  /// Writes `host` in lower case, and a name beyond ASCII in Punycode.
  static func normalized(
    _ host: Slice<UnsafeBufferPointer<UInt8>>, _ write: (UInt8) -> Void
  ) throws(ResourceURLError) {
    guard let first = host.first else { throw ResourceURLError(.host, "the URL must have a host") }
    if first == UInt8(ascii: "[") {
      guard host.last == UInt8(ascii: "]"), isIPv6(String(decoding: host.dropFirst().dropLast(), as: UTF8.self)) else {
        throw ResourceURLError(.host, "the host of the URL must be a valid IPv6 address if it is in brackets")
      }
      return host.forEach { write($0.asciiLowercased) }
    }
    guard host.allSatisfy({ $0 < 0x80 }) else {
      let name = try international(Array(host)[...])
      return try name.withUnsafeBufferPointer { name in
        Result { () throws(ResourceURLError) in try check(name[...]) }
      }.map { name.forEach(write) }.get()
    }
    try check(host)
    for byte in host { write(byte.asciiLowercased) }
  }

  /// Whether a text is an IPv6 address (RFC 4291 section 2.2) without a zone.
  private static func isIPv6(_ text: String) -> Bool {
    var address = in6_addr()
    return inet_pton(AF_INET6, text, &address) == 1
  }

  /// - Parameter name: must be ASCII.
  private static func check(_ name: Slice<UnsafeBufferPointer<UInt8>>) throws(ResourceURLError) {
    // RFC 3986 allows more characters in a name, but no host has them and libcurl accepts none of them.
    if let bad = name.first(where: { !$0.isUnreserved }) {
      let shown = String(UnicodeScalar(bad))
      let hint = shown == "%" ? "; a host cannot be percent-encoded" : ""
      throw ResourceURLError(.host, "the host of the URL must not have the character '\(shown)'\(hint)")
    }
    guard name.count <= 255 else {
      throw ResourceURLError(.host, "the host of the URL must not be longer than 255 bytes")
    }
    guard name.contains(where: { $0 != UInt8(ascii: ".") }) else {
      throw ResourceURLError(.host, "the URL must have a host")
    }
  }

  /// Lowercases a name and encodes it in Punycode label by label (RFC 5891 without its tables: names that a registry
  /// would refuse are left to DNS).
  private static func international(_ host: ArraySlice<UInt8>) throws(ResourceURLError) -> [UInt8] {
    let name = String(decoding: host, as: UTF8.self).lowercased()
    var output: [UInt8] = []
    // U+3002, U+FF0E and U+FF61 are full stops too (RFC 3490 section 3.1).
    let labels = name.unicodeScalars.split(omittingEmptySubsequences: false) {
      ".\u{3002}\u{FF0E}\u{FF61}".unicodeScalars.contains($0)
    }
    for (index, label) in labels.enumerated() {
      if index > 0 { output.append(UInt8(ascii: ".")) }
      if label.allSatisfy(\.isASCII) {
        output += label.map { UInt8($0.value) }
      } else {
        guard let encoded = Punycode.encode(label.map(\.value)) else {
          throw ResourceURLError(.host, "a label of the URL's host must not be longer than 63 bytes")
        }
        output += Array("xn--".utf8) + encoded
      }
    }
    return output
  }
}
