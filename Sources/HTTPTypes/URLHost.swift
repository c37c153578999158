/// The host of a URL: a name, an IPv4 address, or an IPv6 address in brackets (RFC 3986 section 3.2.2).
enum URLHost {
  /// Writes `host` in lower case, and a name beyond ASCII in Punycode.
  static func normalized(
    _ host: Slice<UnsafeBufferPointer<UInt8>>, _ write: (UInt8) -> Void
  ) throws(ResourceURLError) {
    guard let first = host.first else { throw ResourceURLError(.host, "the URL must have a host") }
    if first == UInt8(ascii: "[") {
      guard host.last == UInt8(ascii: "]"), IPv6Literal.isValid(Array(host)[1..<(host.count - 1)]) else {
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

/// The text form of an IPv6 address (RFC 4291 section 2.2), without a zone.
enum IPv6Literal {
  static func isValid(_ text: ArraySlice<UInt8>) -> Bool {
    guard (2...45).contains(text.count) else { return false }
    var groups = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    var elided = false
    // At either end, `::` leaves two empty pieces instead of one.
    if groups.count >= 3, groups[0].isEmpty, groups[1].isEmpty { groups.removeFirst() }
    if groups.count >= 2, groups[groups.count - 1].isEmpty, groups[groups.count - 2].isEmpty { groups.removeLast() }
    var count = 0
    for (index, group) in groups.enumerated() {
      if group.isEmpty {
        guard !elided else { return false }
        elided = true
      } else if group.contains(UInt8(ascii: ".")) {
        guard index == groups.count - 1, isIPv4(group) else { return false }
        count += 2
      } else {
        guard group.count <= 4, group.allSatisfy({ $0.hexadecimalValue != nil }) else { return false }
        count += 1
      }
    }
    // A single colon at an end also leaves an empty piece, so `::` must be there.
    guard elided == text.indices.dropLast().contains(where: { text[$0] == 0x3A && text[$0 + 1] == 0x3A }) else {
      return false
    }
    return elided ? count <= 7 : count == 8
  }

  private static func isIPv4(_ text: ArraySlice<UInt8>) -> Bool {
    let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return parts.count == 4
      && parts.allSatisfy { part in
        (1...3).contains(part.count) && part.allSatisfy(\.isASCIIDigit)
          && (part.count == 1 || part.first != UInt8(ascii: "0"))
          && part.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) } <= 255
      }
  }
}
