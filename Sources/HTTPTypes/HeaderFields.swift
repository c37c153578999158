internal import Text

/// One header field line. Names are stored in lower case, values without surrounding white space (RFC 9110 section 5).
public struct HeaderField: Sendable {
  public let name: String
  public var value: String

  public init(_ name: String, _ value: String) {
    self.name = name.lowercased()
    self.value = value
  }

  /// Bytes of the name and the value.
  public var byteCount: Int { name.utf8.count + value.utf8.count }

  /// Whether the field has this name, in lower case. Faster than `==` for one of another length, as most have.
  @inlinable public func isNamed(_ name: String) -> Bool {
    self.name.utf8.count == name.utf8.count && self.name == name
  }

  /// Creates a field from the bytes of a message. A value that is not UTF-8 is decoded as ISO-8859-1 (RFC 9110 section
  /// 5.5), so that different values stay different; in a Location, as in browsers, it is percent-encoded.
  public init(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    self.name =
      name.isASCII
      ? String(unsafeUninitializedCapacity: name.count) { text in
        for index in name.indices { text[index] = name[index].asciiLowercased }
        return name.count
      }
      : String(decoding: name, as: UTF8.self).lowercased()
    // Decoding ASCII is several times faster than validating.
    self.value =
      value.isASCII
      ? String(decoding: value, as: UTF8.self)
      : String(validating: value, as: UTF8.self)
        ?? (self.name == "location" ? Self.percentEncoded(value) : Self.latin1(value))
  }
}

extension HeaderField {
  private static func latin1(_ value: UnsafeRawBufferPointer) -> String {
    String(String.UnicodeScalarView(value.lazy.map { Unicode.Scalar($0) }))
  }

  private static func percentEncoded(_ value: UnsafeRawBufferPointer) -> String {
    String(decoding: value.flatMap { $0 < 0x80 ? [$0] : PercentEncoding.encoded($0) }, as: UTF8.self)
  }
}

extension HeaderField: Hashable {
  public static func == (one: Self, other: Self) -> Bool {
    one.name == other.name && one.value.hasSameBytes(as: other.value)
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(name)
    hasher.combine(ExactString(value))
  }
}

/// The header fields of a message, in their order.
public struct HeaderFields: Sendable, Hashable, ExpressibleByDictionaryLiteral {
  public private(set) var lines: [HeaderField]

  public init(_ lines: [HeaderField] = []) { self.lines = lines }

  public init(dictionaryLiteral elements: (String, String)...) {
    lines = elements.map { HeaderField($0, $1) }
  }

  public var isEmpty: Bool { lines.isEmpty }

  /// Bytes of all names and values.
  public var byteCount: Int { lines.reduce(0) { $0 + $1.byteCount } }

  /// The field's value, with repeated lines joined by `, ` (RFC 9110 section 5.2). Setting it replaces all lines of the
  /// name. `name` must be in lower case.
  public subscript(name: String) -> String? {
    get {
      var joined: String?
      for line in lines where line.isNamed(name) {
        joined = joined.map { "\($0), \(line.value)" } ?? line.value
      }
      return joined
    }
    set {
      guard let newValue else { return remove(name) }
      if let first = lines.firstIndex(where: { $0.isNamed(name) }) {
        lines[first].value = newValue
        var seen = false
        lines.removeAll { line in
          guard line.isNamed(name) else { return false }
          defer { seen = true }
          return seen
        }
      } else {
        lines.append(HeaderField(name, newValue))
      }
    }
  }

  /// The values of all lines of `name` (lower case), not joined, as needed for `set-cookie`.
  public func values(of name: String) -> [String] { lines.lazy.filter { $0.isNamed(name) }.map { $0.value } }

  public mutating func append(_ name: String, _ value: String) { lines.append(HeaderField(name, value)) }

  public mutating func remove(_ name: String) { lines.removeAll { $0.isNamed(name) } }
}

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
