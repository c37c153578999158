internal import HTTPTypes
internal import LineRPC
internal import Loading
internal import Text

extension Options {
  public enum Invocation {
    case run(Options)
    case help, version, describe
    case selfTest(Options)
    /// A command on a cache directory, with the arguments after `cache`.
    case cache([String])
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
    if arguments.first == "cache" { return .cache(Array(arguments.dropFirst())) }
    var isSelfTest = false
    var parser = OptionParser(
      arguments[...], of: OptionDefinition.all, actions: ["help", "version", "describe", "self-test"],
      help: "imageworker --help")
    while let argument = try parser.next(setting: &options) {
      switch argument {
      case .action("help"): return .help
      case .action("version"): return .version
      case .action("describe"): return .describe
      case .action: isSelfTest = true
      case .operand(let word):
        // A misspelled `cache` would otherwise be hard to find.
        let hint =
          ["cache"].nearest(to: word).map { "did you mean imageworker \($0)?" }
          ?? "requests are read from standard input (see --help)"
        throw OptionError(option: word.quotable, message: "is not an option; \(hint)")
      }
    }
    return isSelfTest ? .selfTest(options) : .run(options)
  }

  /// The text that `--help` prints.
  public static var help: String {
    let table = helpTable(
      OptionDefinition.all.map { ($0.usage, $0.help) } + [
        ("--version", "print the version and exit"), ("--help, -h", "print this and exit"),
        ("--describe", "print the protocol as an OpenRPC document and exit"),
        ("--self-test", "check the installation, print what is found and what must be mended, and exit"),
      ])
    return """
      usage: imageworker [options]
             imageworker cache COMMAND [options]

      Loads images for other programs. Reads JSON-RPC 2.0 requests from standard input, one per
      line, and writes responses and events to standard output, one per line.

          echo '{"id":1,"method":"load","params":{"url":"https://example.com/a.jpg"}}' | imageworker

      \(table)

      imageworker cache lists, explains, verifies and clears a cache directory; see imageworker cache --help.

      SIZE is a number of bytes, with K, M or G for powers of 1024. DURATION is 0 or a number with ms, s, m, h or d.
      Exit status: 0 done, 1 the self-test found a problem, 3 a request failed (with --exit-status), 64 invalid option,
      71 too few files or threads permitted, 66 cookie file unreadable, 73 cache directory, metrics or trace file unusable, 74 input unreadable or output closed.

      """
  }
}

/// Lines of two columns for a help.
func helpTable(_ rows: [(String, String)]) -> String {
  let width = rows.map(\.0.count).max() ?? 0
  return rows.map { "  " + $0.0.padded(to: width + 2) + $0.1 }.joined(separator: "\n")
}

extension String {
  /// The text with spaces at its end, so that it is at least `width` characters wide.
  func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}

extension OptionDefinition {
  /// The option with the placeholder of its value, as the help prints it.
  var usage: String { placeholder.isEmpty ? "--\(name)" : "--\(name) \(placeholder)" }

  /// The elements of the value of a list with a separator; of any other value, itself.
  func elements(of value: String) -> [String] {
    guard case .list(_, let separator?, _) = kind else { return [value] }
    return value.split(separator: separator).map(String.init)
  }

  /// Sets the option from the text of a command line. Returns the end of a sentence that begins with the option if the
  /// text is refused, or nil.
  func set(_ text: String, in options: inout Options) -> String? {
    switch kind {
    case .text, .optionalText: return set(.string(text), in: &options)
    case .list(let path, _, let check):
      if let problem = check(text) ?? problem(inLengthOf: options[keyPath: path] + [text]) { return problem }
      options[keyPath: path].append(text)
      return nil
    default:
      guard let value = value(of: text), set(value, in: &options) == nil else { return textRequirement }
      return nil
    }
  }

  /// The value that a text of the command line stands for in `configure`; nil if it has not the form of such a value.
  private func value(of text: String) -> JSON? {
    switch kind {
    case .count: Int64(text).map(JSON.integer)
    case .limit: text == "auto" ? .string(text) : Int64(text).map(JSON.integer)
    case .size: Quantity.size(text, kilo: 1024).map(JSON.integer)
    case .pixels: Quantity.size(text, kilo: 1000).map(JSON.integer)
    case .percent: Int64(text.hasSuffix("%") ? text.dropLast() : text[...]).map(JSON.integer)
    case .duration: Quantity.duration(text).map { .integer($0.milliseconds) }
    case .flag, .text, .optionalText, .list, .choice: .string(text)
    }
  }

  /// The texts that the command line accepts, as the end of a sentence that begins with the option.
  private var textRequirement: String {
    switch kind {
    case .limit(_, let range): "must be auto or an integer \(span(range))"
    case .size(_, let range): "must be a size \(span(range)) bytes, such as 500K, 128M or 1G"
    case .pixels: "must be a number \(span(Self.pixelCounts)), such as 500000 or 100M"
    case .percent: "must be a percentage from 0 to 100"
    case .duration: Quantity.durationRule
    default: requirement
    }
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
      guard let count = Int(exactly: number), range.contains(count) else { return requirement }
      options[keyPath: path] = count
    case (.limit(let path, _), .string("auto")):
      options[keyPath: path] = .auto
    case (.limit(let path, let range), .integer(let number)):
      guard let count = Int(exactly: number), range.contains(count) else { return requirement }
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
