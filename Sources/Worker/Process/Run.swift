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
public func run(_ parsedOptions: Options, onStartError: ((String) -> Void)? = nil) -> Int32 {
  let streams = StandardStreams.take()
  Signals.block()
  raiseDescriptorLimit()
  let log = Log(level: parsedOptions.logLevel, format: parsedOptions.logFormat)
  let (options, storage, metricsFile, trace): (Options, DiskServices, MetricsFile?, TraceRecorder?)
  do throws(StartError) {
    if let limit = descriptorLimit(), limit < minDescriptors {
      throw StartError(
        message: "the process may open \(limit) files at once and needs \(minDescriptors); raise the limit (ulimit -n)",
        status: EX_OSERR)
    }
    if let problem = parsedOptions.transportConfiguration.problem() {
      throw StartError(message: problem, status: EX_USAGE)
    }
    options = try withCookies(parsedOptions)
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
  if DecoderExecutable.find() == nil { log.write(.decoderMissing) }
  if isatty(STDIN_FILENO) != 0 { printAlways(.inputTerminal, as: options.logFormat) }
  let transport = Transport(configuration: options.transportConfiguration)
  let decoders = DecoderPool(options.decoderSettings) { log.write(.decoder($0)) }
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

/// The descriptors that the threads, the cache and one transfer need.
private let minDescriptors = 32

private struct StartError: Error {
  let message: String
  var status = ExitStatus.noCacheDirectory
}

private func withCookies(_ options: Options) throws(StartError) -> Options {
  do throws(StoreError) {
    return try options.readingCookies()
  } catch {
    throw StartError(message: "the cookie file cannot be read: \(error.message)", status: ExitStatus.noCookieFile)
  }
}

private func openMetricsFile(_ options: Options, _ log: Log) throws(StartError) -> MetricsFile? {
  guard let path = options.metricsFile else { return nil }
  do throws(StoreError) {
    return try MetricsFile(path: CacheDirectory.absolute(path), log: log)
  } catch {
    throw StartError(message: "the metrics file cannot be written: \(error.message)")
  }
}

private func openTrace(_ options: Options, _ log: Log) throws(StartError) -> TraceRecorder? {
  guard let path = options.trace else { return nil }
  do throws(TraceError) {
    return try .open(CacheDirectory.absolute(path), limit: options.traceLimit, log)
  } catch {
    throw StartError(message: "the trace file \(path) cannot be used: \(error.message)")
  }
}

private func openStorage(_ options: Options, _ log: Log) throws(StartError) -> DiskServices {
  let executor = ThreadExecutor(name: "disk")
  guard let directory = options.cacheDirectory ?? CacheDirectory.standard else {
    throw StartError(message: "HOME is not set; name a cache directory with --cache-dir")
  }
  let warn: @Sendable (StoreWarning) -> Void = { log.write(.cache($0)) }
  let absolute = CacheDirectory.absolute(directory)
  var tier: DiskTier?
  if options.diskLimit > 0 {
    tier = DiskTier(
      directory: absolute, namespace: options.cacheNamespace, limit: options.diskLimit,
      minFreeFraction: Double(options.minFree) / 100, verify: options.verification, executor: executor,
      onWarning: warn)
  }
  let readOnly = options.readOnlyCaches.map { directory in
    DiskTier(
      directory: CacheDirectory.absolute(directory), namespace: options.cacheNamespace, limit: .max,
      verify: options.verification, mode: .readOnly, executor: executor, onWarning: warn)
  }
  let storage = DiskServices(
    directory: absolute, executor: executor, tier: tier, readOnlyTiers: readOnly,
    scratch: ScratchFolder(executor: executor), pixels: PixelFolder(executor: executor),
    now: StoreEnvironment.system.now)
  do throws(StoreError) {
    try storage.open()
  } catch {
    var path = absolute
    if case .unusable(let unusable) = error.kind { path = unusable }
    let isReadOnly = options.readOnlyCaches.contains { path.hasPrefix(CacheDirectory.absolute($0)) }
    let name = isReadOnly ? "the read-only cache" : "the cache directory"
    throw StartError(message: "\(name) \(path) cannot be used: \(error.message)")
  }
  return storage
}
