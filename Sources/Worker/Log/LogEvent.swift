internal import LineRPC

enum LogLevel: String, CaseIterable, Comparable, Sendable {
  case error, warning, info, debug

  static func < (left: Self, right: Self) -> Bool { left.severity < right.severity }

  private var severity: Int {
    switch self {
    case .error: 0
    case .warning: 1
    case .info: 2
    case .debug: 3
    }
  }
}

/// Something that happened, for the log: a name and fields for programs, and a message for people.
///
/// Contains no query strings, user info, header values, cache keys or values of options.
struct LogEvent: Sendable {
  let name: Name
  let level: LogLevel
  let message: String
  let fields: [(name: Field, value: JSON)]

  /// - Parameters:
  ///   - level: nil for the level of the name.
  ///   - fields: those whose value is nil are left out.
  init(_ name: Name, level: LogLevel? = nil, _ message: String, _ fields: [(Field, JSON?)] = []) {
    (self.name, self.level, self.message) = (name, level ?? name.level, message)
    self.fields = fields.compactMap { field, value in value.map { (field, $0) } }
    assert(
      self.fields.allSatisfy { field, _ in name.fields.contains(field) }, "a field is missing in the list of \(name)")
  }

  subscript(_ field: Field) -> JSON? { fields.first { $0.name == field }?.value }
}

extension JSON {
  static func count(_ value: Int) -> JSON { .integer(Int64(value)) }

  static func strings(_ texts: [String]) -> JSON { .array(texts.map(JSON.string)) }
}
