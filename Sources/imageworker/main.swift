internal import Platform
internal import Worker

do throws(OptionError) {
  switch try Options.parse(Array(CommandLine.arguments.dropFirst())) {
  case .help: print(Options.help, terminator: "")
  case .version: print("imageworker \(Version.current)")
  case .describe: print(Describe.document, terminator: "")
  case .selfTest(let options): _exit(selfTest(options))
  // `_exit`, because exit handlers would run while other threads are still running. All output has been written.
  case .run(let options): _exit(run(options))
  }
} catch {
  printStartupError("\(error.option) \(error.message)")
  exit(EX_USAGE)
}
