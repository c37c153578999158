internal import Platform
internal import Worker

do throws(OptionError) {
  switch try Options.parse(Array(CommandLine.arguments.dropFirst())) {
  case .help: exit(printOutput(Options.help) ? 0 : EX_IOERR)
  case .version: exit(printOutput("imageworker \(Version.current)\n") ? 0 : EX_IOERR)
  case .describe: exit(printOutput(Describe.document) ? 0 : EX_IOERR)
  case .selfTest(let options): _exit(selfTest(options))
  case .replay(let arguments): _exit(replay(arguments))
  // `_exit`, because exit handlers would run while other threads are still running. All output has been written.
  case .run(let options): _exit(run(options))
  }
} catch {
  printStartupError("\(error.option) \(error.message)")
  exit(EX_USAGE)
}
