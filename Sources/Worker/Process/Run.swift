internal import HTTPTransport
internal import ImageCodec
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Platform
internal import Recording
internal import Threads
internal import Tracing

/// Runs a worker on standard input and output until it ends. Returns the exit status (sysexits.h).
///
/// There is one thread each for reading and decoding lines, for the session with the queue and the memory tier, for the
/// network, for the disk, for writing lines and for signals. The calling thread waits for the end.
///
/// - Parameter onStartError: receives the reason if the worker cannot start, instead of standard error.
public func run(_ parsedOptions: Options, onStartError: ((String) -> Void)? = nil) -> Int32 {
  let streams = StandardStreams.take()
  Signals.block()
  raiseDescriptorLimit()
  let log = Log(level: parsedOptions.logLevel, format: parsedOptions.logFormat)
  let (options, recorder, storage): (Options, Recorder?, DiskServices)
  let (metricsFile, trace): (MetricsFile?, TraceRecorder?)
  do throws(StartError) {
    if let limit = descriptorLimit(), limit < minDescriptors {
      throw StartError(
        message: "the process may open \(limit) files at once and needs \(minDescriptors); raise the limit (ulimit -n)",
        status: EX_OSERR)
    }
    if let problem = parsedOptions.transportConfiguration.problem() {
      throw StartError(message: problem, status: EX_USAGE)
    }
    (options, recorder) = try startRecording(withCookies(parsedOptions), log)
    LoadingActor.sequencer = recorder
    storage = try openStorage(options, log, seed: recorder?.seed)
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
  if DecoderExecutable.find() == nil { log.write(.decoderMissing) }
  if isatty(STDIN_FILENO) != 0 { printAlways(.inputTerminal, as: options.logFormat) }
  let network = Transport(configuration: options.transportConfiguration)
  let transport: any Transferring = recorder.map { RecordingTransport(network, recorder: $0) } ?? network
  let decoders = DecoderPool(options.decoderSettings) { log.write(.decoder($0)) }
  let decoder: any ImageDecoding = recorder.map { RecordingDecoder(decoders, recorder: $0) } ?? decoders
  let status = Locked<Int32?>(nil)
  let end: @Sendable (Int32) -> Void = { value in
    status.withLock { $0 = $0 ?? value }
    status.notify()
  }
  let session = Locked<Session?>(nil)
  let withSession: @Sendable (Cause, @escaping @LoadingActor @Sendable (Session) -> Void) -> Void = { cause, work in
    LoadingActor.run(for: .host) { recorder.handle(cause) { session.withLock { $0 }.map(work) } }
  }
  let writer = LineWriter(
    descriptor: streams.output,
    marks: LineWriter.Marks(high: OutputMarks.transfersWait, low: OutputMarks.transfersGoOn),
    onRelief: { LoadingActor.run(for: .host) {} },
    // No one can receive further answers. Cancel all requests, start and save nothing more, and exit after the half
    // second in which the cache can store the bytes received so far.
    onClosed: { _ in
      end(ExitStatus.inputOrOutput)
      withSession(.termination) { $0.terminate(for: .outputClosed) }
      usleep(500_000)
      recorder?.finish()
      _exit(ExitStatus.inputOrOutput)
    })
  LoadingActor.run(for: .host) {
    let new = recorder.handle(.start) {
      let loader = Loader(
        transport: transport, storage: storage, decoder: decoder, settings: options.loaderSettings,
        seed: recorder?.seed)
      return Session(
        options: options, loader: loader, storage: storage, transport: transport, decoders: decoders, writer: writer,
        log: log, observer: recorder, onEnd: end)
    }
    if let trace { new.begin(trace) }
    session.withLock { $0 = new }
    LoadingActor.executor.setAfterBatch {
      LoadingActor.assumeIsolated { recorder.handle(.advance) { new.advance() } }
    }
  }
  let collect: MetricsFile.Collect = { completion in withSession(.figures) { $0.collectFigures { completion($0) } } }
  metricsFile?.start(collect: collect)
  Signals.onTermination { withSession(.termination) { $0.terminate(for: .signal) } }
  let pendingBatches = Locked(0)
  let input = recorder.map { InputRecorder($0, maxLine: Int(options.maxLine)) }
  LineReader(
    descriptor: STDIN_FILENO, maxLine: Int(options.maxLine), observe: input?.observe,
    handle: { batch in
      writer.waitForRoom(below: OutputMarks.requestsWait)
      // Decode one batch while the session handles the previous one.
      pendingBatches.wait { $0 < 2 ? ($0 += 1) : nil }
      withSession(.input(input?.take() ?? [])) { session in
        session.receive(batch)
        pendingBatches.withLock { $0 -= 1 }
        pendingBatches.notify()
      }
    },
    onEnd: { end in
      if case .failed(let code) = end { log.write(.inputFailed(code)) }
      withSession(.endOfInput(failed: end != .endOfInput)) { $0.endOfInput(failed: end != .endOfInput) }
    })
  let result = status.wait { $0 }!
  metricsFile?.finish(collect: collect)
  decoders.shutDown()
  storage.close()
  recorder?.finish()
  return writer.finish() ? result : ExitStatus.inputOrOutput
}

/// The exit statuses other than 0 (those of sysexits.h, except `failures`).
enum ExitStatus {
  /// A request failed, with `--exit-status`.
  static let failures: Int32 = 3
  static let noCookieFile = EX_NOINPUT
  static let noCacheDirectory = EX_CANTCREAT
  /// Standard input cannot be read, or standard output is closed.
  static let inputOrOutput = EX_IOERR
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
