internal import HTTPTypes
internal import LineRPC

/// The members of a JSON object in a recording, with errors that name the member.
struct Members {
  private let object: JSONObject

  init(_ value: JSON) throws(RecordingError) {
    guard case .object(let object) = value else { throw RecordingError("must be a JSON object") }
    self.object = object
  }

  func has(_ name: String) -> Bool { object[name] != nil }

  func value(_ name: String) throws(RecordingError) -> JSON {
    guard let value = object[name] else { throw RecordingError("has no member \(name)") }
    return value
  }

  func integer(_ name: String) throws(RecordingError) -> Int64 {
    guard case .integer(let number) = try value(name) else { throw RecordingError("\(name) must be an integer") }
    return number
  }

  func integer(ifPresent name: String) throws(RecordingError) -> Int64? { has(name) ? try integer(name) : nil }

  /// The number of a transfer, a lookup, a decode or a source.
  func number(_ name: String) throws(RecordingError) -> UInt64 {
    guard let number = UInt64(exactly: try integer(name)) else {
      throw RecordingError("\(name) must not be negative")
    }
    return number
  }

  func text(_ name: String) throws(RecordingError) -> String {
    guard case .string(let text) = try value(name) else { throw RecordingError("\(name) must be a string") }
    return text
  }

  func text(ifPresent name: String) throws(RecordingError) -> String? { has(name) ? try text(name) : nil }

  func flag(_ name: String) throws(RecordingError) -> Bool {
    guard case .bool(let flag) = try value(name) else { throw RecordingError("\(name) must be true or false") }
    return flag
  }

  func array(_ name: String) throws(RecordingError) -> [JSON] {
    guard case .array(let elements) = try value(name) else { throw RecordingError("\(name) must be an array") }
    return elements
  }

  func choice<Choice: RawRepresentable & CaseIterable>(_ name: String) throws(RecordingError) -> Choice
  where Choice.RawValue == String {
    let text = try text(name)
    guard let choice = Choice(rawValue: text) else {
      let known = Choice.allCases.map { $0.rawValue }.joined(separator: ", ")
      throw RecordingError("\(name) must be one of \(known), not \(text.quotable)")
    }
    return choice
  }

  func duration(ifPresent name: String) throws(RecordingError) -> Duration? {
    try integer(ifPresent: name).map { .nanoseconds($0) }
  }

  /// Header fields as an array of names and values.
  func fields(_ name: String) throws(RecordingError) -> HeaderFields {
    var fields = HeaderFields()
    for element in try array(name) {
      guard case .array(let pair) = element, pair.count == 2, case .string(let field) = pair[0],
        case .string(let value) = pair[1]
      else { throw RecordingError("\(name) must be an array of names and values") }
      fields.append(field, value)
    }
    return fields
  }
}

extension JSON {
  init(_ fields: HeaderFields) {
    self = .array(fields.lines.map { .array([.string($0.name), .string($0.value)]) })
  }

  init(_ number: UInt64) { self = .integer(Int64(number)) }
}

extension JSONObject {
  /// Sets a member unless the value is nil.
  mutating func set(_ name: String, _ value: Int64?) { if let value { set(name, .integer(value)) } }
}
