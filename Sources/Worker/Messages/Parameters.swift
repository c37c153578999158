internal import LineRPC
internal import Text

/// The members of a request's `params`, read by name. The error for an invalid member names it.
struct Parameters {
  private let object: JSONObject
  /// The prefix of member names in errors: empty, or the name of the member that contains the object, and a dot.
  private let prefix: String
  /// A filter with one bit for the length of each name. Most members that are asked for are absent, and the filter
  /// saves the search for them.
  private let lengths: UInt64

  /// - Parameter hint: ends the error for a member that is not in `known`; by default with the nearest of these.
  init(
    _ object: JSONObject, known: [String], prefix: String = "", hint: ((String) -> String)? = nil
  ) throws(RPCError) {
    var lengths: UInt64 = 0
    for member in object.members {
      guard known.contains(member.name) else {
        let path = prefix + member.name
        let hint = hint?(member.name) ?? Text.hint(for: member.name, among: known)
        throw .invalidParams(member: path, "unknown parameter \(path.quotable)\(hint)")
      }
      lengths |= Self.bit(forLengthOf: member.name)
    }
    self.object = object
    self.prefix = prefix
    self.lengths = lengths
  }

  private static func bit(forLengthOf name: String) -> UInt64 { 1 &<< UInt64(min(name.utf8.count, 63)) }

  /// The name of a member in errors.
  func path(_ name: String) -> String { prefix + name }

  /// The error for a member that breaks a rule.
  ///
  /// - Parameter rule: continues a sentence that begins with the member.
  func refusal(of name: String, _ rule: String) -> RPCError { .refusal(of: path(name), rule) }

  func has(_ name: String) -> Bool { value(name) != nil }

  func value(_ name: String) -> JSON? { lengths & Self.bit(forLengthOf: name) == 0 ? nil : object[name] }

  func string(_ name: String) throws(RPCError) -> String? {
    switch value(name) {
    case nil: return nil
    case .string(let text): return text
    default: throw refusal(of: name, "must be a string")
    }
  }

  func requiredString(_ name: String) throws(RPCError) -> String {
    guard let text = try string(name) else { throw refusal(of: name, "must be given") }
    return text
  }

  func absolutePath(_ name: String) throws(RPCError) -> String? {
    guard let path = try string(name) else { return nil }
    guard path.hasPrefix("/"), !path.utf8.contains(0) else { throw refusal(of: name, "must be an absolute path") }
    return path
  }

  func base64(_ name: String) throws(RPCError) -> [UInt8]? {
    guard let text = try string(name) else { return nil }
    guard let bytes = Base64.decode(text) else { throw refusal(of: name, "must be base64") }
    return bytes
  }

  /// A string of 1 to 8192 bytes as ASCII JSON, so that an answer can repeat it.
  func label(_ name: String) throws(RPCError) -> String? {
    guard let text = try string(name) else { return nil }
    guard !text.isEmpty else { throw refusal(of: name, "must not be empty") }
    guard text.asciiJSONLength <= 8192 else {
      throw refusal(of: name, "must not be longer than 8192 bytes of ASCII JSON")
    }
    return text
  }

  func flag(_ name: String) throws(RPCError) -> Bool? {
    switch value(name) {
    case nil: return nil
    case .bool(let flag): return flag
    default: throw refusal(of: name, "must be true or false")
    }
  }

  /// Refuses false for a flag that can only be true.
  func requireTrue(_ name: String) throws(RPCError) {
    guard try flag(name) == true else { throw refusal(of: name, "must be true") }
  }

  func integer(_ name: String, in range: ClosedRange<Int64>) throws(RPCError) -> Int64? {
    switch value(name) {
    case nil: return nil
    case .integer(let number) where range.contains(number): return number
    default: throw refusal(of: name, "must be an integer from \(range.lowerBound) to \(range.upperBound)")
    }
  }

  func number(_ name: String, in range: ClosedRange<Double>) throws(RPCError) -> Double? {
    switch object[name] {
    case nil: return nil
    case .integer(let number) where range.contains(Double(number)): return Double(number)
    case .number(let number) where range.contains(number): return number
    default: throw refusal(of: name, "must be a number from \(range.lowerBound) to \(range.upperBound)")
    }
  }

  func object(_ name: String) throws(RPCError) -> JSONObject? {
    switch value(name) {
    case nil: return nil
    case .object(let object): return object
    default: throw refusal(of: name, "must be an object")
    }
  }

  /// The members of an object that is a member.
  func object(_ name: String, known: [String]) throws(RPCError) -> Parameters? {
    switch value(name) {
    case nil: return nil
    case .object(let object): return try Parameters(object, known: known, prefix: path(name) + ".")
    default: throw refusal(of: name, "must be an object (members: \(known.joined(separator: ", ")))")
    }
  }

  /// The elements of an array of one or more of these names, or of any number of them.
  func names(_ name: String, among known: [String], mayBeNone: Bool = false) throws(RPCError) -> [String]? {
    guard let value = value(name) else { return nil }
    if case .array(let elements) = value, mayBeNone || !elements.isEmpty {
      let names = elements.compactMap { if case .string(let name) = $0, known.contains(name) { name } else { nil } }
      if names.count == elements.count { return names }
    }
    let number = mayBeNone ? "any" : "one or more"
    throw refusal(of: name, "must be an array of \(number) of \(known.joined(separator: ", "))")
  }

  func milliseconds(_ name: String) throws(RPCError) -> Duration? {
    guard let value = value(name) else { return nil }
    guard case .integer(let number) = value, 0...Quantity.maxMilliseconds ~= number else {
      throw refusal(of: name, "must be a number of milliseconds, an integer from 0 to \(Quantity.maxMilliseconds)")
    }
    return .milliseconds(number)
  }

  /// The case whose raw value the member has.
  func choice<Choice: RawRepresentable & CaseIterable>(
    _ name: String, _: Choice.Type = Choice.self
  ) throws(RPCError) -> Choice? where Choice.RawValue == String {
    try choice(name, of: Array(Choice.allCases))
  }

  /// The one of these cases whose raw value the member has.
  func choice<Choice: RawRepresentable>(
    _ name: String, of cases: @autoclosure () -> [Choice]
  ) throws(RPCError) -> Choice? where Choice.RawValue == String {
    try choice(name, named: cases().map { ($0.rawValue, $0) })
  }

  /// The value with the name that the member has.
  func choice<Value>(_ name: String, named values: @autoclosure () -> [(String, Value)]) throws(RPCError) -> Value? {
    guard let value = value(name) else { return nil }
    let values = values()
    if case .string(let text) = value, let found = values.first(where: { $0.0.hasSameBytes(as: text) }) {
      return found.1
    }
    throw refusal(of: name, "must be one of \(values.map(\.0).joined(separator: ", "))")
  }

  /// The name of the only one of these members that is present.
  func one(of names: [String]) throws(RPCError) -> String {
    let present = names.filter(has)
    guard present.count == 1 else {
      throw .invalidParams(
        member: path(present.count > 1 ? present[1] : names[0]),
        "exactly one of \(names.joined(separator: ", ")) must be given")
    }
    return present[0]
  }
}

extension RPCError {
  /// - Parameter rule: continues a sentence that begins with the member.
  static func refusal(of member: String, _ rule: String) -> RPCError {
    .invalidParams(member: member, "\(member) \(rule)")
  }
}

extension String {
  /// The length of the string in bytes as ASCII JSON, without quotes.
  var asciiJSONLength: Int {
    unicodeScalars.reduce(0) { length, scalar in
      switch scalar.value {
      case 0x22, 0x5C: length + 2
      case 0x20..<0x7F: length + 1
      case 0..<0x1_0000: length + 6
      default: length + 12
      }
    }
  }
}
