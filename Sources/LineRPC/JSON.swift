internal import Text

/// A JSON value (RFC 8259).
public enum JSON: Sendable, Equatable {
  case null
  case bool(Bool)
  /// A literal without fraction and exponent that fits 64 bits. `1.0` and `1e3` are numbers.
  case integer(Int64)
  /// Always finite when it comes from a parser.
  case number(Double)
  case string(String)
  case array([JSON])
  case object(JSONObject)
}

/// The members of a JSON object, in the order in which they came. No two have the same name when it was parsed.
public struct JSONObject: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  public struct Member: Sendable, Equatable {
    public var name: String
    public var value: JSON

    public init(name: String, value: JSON) {
      self.name = name
      self.value = value
    }
  }

  public private(set) var members: [Member]

  public init() { members = [] }

  public init(dictionaryLiteral elements: (String, JSON)...) {
    members = elements.map { Member(name: $0.0, value: $0.1) }
  }

  /// The caller vouches for distinct names.
  init(distinct members: [Member]) { self.members = members }

  public var isEmpty: Bool { members.isEmpty }

  /// The value of the member of that name, compared byte by byte. Takes time in proportion to the number of members.
  public subscript(_ name: String) -> JSON? {
    for member in members where member.name.hasSameBytes(as: name) { return member.value }
    return nil
  }

  /// Adds a member at the end, or replaces the one of the same name where it stands.
  public mutating func set(_ name: String, _ value: JSON) {
    if let index = members.firstIndex(where: { $0.name.hasSameBytes(as: name) }) {
      members[index].value = value
    } else {
      members.append(Member(name: name, value: value))
    }
  }
}

/// Why a text is no JSON value.
public struct JSONError: Error, Sendable, Equatable {
  /// For people; it holds nothing of the text.
  public let reason: String
  /// In bytes from the start of the text.
  public let offset: Int

  public init(reason: String, offset: Int) {
    self.reason = reason
    self.offset = offset
  }
}
