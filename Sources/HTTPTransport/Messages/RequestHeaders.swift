internal import CCurl
public import HTTPTypes
internal import Platform

/// The rules for a caller's header fields.
///
/// A redirect to another origin drops the fields that may be credentials and those that are about the origin, see
/// `isBoundToOrigin`. They stay dropped if a later redirect leads back. A redirect from http to https of the same host
/// keeps all fields.
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
  ///
  /// - Parameter isDowngrade: whether it leads from https to http, where a Referer must not be sent (RFC 9110 section
  ///   10.1.3).
  static func withoutCredentials(_ headers: HeaderFields, isDowngrade: Bool) -> HeaderFields {
    HeaderFields(headers.lines.filter { !isBoundToOrigin($0.name) && !(isDowngrade && $0.isNamed("referer")) })
  }

  /// Whether a field of this name (in lower case) is for the origin of the first request only: Host, and each name with
  /// a word that names a credential, such as Authorization, Cookie, X-Api-Key and X-Amz-Security-Token.
  private static func isBoundToOrigin(_ name: String) -> Bool {
    name == "host" || credentialWords.contains { name.has($0) }
  }

  private static let credentialWords = [
    "auth", "cookie", "credential", "csrf", "jwt", "key", "passw", "secret", "session", "signature", "ticket", "token",
    "xsrf",
  ]

  /// The fields of `headers` for a URL other than the one to which the validators refer.
  static func withoutConditions(_ headers: HeaderFields) -> HeaderFields {
    HeaderFields(headers.lines.filter { !conditionalFields.contains($0.name) })
  }

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

/// The header fields of a request as a list for curl. It never changes, so any number of handles may use it; it must
/// outlive them.
final class HeaderList {
  let headers: HeaderFields
  /// Whether `headers` name a User-Agent, in place of curl's own.
  let hasUserAgent: Bool
  /// nil if the list is empty.
  private(set) var raw: UnsafeMutablePointer<curl_slist>?

  /// Fails if memory is short.
  ///
  /// A range counts stored bytes, so it is requested without a content encoding, as browsers do.
  ///
  /// - Parameter leftOut: names of default fields that are not sent.
  init?(_ headers: HeaderFields, leavingOut leftOut: Set<String>) {
    self.headers = headers
    func has(_ name: String) -> Bool { headers.lines.contains { $0.isNamed(name) } }
    hasUserAgent = has("user-agent")
    // Curl would format its own field twice for each request.
    let encoding: String? =
      if has("accept-encoding") { nil } else if has("range") {
        "identity"
      } else { leftOut.contains("accept-encoding") ? nil : ContentDecoder.accepted }
    if let encoding { guard append("Accept-Encoding: \(encoding)") else { return nil } }
    for field in headers.lines {
      // A "name:" without a value would make curl omit its own field.
      let isBlank = field.value.utf8.allSatisfy { $0 == 0x20 || $0 == 0x09 }
      guard append(isBlank ? "\(field.name);" : "\(field.name): \(field.value)") else { return nil }
    }
    // Curl ignores such a line if there is a field of that name.
    for name in leftOut { guard append("\(name):") else { return nil } }
  }

  deinit { curl_slist_free_all(raw) }

  private func append(_ line: String) -> Bool {
    guard let longer = curl_slist_append(raw, line) else { return false }
    raw = longer
    return true
  }
}
