internal import LineRPC
internal import Text

/// The argument that is refused, and the reason.
public struct OptionError: Error {
  public let option: String
  /// Continues a sentence that begins with the argument.
  public let message: String
  /// The value of `--log-format` before the refused argument.
  var logFormat = LogFormat.text
}

/// Reads the command line of the worker or of a command of `imageworker cache`. A table defines the options.
struct OptionParser {
  enum Argument {
    /// An option that has no value and sets nothing, such as `help`. `-h` is `help`, too.
    case action(String)
    case operand(String)
  }

  private var rest: ArraySlice<String>
  private let definitions: [OptionDefinition]
  private let actions: [String]
  private let help: String
  private var hasOnlyOperands = false

  /// - Parameters:
  ///   - actions: the names of the actions.
  ///   - help: the command that prints all options.
  init(_ arguments: ArraySlice<String>, of definitions: [OptionDefinition], actions: [String], help: String) {
    (rest, self.definitions, self.actions, self.help) = (arguments, definitions, actions, help)
  }

  /// Sets the options before the next action or operand, which it returns; nil at the end. All arguments after `--` are
  /// operands.
  mutating func next(setting options: inout Options) throws(OptionError) -> Argument? {
    while let argument = rest.popFirst() {
      guard argument.hasPrefix("-"), argument != "-", !hasOnlyOperands else { return .operand(argument) }
      if argument == "--" {
        hasOnlyOperands = true
        continue
      }
      if argument == "-h" { return .action("help") }
      guard argument.hasPrefix("--") else { throw unknown(argument) }
      let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let (name, value) = (String(parts[0]), parts.count > 1 ? String(parts[1]) : nil)
      if actions.contains(name) {
        guard value == nil else { throw OptionError(option: "--\(name)", message: "must not have a value") }
        return .action(name)
      }
      guard let definition = definitions.first(where: { $0.name == name }) else { throw unknown("--\(name)") }
      try set(definition, to: value, in: &options)
    }
    return nil
  }

  private mutating func set(
    _ definition: OptionDefinition, to given: String?, in options: inout Options
  ) throws(OptionError) {
    let option = "--\(definition.name)"
    if case .flag(let path) = definition.kind {
      guard given == nil else { throw OptionError(option: option, message: "must not have a value") }
      options[keyPath: path] = true
      return
    }
    // A value that begins with - is more likely the next option; with = it is accepted.
    let next = given ?? rest.popFirst()
    guard let value = next, given != nil || !value.hasPrefix("-") else {
      let found = next.map { " (given: \"\($0.quotable)\")" } ?? ""
      throw OptionError(option: option, message: "must have a value: \(definition.placeholder)\(found)")
    }
    for element in definition.elements(of: value) {
      if let problem = definition.set(element, in: &options) {
        throw OptionError(option: option, message: problem + definition.quoted(element))
      }
    }
  }

  private func unknown(_ option: String) -> OptionError {
    let name = String(option.drop { $0 == "-" }.prefix { $0 != "=" })
    let nearest = (definitions.map(\.name) + actions).nearest(to: name)
    let hint = nearest.map { " (did you mean --\($0)?)" } ?? "; see \(help)"
    return OptionError(option: option.quotable, message: "is not an option\(hint)")
  }
}
