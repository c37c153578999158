internal import HTTPTransport
internal import HTTPTypes

/// What one `--header` says, as curl reads it.
enum HeaderOption {
  /// `Name: value`, or `Name;` for one without a value.
  case sent(HeaderField)
  /// `Name:`, which leaves out what the worker would send by itself. In lower case.
  case leftOut(String)

  init?(_ text: String) {
    if let colon = text.firstIndex(of: ":") {
      let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
      let field = HeaderField(String(text[..<colon]), String(value))
      self = value.isEmpty ? .leftOut(field.name) : .sent(field)
    } else if text.hasSuffix(";") {
      self = .sent(HeaderField(String(text.dropLast()), ""))
    } else {
      return nil
    }
  }

  /// In words that quote no value; nil when there is nothing wrong.
  static func problem(in text: String) -> String? {
    if text.hasPrefix("@") { return "reads no file ('@file'): give each field by itself, as 'Name: value'" }
    return switch HeaderOption(text) {
    case .sent(let field): RequestHeaders.problem(in: HeaderFields([field])).map { "cannot be sent: \($0)" }
    case .leftOut(let name): RequestHeaders.problem(inLeavingOut: name)
    case nil: "is no 'Name: value', nor 'Name;' for an empty one or 'Name:' to leave one out"
    }
  }
}
