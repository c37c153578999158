internal import Text

/// A JSON value (RFC 8259).
public enum JSON: Sendable, Equatable {
  case null
  case bool(Bool)
  /// A literal that has neither fraction nor exponent and fits 64 bits. `1.0` and `1e3` are numbers.
  case integer(Int64)
  /// Always finite if it comes from the parser.
  case number(Double)
  case string(String)
  case array([JSON])
  case object(JSONObject)
}

/// The members of a JSON object, in their order. In a parsed object, their names are distinct.
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

  /// The names of `members` must be distinct.
  init(distinct members: [Member]) { self.members = members }

  public var isEmpty: Bool { members.isEmpty }

  /// The value of the member with that name, compared byte by byte. Takes time in proportion to the number of members.
  public subscript(_ name: String) -> JSON? {
    for member in members where member.name.hasSameBytes(as: name) { return member.value }
    return nil
  }

  /// Appends a member, or replaces the value of the one with the same name.
  public mutating func set(_ name: String, _ value: JSON) {
    if let index = members.firstIndex(where: { $0.name.hasSameBytes(as: name) }) {
      members[index].value = value
    } else {
      members.append(Member(name: name, value: value))
    }
  }
}

/// The reason why a text is not a JSON value.
public struct JSONError: Error, Sendable, Equatable {
  /// For people. It quotes nothing of the text.
  public let reason: String
  /// In bytes from the start of the text.
  public let offset: Int

  public init(reason: String, offset: Int) {
    self.reason = reason
    self.offset = offset
  }
}
