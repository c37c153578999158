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
  /// 5.5), so that different values stay different.
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
        ?? String(String.UnicodeScalarView(value.lazy.map { Unicode.Scalar($0) }))
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
