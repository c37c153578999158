internal import Worker

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

do throws(OptionError) {
  switch try Options.parse(Array(CommandLine.arguments.dropFirst())) {
  case .help: print(Options.help, terminator: "")
  case .version: print("imageworker \(Version.current)")
  case .describe: print(Describe.document, terminator: "")
  // Other threads are still there: no handlers of theirs at exit, all that matters is written.
  case .run(let options): _exit(run(options))
  }
} catch {
  printStartupError("\(error.option) \(error.message)")
  exit(EX_USAGE)
}
