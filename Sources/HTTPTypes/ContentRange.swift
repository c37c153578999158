/// The range of bytes that a response holds: the value of Content-Range (RFC 9110 section 14.4).
public struct ContentRange: Sendable, Hashable {
  public let first: Int64
  /// Inclusive.
  public let last: Int64
  /// Bytes of the whole content; nil if the server does not tell.
  public let completeLength: Int64?

  public var count: Int64 { last - first + 1 }

  /// Fails for a unit other than bytes, for a malformed range, and for the unsatisfied range of a 416.
  public init?(_ value: String) {
    let parts = value.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].lowercased() == "bytes" else { return nil }
    let numbers = parts[1].split(separator: "/", omittingEmptySubsequences: false)
    guard numbers.count == 2 else { return nil }
    let ends = numbers[0].split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
      last < .max  // `count` must not overflow.
    else { return nil }
    self.first = first
    self.last = last
    if numbers[1] == "*" {
      completeLength = nil
    } else {
      guard let length = Self.number(numbers[1]), last < length else { return nil }
      completeLength = length
    }
  }

  private static func number(_ digits: Substring) -> Int64? {
    digits.utf8.allSatisfy(\.isASCIIDigit) ? Int64(digits) : nil
  }
}
