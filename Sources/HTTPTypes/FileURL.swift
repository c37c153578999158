/// The `file:` URLs (RFC 8089) of paths.
public enum FileURL {
  /// All bytes of the path are encoded but unreserved ones and `/`.
  public static func url(ofPath path: String) -> String {
    let encoded = path.utf8.flatMap { byte in
      byte.isUnreserved || byte == UInt8(ascii: "/") ? [byte] : PercentEncoding.encoded(byte)
    }
    return "file://" + String(decoding: encoded, as: UTF8.self)
  }
}
