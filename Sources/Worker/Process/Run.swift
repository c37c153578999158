internal import CSystem
internal import HTTPTransport
internal import ImageCodec
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Platform
internal import Threads
internal import Tracing

/// Runs a worker on standard input and output until it ends. Returns the exit status (sysexits.h).
///
/// There is one thread each for reading and decoding lines, for the session with the queue and the memory tier, for the
/// network, for the disk, for writing lines and for signals. The calling thread waits for the end.
///
/// - Parameter onStartError: receives the reason if the worker cannot start, instead of standard error.
func run(_ parsedOptions: Options, onStartError: ((String) -> Void)? = nil) -> Int32 {
  let streams = StandardStreams.take()
  Signals.block()
  raiseDescriptorLimit()
  let log = Log(level: parsedOptions.logLevel, format: parsedOptions.logFormat)
  let (options, storage): (Options, DiskServices)
  let (metricsFile, trace): (MetricsFile?, TraceRecorder?)
  do throws(ExitError) {
    if let stream = streams.closed {
      throw ExitError(
        status: ExitStatus.inputOrOutput,
        message: "\(stream) is closed; a worker reads requests from standard input and writes answers to standard "
          + "output")
    }
    if pathOfThisExecutable() == nil {
      throw ExitError(status: EX_OSERR, message: "the path of this program is unknown, or is not UTF-8")
    }
    if let limit = descriptorLimit(), limit < minDescriptors {
      throw ExitError(
        status: EX_OSERR,
        message: "the process may open \(limit) files at once and needs \(minDescriptors); raise the limit (ulimit -n)")
    }
    if let problem = parsedOptions.transportConfiguration.problem() {
      throw .usage(problem)
    }
    options = try parsedOptions.readingCookies().findingFiles()
    storage = try openStorage(options, log)
    metricsFile = try openMetricsFile(options, log)
    trace = try openTrace(options, log)
  } catch {
    if let onStartError {
      onStartError(error.message)
    } else {
      printAlways(.workerFailed(error.message, exitStatus: error.status), as: parsedOptions.logFormat)
    }
    return error.status
  }
  log.write(.workerStarted(in: storage.directory))
  if let missing = DecoderExecutable.missing { log.write(.decoderMissing(missing)) }
  if isatty(STDIN_FILENO) != 0 { printAlways(.inputTerminal, as: options.logFormat) }
  let transport = Transport(configuration: options.transportConfiguration)
  let decoders = DecoderPool(options.decoderSettings, sharedDecodes: storage) { log.write(.decoder($0)) }
  let status = Locked<Int32?>(nil)
  let end: @Sendable (Int32) -> Void = { value in
    status.withLock { $0 = $0 ?? value }
    status.notify()
  }
  let session = Locked<Session?>(nil)
  let withSession: @Sendable (@escaping @LoadingActor @Sendable (Session) -> Void) -> Void = { work in
    LoadingActor.run { session.withLock { $0 }.map(work) }
  }
  let writer = LineWriter(
    descriptor: streams.output,
    marks: LineWriter.Marks(high: OutputMarks.transfersWait, low: OutputMarks.transfersGoOn),
    onRelief: { LoadingActor.run {} },
    // No one can receive further answers. Cancel all requests, start and save nothing more, and exit after the half
    // second in which the cache can store the bytes received so far.
    onClosed: { _ in
      end(ExitStatus.inputOrOutput)
      withSession { $0.terminate(for: .outputClosed) }
      usleep(500_000)
      _exit(ExitStatus.inputOrOutput)
    })
  LoadingActor.run {
    let loader = Loader(
      transport: transport, storage: storage, decoder: decoders, settings: options.loaderSettings)
    let new = Session(
      options: options, loader: loader, storage: storage, transport: transport, decoders: decoders, writer: writer,
      log: log, onEnd: end)
    if let trace { new.begin(trace) }
    session.withLock { $0 = new }
    LoadingActor.executor.setAfterBatch { LoadingActor.assumeIsolated { new.advance() } }
  }
  let collect: MetricsFile.Collect = { completion in withSession { $0.collectFigures { completion($0) } } }
  metricsFile?.start(collect: collect)
  Signals.onTermination { withSession { $0.terminate(for: .signal) } }
  let pendingBatches = Locked(0)
  LineReader(
    descriptor: STDIN_FILENO, maxLine: Int(options.maxLine),
    handle: { batch in
      writer.waitForRoom(below: OutputMarks.requestsWait)
      // Decode one batch while the session handles the previous one.
      pendingBatches.wait { $0 < 2 ? ($0 += 1) : nil }
      withSession { session in
        session.receive(batch)
        pendingBatches.withLock { $0 -= 1 }
        pendingBatches.notify()
      }
    },
    onEnd: { end in
      if case .failed(let code) = end { log.write(.inputFailed(code)) }
      withSession { $0.endOfInput(failed: end != .endOfInput) }
    })
  let result = status.wait { $0 }!
  metricsFile?.finish(collect: collect)
  decoders.shutDown()
  storage.close()
  return writer.finish() ? result : ExitStatus.inputOrOutput
}

/// The exit statuses other than 0 (those of sysexits.h, except `failures`).
enum ExitStatus {
  /// A request failed, with `--exit-status`.
  static let failures: Int32 = 3
  static let noCookieFile = EX_NOINPUT
  /// The folder of `--files` cannot be used.
  static let noFiles = EX_NOINPUT
  static let noCacheDirectory = EX_CANTCREAT
  /// Standard input cannot be read, or standard output is closed.
  static let inputOrOutput = EX_IOERR
}

/// The facts that determine the exit status of a session.
struct SessionOutcome {
  /// Whether a request ended in an error.
  var hasFailures = false
  var wasCancelledBySignal = false
  /// Whether the input ended because it could not be read.
  var hasLostInput = false

  /// - Parameter reportingFailures: the option `--exit-status`.
  func exitStatus(reportingFailures: Bool) -> Int32 {
    if hasLostInput { return ExitStatus.inputOrOutput }
    return reportingFailures && (hasFailures || wasCancelledBySignal) ? ExitStatus.failures : 0
  }
}

/// The amounts of unread output, in bytes, at which work stops and resumes.
private enum OutputMarks {
  /// At this amount no new transfers start.
  static let transfersWait = 64 << 10
  static let transfersGoOn = 16 << 10
  /// At this amount no more requests are read. Far above `transfersWait`, so that a host can write all its requests
  /// before it reads the answers.
  static let requestsWait = 32 << 20
}

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

/// The standard streams of the process, protected from libraries that write to descriptor 1.
struct StandardStreams {
  /// A duplicate of standard output. Descriptor 1 itself is redirected to standard error, so that the output of a
  /// library cannot corrupt the protocol.
  let output: Int32
  /// The name of the stream that a worker cannot do without and that is closed; nil if there is none.
  let closed: String?

  /// Must be called before the process starts a thread or uses a library.
  static func take() -> StandardStreams {
    signal(SIGPIPE, SIG_IGN)
    // A write beyond `ulimit -f` then fails with EFBIG.
    signal(SIGXFSZ, SIG_IGN)
    // The next file that is opened would get the number of a closed stream.
    let closed = (STDIN_FILENO...STDERR_FILENO).filter { fcntl($0, F_GETFD) < 0 }
    for _ in closed { _ = csystem_open_empty() }
    let output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
    precondition(output >= 0, "standard output cannot be duplicated")
    dup2(STDERR_FILENO, STDOUT_FILENO)
    let needed = [STDIN_FILENO: "standard input", STDOUT_FILENO: "standard output"]
    return StandardStreams(output: output, closed: closed.first.flatMap { needed[$0] })
  }
}
