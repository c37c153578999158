public import HTTPTypes

/// The rules for a caller's header fields.
///
/// A redirect to another origin keeps only the fields that say nothing about the requester: `accept`,
/// `accept-encoding`, `accept-language`, `cache-control`, `pragma`, `user-agent`, and the conditional and range fields
/// (see `TransferRequest.validatedURL`). All others are dropped, and stay dropped if a later redirect leads back.
public enum RequestHeaders {
  /// The problem of the fields, in words that quote no value; nil if they can be sent.
  ///
  /// Refused are names that are not tokens, values with control characters (RFC 9110 section 5), and the fields that
  /// frame the message or manage the connection, which only the transport may set.
  public static func problem(in headers: HeaderFields) -> String? {
    for field in headers.lines {
      guard isToken(field.name) else { return "a header name must be a token" }
      guard field.value.allBytes({ $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }) else {
        return "the value of \(field.name) must not have control characters"
      }
      if connectionFields.contains(field.name) { return "\(field.name) cannot be set" }
    }
    return nil
  }

  /// The problem of leaving out a default field of this name (in lower case); nil if it can be left out or does not
  /// exist.
  public static func problem(inLeavingOut name: String) -> String? {
    guard isToken(name) else { return "a header name must be a token" }
    let isNeeded = connectionFields.contains(name) || conditionalFields.contains(name) || neededFields.contains(name)
    return isNeeded ? "\(name) cannot be left out" : nil
  }

  /// The fields of `headers` that remain after a redirect to another origin.
  static func withoutCredentials(_ headers: HeaderFields) -> HeaderFields {
    HeaderFields(headers.lines.filter { publicFields.contains($0.name) || conditionalFields.contains($0.name) })
  }

  /// The fields of `headers` for a URL other than the one to which the validators refer.
  static func withoutConditions(_ headers: HeaderFields) -> HeaderFields {
    HeaderFields(headers.lines.filter { !conditionalFields.contains($0.name) })
  }

  private static let publicFields: Set = [
    "accept", "accept-encoding", "accept-language", "cache-control", "pragma", "user-agent",
  ]
  private static let conditionalFields: Set = ["if-modified-since", "if-none-match", "if-range", "range"]
  private static let connectionFields: Set = [
    "connection", "content-length", "expect", "http2-settings", "keep-alive", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
  ]

  /// Fields that come from the URL, cookies, the proxy and the cache mode, which have no effect without them.
  private static let neededFields: Set = [
    "authorization", "cache-control", "cookie", "host", "pragma", "proxy-authorization",
  ]

  private static func isToken(_ name: String) -> Bool {
    !name.isEmpty && name.allBytes { $0.isASCIILetter || $0.isASCIIDigit || tokenSymbols.contains($0) }
  }

  private static let tokenSymbols = Array("!#$%&'*+-.^_`|~".utf8)
}

extension String {
  /// Faster than `utf8.allSatisfy`, which looks up how the text is stored for each byte.
  fileprivate func allBytes(_ isAllowed: (UInt8) -> Bool) -> Bool {
    utf8.withContiguousStorageIfAvailable { $0.allSatisfy(isAllowed) } ?? utf8.allSatisfy(isAllowed)
  }
}
