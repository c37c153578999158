internal import HTTPTypes
internal import ImageStore
internal import Text

/// Separates cache entries by the credentials of the request, so that no response is served to other credentials than
/// it was fetched with; and by Host, which is part of the target of a request (RFC 9110 section 7.2).
enum CachePartition {
  static let fields: Set = ["authorization", "cookie", "host", "proxy-authorization"]

  /// A digest of the request's credentials; empty if there are none.
  static func partition(of request: LoadRequest) -> String {
    var text = request.fields.credentials
    if case .http(let url) = request.source, let userInfo = url.userInfo { text += "@\(userInfo)\n" }
    return text.isEmpty ? "" : SHA256.digest(of: Array(text.utf8)).hexadecimal
  }

  /// The header fields that are credentials, one line each.
  static func lines(in headers: HeaderFields) -> String {
    headers.lines.reduce(into: "") { text, line in
      if fields.contains(line.name) { text += "\(line.name):\(line.value)\n" }
    }
  }
}

extension [UInt8] {
  /// Two lower-case hexadecimal digits per byte.
  public var hexadecimal: String {
    String(decoding: flatMap { [Self.digits[Int($0 >> 4)], Self.digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  private static let digits = Array("0123456789abcdef".utf8)
}

extension LoadRequest {
  /// A digest of the credentials that the request sends, by which the cache separates responses; empty if there are
  /// none.
  public var partition: String { CachePartition.partition(of: self) }
}

/// The cache key and the partition of an image. The partition keeps the responses of different credentials apart.
struct CacheIdentity: Hashable {
  let key: ExactString
  let partition: String

  init(key: String, partition: String) {
    (self.key, self.partition) = (ExactString(key), partition)
  }
}
