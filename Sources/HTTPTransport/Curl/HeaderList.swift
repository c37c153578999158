internal import CCurl
internal import HTTPTypes

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
