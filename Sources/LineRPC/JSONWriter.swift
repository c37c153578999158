/// Writes compact JSON in pure ASCII, piece by piece, without building a tree.
///
/// It puts the commas and escapes strings; that begins and ends match, and that members stand in objects only, is the
/// caller's part. A name given as a `StaticString` must need no escape.
public struct JSONWriter: Sendable {
  /// What was written so far.
  public private(set) var bytes: [UInt8]
  private var needsComma = false

  /// - Parameter capacity: bytes that can be written before the buffer grows.
  public init(capacity: Int = 0) {
    bytes = []
    bytes.reserveCapacity(capacity)
  }

  /// What was written, as a line.
  public consuming func line() -> [UInt8] {
    bytes.append(UInt8(ascii: "\n"))
    return bytes
  }

  // MARK: Structure

  public mutating func beginObject() { open(UInt8(ascii: "{")) }
  public mutating func endObject() { close(UInt8(ascii: "}")) }
  public mutating func beginArray() { open(UInt8(ascii: "[")) }
  public mutating func endArray() { close(UInt8(ascii: "]")) }

  /// Writes a member's name; its value has to follow.
  public mutating func key(_ name: StaticString) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    append(name)
    bytes.append(UInt8(ascii: "\""))
    bytes.append(UInt8(ascii: ":"))
    needsComma = false
  }

  /// Writes a member's name that is only known at run time; its value has to follow.
  public mutating func key(escaping name: String) {
    value(name)
    bytes.append(UInt8(ascii: ":"))
    needsComma = false
  }

  private mutating func open(_ bracket: UInt8) {
    if needsComma { bytes.append(UInt8(ascii: ",")) }
    bytes.append(bracket)
    needsComma = false
  }

  private mutating func close(_ bracket: UInt8) {
    bytes.append(bracket)
    needsComma = true
  }

  @inline(__always)
  private mutating func separate() {
    if needsComma { bytes.append(UInt8(ascii: ",")) }
    needsComma = true
  }

  private mutating func append(_ text: StaticString) {
    bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  // MARK: Values

  public mutating func null() {
    separate()
    append("null")
  }

  public mutating func value(_ value: Bool) {
    separate()
    append(value ? "true" : "false")
  }

  public mutating func value(_ value: Int) { self.value(Int64(value)) }

  public mutating func value(_ value: Int64) {
    separate()
    bytes.append(decimal: value)
  }

  /// Writes the shortest decimal that reads back as the same number; what is not finite becomes `null`.
  public mutating func value(_ value: Double) {
    guard value.isFinite else { return null() }
    separate()
    bytes.append(contentsOf: value.description.utf8)
  }

  public mutating func value(_ value: String) {
    separate()
    bytes.append(quoting: value)
  }

  public mutating func value(_ value: JSON) {
    switch value {
    case .null: null()
    case .bool(let value): self.value(value)
    case .integer(let value): self.value(value)
    case .number(let value): self.value(value)
    case .string(let value): self.value(value)
    case .array(let elements):
      beginArray()
      for element in elements { self.value(element) }
      endArray()
    case .object(let object):
      beginObject()
      members(of: object)
      endObject()
    }
  }

  /// Writes `data` as a string in base64 (RFC 4648 section 4).
  public mutating func value(base64 data: UnsafeRawBufferPointer) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    bytes.append(base64: data)
    bytes.append(UInt8(ascii: "\""))
  }

  /// Writes a value that is JSON text already.
  public mutating func append(raw json: [UInt8]) {
    separate()
    bytes.append(contentsOf: json)
  }

  // MARK: Members

  /// Writes all members of `object` into the object that is open.
  public mutating func members(of object: JSONObject) {
    for member in object.members {
      key(escaping: member.name)
      value(member.value)
    }
  }

  public mutating func member(_ name: StaticString, _ value: Bool) {
    key(name)
    self.value(value)
  }

  public mutating func member(_ name: StaticString, _ value: Int) {
    key(name)
    self.value(value)
  }

  public mutating func member(_ name: StaticString, _ value: Int64) {
    key(name)
    self.value(value)
  }

  public mutating func member(_ name: StaticString, _ value: Double) {
    key(name)
    self.value(value)
  }

  public mutating func member(_ name: StaticString, _ value: String) {
    key(name)
    self.value(value)
  }

  /// Writes a fixed text, which must need no escape.
  public mutating func member(_ name: StaticString, constant text: StaticString) {
    key(name)
    separate()
    bytes.append(UInt8(ascii: "\""))
    append(text)
    bytes.append(UInt8(ascii: "\""))
  }

  public mutating func member(_ name: StaticString, _ value: JSON) {
    key(name)
    self.value(value)
  }

  public mutating func member(_ name: StaticString, base64 data: UnsafeRawBufferPointer) {
    key(name)
    value(base64: data)
  }

  public mutating func member(_ name: StaticString, base64 data: [UInt8]) {
    key(name)
    data.withUnsafeBytes { value(base64: $0) }
  }
}
