internal import LineRPC
internal import Platform
internal import Text

/// One command of `imageworker cache`: its options and words in the help, and the function that runs it.
struct CacheCommand: Sendable {
  let name: String
  /// The name of the operand that it takes, such as `URL`.
  var operand: String?
  /// One line for the list of commands.
  let summary: String
  /// The paragraphs of its help, in lines of at most 100 characters.
  let description: String
  /// Its options, without those of all commands.
  let options: [OptionDefinition]
  let examples: [(command: String, meaning: String)]
  /// The meanings of its exit statuses 0 and 1, such as `1 no entry matches`.
  let statuses: String
  /// Returns whether it found what it looked for, and everything in order.
  let run: @Sendable (Options, CommandOutput) throws(ExitError) -> Bool

  /// All commands, in the order of the help. No other place lists them.
  static let all: [CacheCommand] = [list, usage, why, verify, remove]

  var allOptions: [OptionDefinition] { options + OptionDefinition.ofAllCommands }
}

/// Runs `imageworker cache` with the arguments after `cache`. Returns the exit status: 1 if nothing matched, or
/// something is wrong with the cache.
func runCacheCommand(_ arguments: [String]) -> Int32 {
  var subject = "cache"
  do throws(ExitError) {
    guard let name = arguments.first else {
      let names = CacheCommand.all.map(\.name).joined(separator: ", ")
      throw .usage("a command must be given: \(names); see imageworker cache --help")
    }
    if ["help", "--help", "-h"].contains(name) {
      let text = arguments.count > 1 ? try command(arguments[1]).help : CacheCommand.overview
      return printOutput(text) ? 0 : ExitStatus.inputOrOutput
    }
    let command = try command(name)
    subject += " \(name)"
    guard let options = try command.parse(arguments.dropFirst()) else {
      return printOutput(command.help) ? 0 : ExitStatus.inputOrOutput
    }
    let output = CommandOutput(options.command)
    let isPositive = try command.run(options, output)
    try output.finish()
    return isPositive ? 0 : 1
  } catch {
    let prefix = error.status == EX_USAGE ? "\(subject): " : ""
    if !error.message.isEmpty { printMessage(prefix + error.message) }
    return error.status
  }
}

private func command(_ name: String) throws(ExitError) -> CacheCommand {
  if let command = CacheCommand.all.first(where: { $0.name == name }) { return command }
  let kind = name.hasPrefix("-") ? "is given before the command" : "is not a command"
  throw .usage("\(name.quotable) \(kind)\(hint(for: name, among: CacheCommand.all.map(\.name)))")
}

extension CacheCommand {
  /// The options and the operand of a command line; nil if it asks for help.
  fileprivate func parse(_ arguments: ArraySlice<String>) throws(ExitError) -> Options? {
    var result = Options()
    var parser = OptionParser(
      arguments, of: allOptions, actions: ["help"], help: "imageworker cache \(name) --help")
    do throws(OptionError) {
      while let argument = try parser.next(setting: &result) {
        guard case .operand(let word) = argument else { return nil }
        guard operand != nil, result.command.operand == nil else {
          let expected = operand.map { "; it takes \($0)" } ?? ""
          throw OptionError(option: "unexpected argument", message: word.quotable + expected)
        }
        result.command.operand = word
      }
    } catch {
      throw .usage("\(error.option) \(error.message)")
    }
    if result.command.json, result.command.text { throw .usage("--json and --text must not be given together") }
    return result
  }

  /// The help of `imageworker cache`.
  static var overview: String {
    """
    usage: imageworker cache COMMAND [options]

    Shows and changes the cache of a directory, beside running workers or without.

    \(helpTable(all.map { ($0.nameAndOperand, $0.summary) }))

    The cache is that of the worker with the same --cache-dir and --cache-namespace. The commands that
    only show it create and change no file. They see what the workers have written to the index: a
    worker writes a stored image within half a second, and a use within three seconds.

    On a terminal a command writes text for people. Into a pipe or a file it writes lines of JSON, one
    object per line, with times in UTC and sizes in bytes. --json and --text choose one of them.

    Exit status: 0 done, 1 nothing matched or the cache is damaged, 64 invalid arguments, 66 no such
    cache, 73 cache cannot be written, 74 input or output failed. imageworker cache COMMAND --help
    describes a command.

    """
  }

  private var nameAndOperand: String { operand.map { "\(name) \($0)" } ?? name }

  var help: String {
    let examples = examples.map { "    imageworker cache \($0.command)\n        \($0.meaning)" }
    return """
      usage: imageworker cache \(nameAndOperand) [options]

      \(description)

      \(helpTable(allOptions.map { ($0.usage, $0.help) } + [("--help, -h", "print this and exit")]))

      Examples:

      \(examples.joined(separator: "\n"))

      Exit status: \(statuses),
      64 invalid arguments, 66 no such cache, 73 cache cannot be written, 74 input or output failed.

      """
  }
}
