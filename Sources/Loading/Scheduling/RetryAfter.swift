internal import HTTPTypes

/// The Retry-After field (RFC 9110 section 10.2.3).
enum RetryAfter {
  /// The delay; nil if the field is missing or is neither seconds nor a date.
  ///
  /// - Parameter now: Unix seconds.
  static func parse(_ value: String?, now: Int) -> Duration? {
    guard let value else { return nil }
    if !value.isEmpty, value.utf8.allSatisfy(\.isASCIIDigit) {
      return .seconds(min(Int(value) ?? .max, 365 * 86_400))
    }
    return HTTPDate.parse(value, now: now).map { .seconds(max(0, $0 - now)) }
  }
}
