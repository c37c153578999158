internal import LineRPC
internal import Loading
internal import Platform
internal import Text

/// The parsed arguments of a command. Every value has been checked against its option.
struct CommandArguments: Sendable {
  /// The options of the worker that the command has, with defaults for all others.
  var worker = Options()
  var operands: [String] = []
  private var flags: Set<String> = []
  private var values: [String: [String]] = [:]

  func has(_ name: String) -> Bool { flags.contains(name) || values[name] != nil }

  /// The last value of an option; nil if it is not given.
  func text(_ name: String) -> String? { values[name]?.last }

  func texts(_ name: String) -> [String] { values[name] ?? [] }

  func count(_ name: String) -> Int? { text(name).flatMap { Int($0) } }

  /// Seconds, rounded down.
  func seconds(_ name: String) -> Int? {
    text(name).flatMap { Quantity.duration($0) }.map { Int($0.milliseconds / 1000) }
  }

  /// Parses the arguments after the command's name.
  ///
  /// - Throws: an error with the status EX_USAGE that names the argument and what is expected.
  init(_ arguments: ArraySlice<String>, of command: CacheCommand) throws(CommandError) {
    var rest = arguments
    var onlyOperands = false
    while let argument = rest.popFirst() {
      guard argument.hasPrefix("-"), argument != "-", !onlyOperands else {
        operands.append(argument)
        continue
      }
      if argument == "--" {
        onlyOperands = true
        continue
      }
      try parse(option: argument, &rest, command)
    }
    guard command.operandCount.contains(operands.count) else { throw wrongNumberOfOperands(command) }
    if has("json"), has("text") { throw .usage(command.name, "--json and --text must not be given together") }
  }

  private mutating func parse(
    option argument: String, _ rest: inout ArraySlice<String>, _ command: CacheCommand
  ) throws(CommandError) {
    let parts = argument.drop { $0 == "-" }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts.first ?? "")
    let options = command.allOptions
    guard argument.hasPrefix("--"), let option = options.first(where: { $0.name == name }) else {
      let hint = hint(for: name, among: (options.map { $0.name } + ["help"]).map { "--\($0)" })
      throw .usage(command.name, "\(argument.quotable) is not an option\(hint)")
    }
    guard option.takesValue else {
      if parts.count > 1 { throw .usage(command.name, "--\(name) must not have a value") }
      flags.insert(name)
      if case .ofWorker(let definition) = option.kind { try set(definition, "", command) }
      return
    }
    // A value that begins with - is more likely the next option; with = it is accepted.
    let next = parts.count > 1 ? String(parts[1]) : rest.popFirst()
    guard let value = next, parts.count > 1 || !value.hasPrefix("-") else {
      let given = next.map { " (given: \"\($0.quotable)\")" } ?? ""
      throw .usage(command.name, "--\(name) must have a value: \(option.placeholder)\(given)")
    }
    if let problem = option.problem(in: value) {
      throw .usage(command.name, "--\(name) \(problem) (given: \"\(value.quotable)\")")
    }
    if case .ofWorker(let definition) = option.kind { try set(definition, value, command) }
    values[name, default: []].append(value)
  }

  private mutating func set(
    _ definition: OptionDefinition, _ value: String, _ command: CacheCommand
  ) throws(CommandError) {
    for element in definition.elements(of: value) {
      if let problem = definition.set(element, in: &worker) {
        throw .usage(command.name, "--\(definition.name) \(problem)\(definition.quoted(element))")
      }
    }
  }

  /// The load of a URL with the options of the worker that the command has.
  ///
  /// - Parameter options: replace `worker`.
  func request(for url: String, with options: Options? = nil, of command: String) throws(CommandError) -> LoadRequest {
    do throws(RPCError) {
      return try LoadParameters.request(for: url, key: nil, LoadDefaults(options ?? worker))
    } catch {
      throw .usage(command, "\(url.quotable) is not a URL that can be loaded: \(error.message)")
    }
  }

  private func wrongNumberOfOperands(_ command: CacheCommand) -> CommandError {
    if operands.count > command.operandCount.upperBound {
      let unexpected = operands[command.operandCount.upperBound].quotable
      let hint = command.operands.isEmpty ? "" : "; it takes \(command.operands)"
      return .usage(command.name, "unexpected argument \(unexpected)\(hint)")
    }
    return .usage(command.name, "\(command.operands) must be given")
  }
}

extension CommandError {
  /// A wrong command line.
  static func usage(_ command: String, _ message: String) -> CommandError {
    CommandError(status: EX_USAGE, message: "cache \(command): \(message); see imageworker cache \(command) --help")
  }
}

/// The meaning of the arguments after `imageworker cache`.
enum CacheInvocation {
  case help(String)
  case command(CacheCommand, CommandArguments)

  static func parse(_ arguments: [String]) throws(CommandError) -> CacheInvocation {
    let names = CacheCommand.all.map { $0.name }
    guard let name = arguments.first else {
      throw CommandError(
        status: EX_USAGE,
        message: "cache: a command must be given: \(names.joined(separator: ", ")); see imageworker cache --help")
    }
    if isHelp(name) { return .help(CommandHelp.overview) }
    if name == "help" {
      return .help(arguments.count > 1 ? CommandHelp.text(of: try command(arguments[1])) : CommandHelp.overview)
    }
    let command = try command(name)
    let rest = arguments.dropFirst()
    if rest.prefix(while: { $0 != "--" }).contains(where: isHelp) { return .help(CommandHelp.text(of: command)) }
    return .command(command, try CommandArguments(rest, of: command))
  }

  private static func isHelp(_ argument: String) -> Bool { argument == "--help" || argument == "-h" }

  private static func command(_ name: String) throws(CommandError) -> CacheCommand {
    if let command = CacheCommand.all.first(where: { $0.name == name }) { return command }
    let hint = hint(for: name, among: CacheCommand.all.map { $0.name })
    let kind = name.hasPrefix("-") ? "is given before the command" : "is not a command"
    throw CommandError(
      status: EX_USAGE, message: "cache: \(name.quotable) \(kind)\(hint); see imageworker cache --help")
  }
}
