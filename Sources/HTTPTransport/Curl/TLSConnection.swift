internal import CCurl
internal import CTLS

/// The TLS state of a handle's connection. It is known if curl uses the same OpenSSL as this module.
struct TLSConnection {
  private let ssl: UnsafeMutableRawPointer

  /// Fails for a connection without TLS.
  init?(of easy: EasyHandle) {
    guard Self.isKnown, let ssl = ccurl_openssl(easy.raw) else { return nil }
    self.ssl = ssl
  }

  var identity: ServiceTime.Connection { ssl }

  /// Whether curl uses the same OpenSSL as this module. Its version text is like
  /// `libcurl/7.88.1 OpenSSL/3.0.19 zlib/1.2.13`.
  static let isKnown =
    curl_version().map { String(cString: $0) }?.contains(" OpenSSL/\(OPENSSL_VERSION_MAJOR).") ?? false

  var isHTTP2: Bool { ctls_is_http2(ssl) != 0 }

  /// Whether unrequested bytes were read together with requested ones.
  var hasUnread: Bool { ctls_has_unread(ssl) != 0 }
}
