internal import Platform
internal import Worker

do throws(OptionError) {
  switch try Options.parse(Array(CommandLine.arguments.dropFirst())) {
  case .help: exit(printOutput(Options.help) ? 0 : EX_IOERR)
  case .version: exit(printOutput("imageworker \(Version.current)\n") ? 0 : EX_IOERR)
  case .describe: exit(printOutput(Describe.document) ? 0 : EX_IOERR)
  // `_exit`, because exit handlers would run while other threads are still running. All output has been written.
  case .replay(let arguments): _exit(replay(arguments))
  case .cache(let arguments): _exit(runCacheCommand(arguments))
  case .selfTest(let options): _exit(selfTest(options))
  case .run(let options): _exit(run(options))
  }
} catch {
  printStartError(error)
  exit(EX_USAGE)
}
