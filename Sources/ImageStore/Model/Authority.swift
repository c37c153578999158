internal import HTTPTypes

/// The host and port of a URL, for clearing by host.
struct Authority: Equatable {
  /// In ASCII and lower case; an IPv6 address is without brackets.
  var host: String
  var port: Int

  /// Nil for a URL that is not loaded by HTTP, such as `data:`.
  init?(of url: String) {
    guard let url = try? ResourceURL(url) else { return nil }
    (host, port) = (Self.canonical(url.host), url.port)
  }

  static func canonical(_ host: String) -> String {
    let host = host.lowercased()
    return host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
  }
}
