public import Text

/// The id of a request, by which a host matches responses to requests.
public enum RequestID: Hashable, Sendable {
  /// Within ±(2^53 − 1), which every JSON library keeps exactly.
  case integer(Int64)
  /// At most 256 bytes of UTF-8.
  case string(ExactString)

  /// Fails for every value that is not a valid id, `null` included.
  public init?(_ value: JSON) {
    switch value {
    case .integer(let number) where number.magnitude < 1 << 53: self = .integer(number)
    case .string(let text) where text.utf8.count <= 256: self = .string(ExactString(text))
    default: return nil
    }
  }

  public var json: JSON {
    switch self {
    case .integer(let number): .integer(number)
    case .string(let string): .string(string.text)
    }
  }
}

extension JSONWriter {
  public mutating func value(_ id: RequestID) {
    switch id {
    case .integer(let number): value(number)
    case .string(let string): value(string.text)
    }
  }

  public mutating func member(_ name: StaticString, _ id: RequestID) {
    key(name)
    value(id)
  }
}
