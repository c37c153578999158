internal import LineRPC

/// The name, the category and the colour of events, as they are written.
public struct TraceLabel: Sendable {
  /// The beginning of an event: its bracket and these members.
  let text: [UInt8]

  /// - Parameter color: one of the reserved names in the colour scheme of Chromium's trace viewer.
  public init(_ name: StaticString, _ category: StaticString, color: StaticString? = nil) {
    text = Self.text(category, color) {
      $0.append(UInt8(ascii: "\""))
      $0.append(name)
      $0.append(UInt8(ascii: "\""))
    }
  }

  /// - Parameter name: any text.
  public init(text name: String, _ category: StaticString, color: StaticString? = nil) {
    text = Self.text(category, color) { $0.append(quoting: name.cut) }
  }

  private static func text(
    _ category: StaticString, _ color: StaticString?, _ appendName: (inout OutputText) -> Void
  ) -> [UInt8] {
    var text = OutputText(capacity: 128)
    text.append("{\"name\":")
    appendName(&text)
    text.append(",\"cat\":\"")
    text.append(category)
    if let color {
      text.append("\",\"cname\":\"")
      text.append(color)
    }
    text.append("\",")
    return text.bytes
  }
}

/// The arguments of an event, which viewers show when it is selected.
public struct TraceArguments: Sendable, ExpressibleByDictionaryLiteral {
  public enum Value: Sendable {
    case number(Int64)
    case text(String)
  }

  /// The members, without braces.
  let text: [UInt8]

  public init(dictionaryLiteral members: (StaticString, Value)...) {
    self.init { arguments in
      for (name, value) in members {
        switch value {
        case .number(let number): arguments.append(name, number)
        case .text(let text): arguments.append(name, text)
        }
      }
    }
  }

  /// - Parameter build: appends the arguments.
  public init(_ build: (inout Builder) -> Void) {
    var builder = Builder()
    build(&builder)
    text = builder.text.bytes
  }

  public struct Builder: ~Copyable {
    fileprivate var text = OutputText(capacity: 256)

    public mutating func append(_ name: StaticString, _ number: Int64) {
      begin(name)
      text.append(decimal: number)
    }

    public mutating func append(_ name: StaticString, _ value: String) {
      begin(name)
      text.append(quoting: value.cut)
    }

    private mutating func begin(_ name: StaticString) {
      text.append(text.count == 0 ? "\"" : ",\"")
      text.append(name)
      text.append("\":")
    }
  }
}

extension String {
  /// An event with several texts of this length fits into a page.
  private static var maxLength: Int { 400 }

  /// The text, cut if it is longer than `maxLength` bytes.
  fileprivate var cut: String {
    utf8.count <= Self.maxLength ? self : String(unicodeScalars.prefix(Self.maxLength / 4)) + "..."
  }
}
