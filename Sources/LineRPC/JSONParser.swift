internal import Text

extension JSON {
  /// Largest depth of nested arrays and objects. Deeper text is refused, so that no text can exhaust the stack.
  public static let maximumDepth = 512

  /// Parses a text that is exactly one JSON value in UTF-8, with optional white space around it (RFC 8259).
  ///
  /// It also refuses text that a receiver could not pass on unchanged: equal names in one object, escapes of lone
  /// surrogates (both as in RFC 7493), and numbers out of the range of `Double`.
  public init(parsing text: UnsafeRawBufferPointer) throws(JSONError) {
    var parser = JSONParser(text)
    self = try parser.wholeText()
  }

  /// Parses the bytes of an array, like `init(parsing:)` of a buffer.
  public init(parsing text: [UInt8]) throws(JSONError) {
    let value = text.withUnsafeBytes { buffer in
      Result { () throws(JSONError) in try JSON(parsing: buffer) }
    }
    self = try value.get()
  }
}

/// Parses one text from front to back. Open containers are on an explicit stack, so that depth takes no stack of the
/// thread.
///
/// The buffer is read only through `peek`, which checks its end, and through the scans of `ByteScan.swift`, which stop
/// there; `position` moves only past bytes that one of them has seen.
struct JSONParser {
  let text: UnsafeRawBufferPointer
  var position = 0

  init(_ text: UnsafeRawBufferPointer) { self.text = text }

  mutating func wholeText() throws(JSONError) -> JSON {
    skipSpace()
    let value = try value()
    skipSpace()
    guard position == text.count else { throw error("unexpected text after the value") }
    return value
  }

  /// The next byte, or NUL at the end. NUL is not part of any token, and not allowed in a string.
  @inline(__always)
  func peek() -> UInt8 { position < text.count ? text[position] : 0 }

  func error(_ reason: String) -> JSONError {
    JSONError(reason: position < text.count ? reason : "unexpected end of the text", offset: position)
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
    var open: [Container] = []
    open.reserveCapacity(2)
    while true {
      var value: JSON
      switch peek() {
      case UInt8(ascii: "\""): value = .string(try string())
      case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): value = try number()
      case UInt8(ascii: "t"): value = try literal("true", .bool(true))
      case UInt8(ascii: "f"): value = try literal("false", .bool(false))
      case UInt8(ascii: "n"): value = try literal("null", .null)
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        guard open.count < JSON.maximumDepth else { throw error("more than \(JSON.maximumDepth) levels of nesting") }
        var container = Container(isObject: peek() == UInt8(ascii: "{"))
        position += 1
        skipSpace()
        if !accept(container.end) {
          try expectValue(in: &container)
          open.append(container)
          continue
        }
        value = container.value
      default: throw error("expected a value")
      }
      repeat {
        guard let last = open.indices.last else { return value }
        open[last].add(value)
        skipSpace()
        if accept(UInt8(ascii: ",")) {
          skipSpace()
          try expectValue(in: &open[last])
          break
        }
        guard accept(open[last].end) else { throw error("expected a comma or a closing bracket") }
        value = open.removeLast().value
      } while true
    }
  }

  /// Parses the text before a value: in an object, its name.
  private mutating func expectValue(in container: inout Container) throws(JSONError) {
    guard container.isObject else { return }
    let start = position
    guard peek() == UInt8(ascii: "\"") else { throw error("expected a member name in double quotes") }
    let name = try string()
    guard container.setName(name) else { throw JSONError(reason: "duplicate member name", offset: start) }
    skipSpace()
    guard accept(UInt8(ascii: ":")) else { throw error("expected a colon after the member name") }
    skipSpace()
  }

  private mutating func literal(_ word: StaticString, _ value: JSON) throws(JSONError) -> JSON {
    for index in 0..<word.utf8CodeUnitCount {
      guard accept(word.utf8Start[index]) else { throw error("expected true, false or null") }
    }
    return value
  }
}

/// An array or object whose end has not been parsed yet.
private struct Container {
  let isObject: Bool
  private var elements: [JSON] = []
  private var members: [JSONObject.Member] = []
  private var names = MemberNames()
  private var name = ""

  init(isObject: Bool) { self.isObject = isObject }

  var end: UInt8 { isObject ? UInt8(ascii: "}") : UInt8(ascii: "]") }

  var value: JSON { isObject ? .object(JSONObject(distinct: members)) : .array(elements) }

  /// Sets the name of the next value. Returns false if the name is taken.
  mutating func setName(_ name: String) -> Bool {
    self.name = name
    return names.add(name, to: members)
  }

  mutating func add(_ value: JSON) {
    if isObject {
      if members.isEmpty { members.reserveCapacity(4) }
      members.append(JSONObject.Member(name: name, value: value))
    } else {
      elements.append(value)
    }
  }
}

/// Detects equal names in one object: by comparing all names while they are few, by hashing beyond that.
private struct MemberNames {
  private static let few = 16
  private var hashed: Set<ExactString> = []

  /// Returns false if one of `members`, which must be all members added before, already has that name.
  mutating func add(_ name: String, to members: [JSONObject.Member]) -> Bool {
    if members.count < Self.few {
      for member in members where member.name.hasSameBytes(as: name) { return false }
      return true
    }
    if hashed.isEmpty { hashed = Set(members.lazy.map { ExactString($0.name) }) }
    return hashed.insert(ExactString(name)).inserted
  }
}
