internal import Text

/// Writes compact JSON in pure ASCII, piece by piece, without building a tree.
///
/// It writes commas and escapes strings. The caller must match begins and ends, and write members in objects only. A
/// name given as a `StaticString` must need no escape.
public struct JSONWriter: ~Copyable {
  private var output: OutputText
  private var needsComma = false

  /// - Parameter capacity: bytes that can be written before the buffer grows.
  public init(capacity: Int = 0) { output = OutputText(capacity: capacity) }

  /// The bytes written so far.
  public var bytes: [UInt8] { output.bytes }

  /// The bytes written, with a line feed at the end.
  public consuming func line() -> [UInt8] {
    output.append(UInt8(ascii: "\n"))
    return output.bytes
  }

  // MARK: Structure

  public mutating func beginObject() { open(UInt8(ascii: "{")) }
  public mutating func endObject() { close(UInt8(ascii: "}")) }
  public mutating func beginArray() { open(UInt8(ascii: "[")) }
  public mutating func endArray() { close(UInt8(ascii: "]")) }

  /// Writes an object with the members that `write` writes.
  @inlinable public mutating func object(_ write: (inout JSONWriter) -> Void) {
    beginObject()
    write(&self)
    endObject()
  }

  @inlinable public mutating func object(_ name: StaticString, _ write: (inout JSONWriter) -> Void) {
    key(name)
    object(write)
  }

  /// Writes an array with the elements that `write` writes.
  @inlinable public mutating func array(_ name: StaticString, _ write: (inout JSONWriter) -> Void) {
    key(name)
    beginArray()
    write(&self)
    endArray()
  }

  /// Writes a member's name; its value must follow.
  public mutating func key(_ name: StaticString) {
    let length = name.utf8CodeUnitCount
    let needsComma = needsComma
    output.append(atMost: length + 4) { start in
      var end = start
      if needsComma {
        end.pointee = UInt8(ascii: ",")
        end += 1
      }
      end[0] = UInt8(ascii: "\"")
      UnsafeMutableRawPointer(end + 1).copyMemory(from: name.utf8Start, byteCount: length)
      end[length + 1] = UInt8(ascii: "\"")
      end[length + 2] = UInt8(ascii: ":")
      return end + length + 3 - start
    }
    self.needsComma = false
  }

  /// Writes a member's name that is not a constant; its value must follow.
  public mutating func key(escaping name: String) {
    value(name)
    output.append(UInt8(ascii: ":"))
    needsComma = false
  }

  private mutating func open(_ bracket: UInt8) {
    if needsComma { output.append(UInt8(ascii: ",")) }
    output.append(bracket)
    needsComma = false
  }

  private mutating func close(_ bracket: UInt8) {
    output.append(bracket)
    needsComma = true
  }

  @inline(__always)
  private mutating func separate() {
    if needsComma { output.append(UInt8(ascii: ",")) }
    needsComma = true
  }

  // MARK: Values

  public mutating func null() {
    separate()
    output.append("null")
  }

  public mutating func value(_ value: Bool) {
    separate()
    output.append(value ? "true" : "false")
  }

  public mutating func value(_ value: Int) { self.value(Int64(value)) }

  public mutating func value(_ value: Int64) {
    separate()
    output.append(decimal: value)
  }

  /// Writes a number of thousandths, which must not be negative, as a decimal: 1250 as `1.250`, 2000 as `2`.
  public mutating func value(thousandths value: Int64) {
    self.value(value / 1000)
    let rest = value.magnitude % 1000
    guard rest > 0 else { return }
    output.append(".")
    if rest < 100 { output.append(rest < 10 ? "00" : "0") }
    output.append(decimal: Int64(rest))
  }

  /// Writes the shortest decimal that reads back as the same number. A number that is not finite becomes `null`.
  public mutating func value(_ value: Double) {
    guard value.isFinite else { return null() }
    separate()
    var text = value.description
    text.withUTF8 { output.append(UnsafeRawBufferPointer($0)) }
  }

  public mutating func value(_ value: String) {
    separate()
    output.append(quoting: value)
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

  /// Writes `data` as a base64 string (RFC 4648 section 4).
  public mutating func value(base64 data: UnsafeRawBufferPointer) {
    separate()
    output.append(UInt8(ascii: "\""))
    output.append(atMost: Base64.length(of: data.count)) { Base64.encode(data, to: $0) }
    output.append(UInt8(ascii: "\""))
  }

  /// Writes a value that is JSON text already.
  public mutating func append(raw json: [UInt8]) {
    separate()
    json.withUnsafeBytes { output.append($0) }
  }

  // MARK: Members

  /// Writes all members of `object` into the open object.
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

  public mutating func member(_ name: StaticString, thousandths value: Int64) {
    key(name)
    self.value(thousandths: value)
  }

  public mutating func member(_ name: StaticString, _ value: Double) {
    key(name)
    self.value(value)
  }

  public mutating func member(_ name: StaticString, _ value: String) {
    key(name)
    self.value(value)
  }

  /// Writes a constant text, which must need no escape.
  public mutating func member(_ name: StaticString, constant text: StaticString) {
    key(name)
    separate()
    output.append(UInt8(ascii: "\""))
    output.append(text)
    output.append(UInt8(ascii: "\""))
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
