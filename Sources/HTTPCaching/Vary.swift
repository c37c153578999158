public import HTTPTypes
internal import Text

/// Selection among several responses of one URL by the request fields that Vary names (RFC 9111 section 4.1).
public enum Vary {
  /// The request fields to store with a response that has these headers. Nil for `Vary: *`, which matches no other
  /// request.
  public static func selectingFields(of responseHeaders: HeaderFields, from requestHeaders: HeaderFields)
    -> HeaderFields?
  {
    var selecting: HeaderFields = [:]
    for name in names(in: responseHeaders) {
      guard name != "*" else { return nil }
      guard selecting[name] == nil else { continue }
      for value in requestHeaders.values(of: name) { selecting.append(name, value) }
    }
    return selecting
  }

  /// Whether the stored response may answer a request with these headers.
  public static func matches(_ stored: CachedResponse, _ requestHeaders: HeaderFields) -> Bool {
    guard stored.headers.lines.contains(where: { $0.name == "vary" }) else { return true }
    return names(in: stored.headers).allSatisfy { matches(stored, requestHeaders, in: $0) }
  }

  private static func matches(_ stored: CachedResponse, _ requestHeaders: HeaderFields, in name: String) -> Bool {
    guard name != "*" else { return false }
    return normalized(stored.selectingFields[name], of: name) == normalized(requestHeaders[name], of: name)
  }

  /// The index of the most recent stored response that may answer the request.
  static func newest(of stored: [CachedResponse], for requestHeaders: HeaderFields) -> Int? {
    if stored.count == 1 { return matches(stored[0], requestHeaders) ? 0 : nil }
    let matching = stored.indices.filter { matches(stored[$0], requestHeaders) }
    return matching.count <= 1 ? matching.first : matching.max { moment(of: stored[$0]) < moment(of: stored[$1]) }
  }

  /// The members of a comma-separated list of names, in lower case.
  static func members(_ line: String) -> [String] {
    line.utf8.split(separator: UInt8(ascii: ",")).compactMap { member in
      let name = member.trimmingBlanks
      return name.isEmpty ? nil : Substring(name).lowercased()
    }
  }

  /// The field names in Vary, in lower case; possibly with `*`.
  static func names(in headers: HeaderFields) -> [String] {
    headers.values(of: "vary").flatMap(members)
  }

  /// The order of responses: by Date, then by arrival.
  private static func moment(of response: CachedResponse) -> (Int, Int) {
    let date = response.headers.values(of: "date").first.flatMap { HTTPDate.parse($0, now: response.responseTime) }
    return (date ?? response.responseTime, response.responseTime)
  }

  /// The value in a form for comparison; nil if the request does not have the field. White space around commas and the
  /// distribution of a list over lines make no difference, nor does case if the field's definition says so (RFC 9110
  /// sections 8.3.2, 8.4.1 and 8.5.1). The order does make one, since servers take it for a preference; so does all
  /// white space of a value with a quoted string.
  static func normalized(_ value: String?, of name: String) -> [ExactString]? {
    guard let value else { return nil }
    guard !value.utf8.contains(UInt8(ascii: "\"")) else { return [ExactString(value)] }
    let members = value.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).map {
      Substring($0.trimmingBlanks)
    }
    return switch name {
    case "accept-charset", "accept-encoding", "accept-language": members.map { ExactString($0.lowercased()) }
    default: members.map { ExactString(String($0)) }
    }
  }
}
