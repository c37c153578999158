internal import HTTPTypes
internal import LineRPC
internal import Loading
internal import Text

/// The option that is refused, and the reason.
public struct OptionError: Error {
  public let option: String
  /// Continues a sentence that begins with the option.
  public let message: String
  /// The value of `--log-format` before the refused option.
  var logFormat = LogFormat.text
}

extension Options {
  public enum Invocation {
    case run(Options)
    case help, version, describe
    case selfTest(Options)
    /// A command on a cache directory, with the arguments after `cache`.
    case cache([String])
    /// The arguments after `replay`.
    case replay([String])
  }

  /// Parses the arguments of a command line, without the program's name.
  public static func parse(_ arguments: [String]) throws(OptionError) -> Invocation {
    var options = Options()
    do throws(OptionError) {
      return try parse(arguments, into: &options)
    } catch {
      var error = error
      error.logFormat = options.logFormat
      throw error
    }
  }

  private static func parse(_ arguments: [String], into options: inout Options) throws(OptionError) -> Invocation {
    var isSelfTest = false
    var rest = arguments[...]
    if rest.first == "cache" { return .cache(Array(rest.dropFirst())) }
    if rest.first == "replay" { return .replay(Array(rest.dropFirst())) }
    while let argument = rest.popFirst() {
      switch argument {
      case "--help", "-h": return .help
      case "--version": return .version
      case "--describe": return .describe
      case "--self-test":
        isSelfTest = true
        continue
      default: break
      }
      guard argument.hasPrefix("--") else {
        let hint =
          nearestOption(to: argument) ?? nearestWord(to: argument)
          ?? "requests are read from standard input (see --help)"
        throw OptionError(option: argument.quotable, message: "is not an option; \(hint)")
      }
      let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let definition = OptionDefinition.all.first(where: { $0.name == parts[0] }) else {
        if commands.contains(String(parts[0])) {
          throw OptionError(option: "--\(parts[0])", message: "must not have a value")
        }
        let hint = nearestOption(to: argument) ?? "see --help"
        throw OptionError(option: "--\(String(parts[0]).quotable)", message: "is not an option; \(hint)")
      }
      if case .flag(let path) = definition.kind {
        if parts.count > 1 { throw OptionError(option: "--\(definition.name)", message: "must not have a value") }
        options[keyPath: path] = true
        continue
      }
      // A value that begins with - is more likely the next option; with = it is accepted.
      let next = parts.count > 1 ? String(parts[1]) : rest.popFirst()
      guard let value = next, parts.count > 1 || !value.hasPrefix("-") else {
        let given = next.map { " (given: \"\($0.quotable)\")" } ?? ""
        throw OptionError(
          option: "--\(definition.name)", message: "must have a value: \(definition.placeholder)\(given)")
      }
      for element in definition.elements(of: value) {
        if let problem = definition.set(element, in: &options) {
          throw OptionError(option: "--\(definition.name)", message: problem + definition.quoted(element))
        }
      }
    }
    return isSelfTest ? .selfTest(options) : .run(options)
  }

  private static let commands = ["help", "version", "describe", "self-test"]

  /// The end of a message about an unknown argument.
  private static func nearestOption(to argument: String) -> String? {
    let name = argument.drop { $0 == "-" }.prefix { $0 != "=" }
    guard argument.hasPrefix("-") else { return nil }
    return (OptionDefinition.all.map(\.name) + commands).nearest(to: String(name)).map { "did you mean --\($0)?" }
  }

  /// The same for an argument that is no option: a misspelled `cache` or `replay` would otherwise be hard to find.
  private static func nearestWord(to argument: String) -> String? {
    ["cache", "replay"].nearest(to: argument).map { "did you mean imageworker \($0)?" }
  }

  /// The text that `--help` prints.
  public static var help: String {
    let rows =
      OptionDefinition.all.map { ("--\($0.name) \($0.placeholder)", $0.help) }
      + [
        ("--version", "print the version and exit"), ("--help, -h", "print this and exit"),
        ("--describe", "print the protocol as an OpenRPC document and exit"),
        ("--self-test", "check the installation, print what is found and what must be mended, and exit"),
      ]
    let width = rows.map(\.0.count).max() ?? 0
    let table = rows.map { "  " + $0.0 + String(repeating: " ", count: width - $0.0.count + 2) + $0.1 }
    return """
      usage: imageworker [options]
             imageworker cache COMMAND [options]
             imageworker replay DIR [--check]

      Loads images for other programs. Reads JSON-RPC 2.0 requests from standard input, one per
      line, and writes responses and events to standard output, one per line.

          echo '{"id":1,"method":"load","params":{"url":"https://example.com/a.jpg"}}' | imageworker

      \(table.joined(separator: "\n"))

      imageworker cache lists, explains, verifies and clears a cache directory; see imageworker cache --help.

      SIZE is a number of bytes, with K, M or G for powers of 1024. DURATION is 0 or a number with ms, s, m, h or d.
      Exit status: 0 done, 1 the self-test found a problem, 3 a request failed (with --exit-status), 64 invalid option,
      71 too few files or threads permitted, 66 cookie file unreadable, 73 cache directory, metrics or trace file unusable, 74 input unreadable or output closed.

      """
  }
}

extension OptionDefinition {
  /// The elements of the value of a list with a separator; of any other value, itself.
  func elements(of value: String) -> [String] {
    guard case .list(_, let separator?, _) = kind else { return [value] }
    return value.split(separator: separator).map(String.init)
  }

  /// Sets the option from the text of a command line. Returns the end of a sentence that begins with the option if the
  /// text is refused, or nil.
  func set(_ text: String, in options: inout Options) -> String? {
    switch kind {
    case .flag(let path):
      options[keyPath: path] = true
    case .count(let path, let range):
      guard let value = Int(text), range.contains(value) else { return "must be an integer \(span(range))" }
      options[keyPath: path] = value
    case .limit(let path, let range):
      guard text != "auto" else {
        options[keyPath: path] = .auto
        break
      }
      guard let value = Int(text), range.contains(value) else { return "must be auto or an integer \(span(range))" }
      options[keyPath: path] = .fixed(value)
    case .size(let path, let range):
      guard let value = Quantity.size(text, kilo: 1024), range.contains(value) else {
        return "must be a size \(span(range)) bytes, such as 500K, 128M or 1G"
      }
      options[keyPath: path] = value
    case .pixels(let path):
      guard let value = Quantity.size(text, kilo: 1000), Self.pixelCounts.contains(value) else {
        return "must be a number \(span(Self.pixelCounts)), such as 500000 or 100M"
      }
      options[keyPath: path] = value
    case .percent(let path):
      let digits = text.hasSuffix("%") ? String(text.dropLast()) : text
      guard let value = Int(digits), 0...100 ~= value else { return "must be a percentage from 0 to 100" }
      options[keyPath: path] = value
    case .duration(let path):
      guard let value = Quantity.duration(text) else {
        return "must be a duration of at most 36500d, such as 500ms, 15s, 5m, 2h or 7d"
      }
      options[keyPath: path] = value
    case .text(let path, let check):
      if let problem = check(text) ?? problem(inLengthOf: [text]) { return problem }
      options[keyPath: path] = text
    case .optionalText(let path, let check):
      if let problem = check(text) ?? problem(inLengthOf: [text]) { return problem }
      options[keyPath: path] = text
    case .list(let path, _, let check):
      if let problem = check(text) ?? problem(inLengthOf: options[keyPath: path] + [text]) { return problem }
      options[keyPath: path].append(text)
    case .choice(let names, _, let set):
      guard names.contains(text) else { return "must be one of \(names.joined(separator: ", "))" }
      set(&options, text)
    }
    return nil
  }

  /// The answer to `configure` contains five text options and must fit into a line of 60 kB.
  private func problem(inLengthOf texts: [String]) -> String? {
    texts.reduce(0) { $0 + $1.asciiJSONLength } > 10_000 ? "must not be longer than 10000 bytes of ASCII JSON" : nil
  }

  /// No image has more pixels, and the decoders read numbers of at most 18 digits.
  private static let pixelCounts: ClosedRange<Int64> = 0...1_000_000_000_000_000

  private func span<Bound>(_ range: ClosedRange<Bound>) -> String { "from \(range.lowerBound) to \(range.upperBound)" }

  /// Sets the option from a member of `configure`. Returns the end of a sentence that begins with the member's name if
  /// the value is refused, or nil.
  func set(_ value: JSON, in options: inout Options) -> String? {
    switch (kind, value) {
    case (.flag(let path), .bool(let flag)):
      options[keyPath: path] = flag
    case (.count(let path, let range), .integer(let number)):
      guard let count = Int(exactly: number), range.contains(count) else {
        return requirement
      }
      options[keyPath: path] = count
    case (.limit(let path, _), .string("auto")):
      options[keyPath: path] = .auto
    case (.limit(let path, let range), .integer(let number)):
      guard let count = Int(exactly: number), range.contains(count) else {
        return requirement
      }
      options[keyPath: path] = .fixed(count)
    case (.size(let path, let range), .integer(let number)):
      guard range.contains(number) else { return requirement }
      options[keyPath: path] = number
    case (.pixels(let path), .integer(let number)):
      guard Self.pixelCounts.contains(number) else { return requirement }
      options[keyPath: path] = number
    case (.percent(let path), .integer(let number)):
      guard 0...100 ~= number else { return requirement }
      options[keyPath: path] = Int(number)
    case (.duration(let path), .integer(let number)):
      guard 0...Quantity.maxMilliseconds ~= number else { return requirement }
      options[keyPath: path] = .milliseconds(number)
    case (.text(let path, let check), .string(let text)):
      if let problem = check(text) ?? problem(inLengthOf: [text]) { return problem }
      options[keyPath: path] = text
    case (.optionalText(let path, _), .null):
      options[keyPath: path] = nil
    case (.optionalText(let path, let check), .string(let text)):
      if let problem = check(text) ?? problem(inLengthOf: [text]) { return problem }
      options[keyPath: path] = text
    case (.list(let path, _, let check), .array(let elements)):
      var texts: [String] = []
      for element in elements {
        guard case .string(let text) = element else { return requirement }
        if let problem = check(text) { return problem + quoted(text) }
        texts.append(text)
      }
      if let problem = problem(inLengthOf: texts) { return problem }
      options[keyPath: path] = texts
    case (.choice(let names, _, let set), .string(let text)):
      guard names.contains(text) else { return requirement }
      set(&options, text)
    default:
      return requirement
    }
    return nil
  }

  /// The values that `configure` accepts, as the end of a sentence that begins with the member's name.
  private var requirement: String {
    switch kind {
    case .flag: "must be true or false"
    case .count(_, let range): "must be an integer \(span(range))"
    case .limit(_, let range): "must be \"auto\" or an integer \(span(range))"
    case .size(_, let range): "must be a number of bytes, an integer \(span(range))"
    case .pixels: "must be an integer \(span(Self.pixelCounts))"
    case .percent: "must be an integer from 0 to 100"
    case .duration: "must be a number of milliseconds, an integer from 0 to \(Quantity.maxMilliseconds)"
    case .text: "must be a string"
    case .optionalText: "must be a string or null"
    case .list: "must be an array of strings"
    case .choice(let names, _, _): "must be one of \(names.joined(separator: ", "))"
    }
  }

  /// The option's value as `configure` answers it.
  func write(_ options: Options, to writer: inout JSONWriter) {
    writer.key(escaping: member)
    switch kind {
    case .flag(let path): writer.value(options[keyPath: path])
    case .count(let path, _), .percent(let path): writer.value(options[keyPath: path])
    case .limit(let path, _): writer.value(options[keyPath: path].json)
    case .size(let path, _), .pixels(let path): writer.value(options[keyPath: path])
    case .duration(let path): writer.value(options[keyPath: path].milliseconds)
    case .text(let path, _): writer.value(options[keyPath: path])
    case .optionalText(let path, _): writer.value(options[keyPath: path].map(JSON.string) ?? .null)
    case .list(let path, _, _): writer.value(JSON.array(options[keyPath: path].map(JSON.string)))
    case .choice(_, let get, _): writer.value(get(options))
    }
  }
}

extension TransferLimit {
  /// Nil for `auto`.
  var count: Int? {
    if case .fixed(let count) = self { count } else { nil }
  }

  /// The value in `configure`.
  var json: JSON {
    switch self {
    case .auto: .string("auto")
    case .fixed(let count): .integer(Int64(count))
    }
  }
}

/// A rate of requests as users write it: `5/s`, `0.5/s`.
enum RequestRate {
  private static let range = 0.001...1_000_000

  static func problem(in text: String) -> String? {
    interval(text) == nil ? "must be a rate from 0.001/s to 1000000/s, such as 5/s or 0.5/s" : nil
  }

  /// The time between two requests.
  static func interval(_ text: String) -> Duration? {
    guard text.hasSuffix("/s"), let rate = Double(text.dropLast(2)), range.contains(rate) else { return nil }
    return .seconds(1 / rate)
  }
}

/// Numbers with units as users write them.
enum Quantity {
  /// 100 years.
  static let maxMilliseconds: Int64 = 100 * 365 * 86_400_000

  /// `500`, `500K`, `128M`, `1G`.
  static func size(_ text: String, kilo: Int64) -> Int64? {
    let unit: Int64? =
      switch text.utf8.last?.asciiLowercased {
      case UInt8(ascii: "k"): kilo
      case UInt8(ascii: "m"): kilo * kilo
      case UInt8(ascii: "g"): kilo * kilo * kilo
      default: nil
      }
    return scaled(unit == nil ? text[...] : text.dropLast(), by: unit ?? 1)
  }

  /// `0`, `500ms`, `15s`, `5m`, `2h`, `7d`.
  static func duration(_ text: String) -> Duration? {
    if text == "0" { return .zero }
    let units: [(String, Int64)] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)]
    guard let (name, factor) = units.first(where: { text.hasSuffix($0.0) }),
      let milliseconds = scaled(text.dropLast(name.count), by: factor), milliseconds <= maxMilliseconds
    else { return nil }
    return .milliseconds(milliseconds)
  }

  private static func scaled(_ digits: Substring, by factor: Int64) -> Int64? {
    guard !digits.isEmpty, digits.utf8.allSatisfy(\.isASCIIDigit), let number = Int64(digits) else {
      return nil
    }
    let (product, overflow) = number.multipliedReportingOverflow(by: factor)
    return overflow ? nil : product
  }
}
