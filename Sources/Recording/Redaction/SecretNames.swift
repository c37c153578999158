/// Decides by its name whether a value is a secret.
enum SecretNames {
  /// Parts of the names of header fields and JSON members whose values are always replaced.
  private static let parts = [
    "authorization", "authenticat", "cookie", "password", "passwd", "secret", "token", "credential", "api-key",
    "apikey", "api_key", "signature", "session-id", "sessionid",
  ]

  /// Request fields that a recording keeps. The values of all other fields of requests are replaced.
  private static let safeRequestFields: Set<String> = [
    "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "dnt", "if-match",
    "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "pragma", "range", "user-agent",
  ]

  /// Response fields that may have a relative URL with a query string.
  private static let urlFields: Set<String> = ["content-location", "link", "location", "refresh"]

  /// Whether the value of a member or a response field with this name (in lower case) is replaced.
  static func isSecret(_ name: String) -> Bool {
    let name = Array(name.utf8)
    return parts.contains { part in
      let part = Array(part.utf8)
      return name.count >= part.count
        && name.indices.dropLast(part.count - 1).contains { name[$0..<($0 + part.count)].elementsEqual(part) }
    }
  }

  static func isSecret(requestField name: String) -> Bool { !safeRequestFields.contains(name) }

  static func mayHaveURL(responseField name: String) -> Bool { urlFields.contains(name) }
}
