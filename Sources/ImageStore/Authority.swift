/// The host and port of a URL, for clearing by host.
struct Authority: Equatable {
  /// In lower case, an IPv6 address without its brackets.
  var host: String
  var port: Int

  /// Nil for a URL without an authority, such as `data:`.
  init?(of url: String) {
    var rest = Array(url.utf8)[...]
    guard let colon = rest.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    let scheme = String(decoding: rest[..<colon], as: UTF8.self).lowercased()
    rest = rest[(colon + 1)...]
    guard rest.starts(with: "//".utf8) else { return nil }
    rest = rest.dropFirst(2)
    if let end = rest.firstIndex(where: { $0 == 47 || $0 == 63 || $0 == 35 }) { rest = rest[..<end] }
    if let at = rest.lastIndex(of: UInt8(ascii: "@")) { rest = rest[(at + 1)...] }
    var name = rest
    port = scheme == "https" ? 443 : 80
    if let separator = rest.lastIndex(of: UInt8(ascii: ":")), rest[separator...].lastIndex(of: 93) == nil {
      name = rest[..<separator]
      let digits = rest[(separator + 1)...]
      if !digits.isEmpty {
        guard let number = Int(String(decoding: digits, as: UTF8.self)) else { return nil }
        port = number
      }
    }
    host = Self.canonical(String(decoding: name, as: UTF8.self))
  }

  static func canonical(_ host: String) -> String {
    let host = host.lowercased()
    return host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
  }
}
