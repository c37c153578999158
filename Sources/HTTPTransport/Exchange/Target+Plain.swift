internal import HTTPTypes

extension Target {
  /// Accepts a URL that curl would use unchanged, as most are; fails for all others. Parsing such a URL and composing
  /// it again would cost more than everything else that is done before a transfer starts.
  ///
  /// The scheme and the host are in lower case. The host is a name whose last label begins with a letter, or an IPv4
  /// address. There is no user information, no fragment, no default port and no dot segment, and nothing is or must be
  /// percent-encoded.
  init?(plain url: String) {
    var url = url
    guard let origin = url.withUTF8(PlainURL.origin) else { return nil }
    self.init(url: url, origin: origin)
  }
}

private enum PlainURL {
  static func origin(of url: UnsafeBufferPointer<UInt8>) -> Origin? {
    let isSecure = url.starts(with: "https://".utf8)
    guard isSecure || url.starts(with: "http://".utf8) else { return nil }
    let hostStart = isSecure ? 8 : 7
    guard let pathStart = url[hostStart...].firstIndex(of: UInt8(ascii: "/")), isPlainPath(url[pathStart...]) else {
      return nil
    }
    let authority = url[hostStart..<pathStart]
    let hostEnd = authority.firstIndex(of: UInt8(ascii: ":")) ?? pathStart
    let ownPort = isSecure ? 443 : 80
    let port = hostEnd == pathStart ? ownPort : number(authority[(hostEnd + 1)...])
    guard let port, isPlainHost(url[hostStart..<hostEnd]), hostEnd == pathStart || port != ownPort else { return nil }
    return Origin(
      scheme: isSecure ? "https" : "http", host: String(decoding: url[hostStart..<hostEnd], as: UTF8.self), port: port)
  }

  private static func isPlainHost(_ host: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
    let lastLabel = (host.lastIndex(of: UInt8(ascii: ".")) ?? host.startIndex - 1) + 1
    guard host.count <= 255, lastLabel < host.endIndex, host.allSatisfy(mayStandInHost) else { return false }
    return isLetter(host[lastLabel]) || IPAddress(String(decoding: host, as: UTF8.self)) != nil
  }

  /// Excludes a dot after a slash, a question mark at the end (which curl removes), and bytes that may have to be
  /// percent-encoded or decoded.
  private static func isPlainPath(_ path: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
    var previous: UInt8 = 0
    for byte in path {
      guard mayStandInPath(byte), byte != UInt8(ascii: ".") || previous != UInt8(ascii: "/") else { return false }
      previous = byte
    }
    return previous != UInt8(ascii: "?")
  }

  /// Parses a port without leading zeros, up to 65535.
  private static func number(_ digits: Slice<UnsafeBufferPointer<UInt8>>) -> Int? {
    guard let first = digits.first, first != UInt8(ascii: "0"), digits.count <= 5, digits.allSatisfy(\.isASCIIDigit)
    else {
      return nil
    }
    let number = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    return number <= 65_535 ? number : nil
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte) }

  private static func mayStandInHost(_ byte: UInt8) -> Bool {
    isLetter(byte) || byte.isASCIIDigit || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-")
  }

  /// Characters of RFC 3986 sections 3.3 and 3.4 except the percent sign.
  private static func mayStandInPath(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), 0x30...0x39, UInt8(ascii: "/"),
      UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "!"), UInt8(ascii: "$"),
      UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "*"), UInt8(ascii: "+"),
      UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "="), UInt8(ascii: ":"), UInt8(ascii: "@"),
      UInt8(ascii: "?"):
      true
    default: false
    }
  }
}
