extension JSON {
  /// How deep arrays and objects may be nested; deeper text is refused, so that no text exhausts the stack.
  public static let maximumDepth = 512

  /// Parses a text that is exactly one JSON value in UTF-8, white space around it aside (RFC 8259).
  ///
  /// Beyond the grammar it refuses what a receiver could not pass on as it came: equal names in one object, escapes of
  /// lone surrogates (both as RFC 7493 has it), and numbers too large for a `Double`.
  public init(parsing text: UnsafeRawBufferPointer) throws(JSONError) {
    var parser = JSONParser(text)
    self = try parser.wholeText()
  }

  /// Parses a text held in an array; see `init(parsing:)` for a buffer.
  public init(parsing text: [UInt8]) throws(JSONError) {
    let value = text.withUnsafeBytes { buffer in
      Result { () throws(JSONError) in try JSON(parsing: buffer) }
    }
    self = try value.get()
  }
}

/// A recursive descent through one text.
///
/// The buffer is only read through `peek`, which knows where it ends, and through the scans of `ByteScan.swift`, which
/// stop there; `position` only moves past bytes that one of them has seen.
struct JSONParser {
  let text: UnsafeRawBufferPointer
  var position = 0
  private var depth = 0

  init(_ text: UnsafeRawBufferPointer) { self.text = text }

  mutating func wholeText() throws(JSONError) -> JSON {
    skipSpace()
    let value = try value()
    skipSpace()
    guard position == text.count else { throw error("text after the value") }
    return value
  }

  /// The next byte, or NUL at the end, which is no part of any token and not allowed in a string either.
  @inline(__always)
  func peek() -> UInt8 { position < text.count ? text[position] : 0 }

  func error(_ reason: String, at offset: Int? = nil) -> JSONError {
    JSONError(reason: position < text.count ? reason : "the text ends too early", offset: offset ?? position)
  }

  @inline(__always)
  private mutating func skipSpace() {
    while true {
      switch peek() {
      case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): position += 1
      default: return
      }
    }
  }

  private mutating func accept(_ byte: UInt8) -> Bool {
    guard peek() == byte else { return false }
    position += 1
    return true
  }

  private mutating func value() throws(JSONError) -> JSON {
    switch peek() {
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "{"): return .object(try object())
    case UInt8(ascii: "["): return .array(try array())
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    case UInt8(ascii: "t"): return try literal("true", .bool(true))
    case UInt8(ascii: "f"): return try literal("false", .bool(false))
    case UInt8(ascii: "n"): return try literal("null", .null)
    default: throw error("no value where one is due")
    }
  }

  private mutating func literal(_ word: StaticString, _ value: JSON) throws(JSONError) -> JSON {
    for index in 0..<word.utf8CodeUnitCount {
      guard accept(word.utf8Start[index]) else { throw error("an unknown word") }
    }
    return value
  }

  private mutating func enter() throws(JSONError) {
    depth += 1
    guard depth <= JSON.maximumDepth else { throw error("nested more than \(JSON.maximumDepth) deep") }
    position += 1
  }

  private mutating func array() throws(JSONError) -> [JSON] {
    try enter()
    defer { depth -= 1 }
    var elements: [JSON] = []
    skipSpace()
    if accept(UInt8(ascii: "]")) { return elements }
    repeat {
      skipSpace()
      elements.append(try value())
      skipSpace()
    } while accept(UInt8(ascii: ","))
    guard accept(UInt8(ascii: "]")) else { throw error("neither , nor ] after an element") }
    return elements
  }

  private mutating func object() throws(JSONError) -> JSONObject {
    try enter()
    defer { depth -= 1 }
    skipSpace()
    if accept(UInt8(ascii: "}")) { return JSONObject() }
    var members: [JSONObject.Member] = []
    members.reserveCapacity(4)
    var names = MemberNames()
    repeat {
      skipSpace()
      let start = position
      guard peek() == UInt8(ascii: "\"") else { throw error("no name where one is due") }
      let name = try string()
      guard names.add(name, to: members) else { throw error("two members of one name", at: start) }
      skipSpace()
      guard accept(UInt8(ascii: ":")) else { throw error("no : after a name") }
      skipSpace()
      members.append(JSONObject.Member(name: name, value: try value()))
      skipSpace()
    } while accept(UInt8(ascii: ","))
    guard accept(UInt8(ascii: "}")) else { throw error("neither , nor } after a member") }
    return JSONObject(distinct: members)
  }
}

/// Finds equal names in one object: by looking at all names while they are few, by hashing when they are many.
private struct MemberNames {
  private static let few = 16
  private var hashed: Set<ExactName> = []

  /// False when one of `members`, which are all that were added before, has that name already.
  mutating func add(_ name: String, to members: [JSONObject.Member]) -> Bool {
    if members.count < Self.few {
      for member in members where member.name.hasSameBytes(as: name) { return false }
      return true
    }
    if hashed.isEmpty { hashed = Set(members.lazy.map { ExactName(string: $0.name) }) }
    return hashed.insert(ExactName(string: name)).inserted
  }

  /// Swift's hash of a string is the same for equal bytes, and seeded, so that a sender cannot make names collide.
  private struct ExactName: Hashable {
    let string: String
    static func == (one: Self, other: Self) -> Bool { one.string.hasSameBytes(as: other.string) }
  }
}
