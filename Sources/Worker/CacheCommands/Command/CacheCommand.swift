/// One command of `imageworker cache`: its name and words in the help, and the function that runs it.
struct CacheCommand: Sendable {
  let name: String
  /// The operands in the line of usage, such as `URL`; empty for none.
  let operands: String
  /// The permitted number of operands.
  let operandCount: ClosedRange<Int>
  /// One line for the list of commands.
  let summary: String
  /// The paragraphs of its help, separated by empty lines. The lines of a paragraph are joined and wrapped again.
  let description: String
  /// Its options, without those of all commands.
  let options: [CommandOption]
  let examples: [Example]
  /// The meanings of its exit statuses 0 and 1, such as `1 no entry matches`.
  let statuses: String
  let run: @Sendable (CommandArguments, CommandOutput) throws(CommandError) -> CommandStatus

  struct Example: Sendable {
    let command: String
    let meaning: String
  }

  init(
    _ name: String, operands: String = "", operandCount: ClosedRange<Int> = 0...0, _ summary: String,
    description: String, options: [CommandOption], examples: [Example], statuses: String,
    run: @escaping @Sendable (CommandArguments, CommandOutput) throws(CommandError) -> CommandStatus
  ) {
    (self.name, self.operands, self.operandCount, self.summary) = (name, operands, operandCount, summary)
    (self.description, self.options, self.examples) = (description, options, examples)
    (self.statuses, self.run) = (statuses, run)
  }

  /// All commands, in the order of the help. No other place lists them.
  static let all: [CacheCommand] = [list, usage, why, verify, remove, export, importing, pin, unpin]

  /// The options that every command has.
  static let commonOptions: [CommandOption] = [
    .ofWorker("cache-dir"), .ofWorker("cache-namespace"),
    .flag("json", "write lines of JSON also to a terminal"),
    .flag("text", "write text also into a pipe or a file"),
  ]

  var allOptions: [CommandOption] { options + Self.commonOptions }
}

/// The exit status of a command that has done its work.
enum CommandStatus: Int32 {
  case success = 0
  /// Nothing matched, or something is wrong with the cache. The help of a command says which.
  case negative = 1
}

/// The reason why a command cannot do its work, with the exit status (sysexits.h).
struct CommandError: Error {
  var status: Int32
  /// A line for standard error.
  var message: String
}

/// Runs `imageworker cache` with the arguments after `cache`. Returns the exit status.
public func runCacheCommand(_ arguments: [String]) -> Int32 {
  do throws(CommandError) {
    switch try CacheInvocation.parse(arguments) {
    case .help(let text):
      return printOutput(text) ? CommandStatus.success.rawValue : ExitStatus.inputOrOutput
    case .command(let command, let parsed):
      let output = CommandOutput(arguments: parsed)
      let status = try command.run(parsed, output)
      try output.finish()
      return status.rawValue
    }
  } catch {
    if !error.message.isEmpty { printMessage(error.message) }
    return error.status
  }
}
