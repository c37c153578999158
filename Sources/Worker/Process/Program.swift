internal import Platform

/// The program `imageworker`. Returns its exit status (sysexits.h).
@c(imageworker_main)
public func imageworkerMain(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
  do throws(OptionError) {
    switch try Options.parse(commandLine(count, arguments)) {
    case .help: return printOutput(Options.help) ? 0 : EX_IOERR
    case .version: return printOutput("imageworker \(Version.current)\n") ? 0 : EX_IOERR
    case .describe: return printOutput(ProtocolDocument.text) ? 0 : EX_IOERR
    // `_exit`, because exit handlers would run while other threads are still running. All output has been written.
    case .cache(let arguments): _exit(runCacheCommand(arguments))
    case .selfTest(let options): _exit(selfTest(options))
    case .run(let options): _exit(run(options))
    }
  } catch {
    printStartError(error)
    return EX_USAGE
  }
}
