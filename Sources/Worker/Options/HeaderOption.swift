internal import HTTPTransport
internal import HTTPTypes

/// The value of one `--header`, in curl's syntax.
enum HeaderOption {
  /// `Name: value`, or `Name;` for a field with an empty value.
  case sent(HeaderField)
  /// `Name:`, which leaves out a field that the worker would send by default. In lower case.
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

  /// The reason why the text is refused, without any field's value, or nil.
  static func problem(in text: String) -> String? {
    if text.hasPrefix("@") { return "must be 'Name: value'; fields cannot be read from a file ('@file')" }
    return switch HeaderOption(text) {
    case .sent(let field): RequestHeaders.problem(in: HeaderFields([field])).map { "cannot be sent: \($0)" }
    case .leftOut(let name): RequestHeaders.problem(inLeavingOut: name).map { "cannot be used: \($0)" }
    case nil: "must be 'Name: value', 'Name;' (sent empty) or 'Name:' (left out)"
    }
  }
}
