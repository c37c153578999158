internal import ImageCodec
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Platform
internal import Recording
internal import Threads

extension Session: ReplayableSession {
  func terminate() { terminate(for: .signal) }
  func collectFigures() { collectFigures { _ in } }
}

/// Replays a recorded session: `imageworker replay DIR`. Returns the exit status: 1 if the session does something else
/// than when it was recorded.
///
/// The lines for the host go to standard output, unless they are only to be checked.
public func replay(_ arguments: [String]) -> Int32 {
  let command: ReplayCommand
  switch ReplayCommand.parse(arguments) {
  case .help: return printOutput(ReplayCommand.help) ? 0 : EX_IOERR
  case .refused(let message):
    printMessage(message)
    return EX_USAGE
  case .replay(let parsed): command = parsed
  }
  let streams = StandardStreams.take()
  raiseDescriptorLimit()
  do {
    let recording = try Recording(in: CacheDirectory.absolute(command.recording))
    let files = try ReplayFolder(command.files.map { CacheDirectory.absolute($0) })
    defer { files.remove() }
    return try replay(recording, command, in: files, output: streams.output)
  } catch let error as RecordingError {
    printMessage("the recording cannot be replayed: \(error.message)")
    return EX_DATAERR
  } catch {
    printMessage((error as? StartError)?.message ?? "\(error)")
    return (error as? StartError)?.status ?? EX_SOFTWARE
  }
}

/// Replays a recording with the real cache and decoders.
private func replay(
  _ recording: Recording, _ command: ReplayCommand, in files: ReplayFolder, output: Int32
) throws -> Int32 {
  var options = try Options(recordedIn: recording.header)
  options.cacheDirectory = files.cache
  // A session with a trace refuses to start another one.
  options.trace = try options.trace.map { try files.path(ofHost: $0) }
  if recording.header.version != Version.current {
    printMessage("recorded by version \(recording.header.version), replayed by \(Version.current)")
  }
  // The log of the session says nothing about the replay.
  let log = Log(level: .error, format: .text, isFixed: true)
  let decoders = DecoderPool(options.decoderSettings)
  let transport = ReplayTransport()
  let decoder = ReplayDecoder(decoders)
  let paths = WorkerPaths(
    cache: files.cache, scratch: ScratchFolder.defaultParent, pixels: PixelFolder.defaultParent, host: files.host)
  let replayer = try onLoadingThread { () throws(RecordingError) in
    try Replayer(recording, transport: transport, decoder: decoder, paths: paths, hostRoot: files.host)
  }
  LoadingActor.sequencer = replayer
  let storage = try openStorage(options, log, seed: recording.header.seed)
  let trace = try openTrace(options, log)
  let status = Locked<Int32?>(nil)
  let end: @Sendable (Int32) -> Void = { value in
    status.withLock { $0 = $0 ?? value }
    status.notify()
  }
  let sink = command.isCheck ? open("/dev/null", O_WRONLY | O_CLOEXEC) : output
  let writer = LineWriter(descriptor: sink, onClosed: { _ in end(ExitStatus.inputOrOutput) })
  replayer.begin(
    ReplayCallbacks(
      makeSession: { [options] in
        let loader = Loader(
          transport: transport, storage: storage, decoder: decoder, settings: options.loaderSettings,
          seed: recording.header.seed)
        let session = Session(
          options: options, loader: loader, storage: storage, transport: transport, decoders: decoders, writer: writer,
          log: log, observer: replayer, onEnd: { _ in })
        if let trace { session.begin(trace) }
        return session
      },
      onCause: { writer.waitForRoom(below: maxUnreadBytes) },
      onEnd: { result in
        if case .failure(let difference) = result { printReport(difference.message) }
        end(result.isSuccess ? 0 : 1)
      }))
  let result = replayer.waitForEnd(status)
  decoders.shutDown()
  storage.close()
  let isWritten = writer.finish()
  if result == 0, command.isCheck {
    let cut = recording.isIncomplete ? "; the recording ends before the session" : ""
    let text = "\(recording.causeCount) causes repeated, \(recording.sentCount) lines are the same\(cut)\n"
    return write(output, text, text.utf8.count) >= 0 ? 0 : ExitStatus.inputOrOutput
  }
  return isWritten || command.isCheck ? result : ExitStatus.inputOrOutput
}

/// The amount of unread output, in bytes, at which a replay waits.
private let maxUnreadBytes = 32 << 20

extension Replayer {
  /// The time without progress after which a replay ends. Longer than the decoders' default timeout.
  private static let patience = Duration.seconds(60)

  /// Waits for the exit status, or until the replay has made no progress for a long time: the session then waits for
  /// something that the recorded one got.
  fileprivate func waitForEnd(_ status: Locked<Int32?>) -> Int32 {
    var before = -1
    while true {
      let now = progress
      if let result = status.wait(timeout: Self.patience, for: { $0 }) { return result }
      if now == before {
        printReport("\(wait), which does not come")
        return 1
      }
      before = now
    }
  }
}

extension Result {
  fileprivate var isSuccess: Bool { if case .success = self { true } else { false } }
}

/// Runs `work` on the loading thread and waits for it.
private func onLoadingThread<Value: Sendable>(
  _ work: @escaping @LoadingActor @Sendable () throws(RecordingError) -> Value
) throws(RecordingError) -> Value {
  let result = Locked<Result<Value, RecordingError>?>(nil)
  LoadingActor.executor.run {
    let value = LoadingActor.assumeIsolated { Result { () throws(RecordingError) in try work() } }
    result.withLock { $0 = value }
    result.notify()
  }
  return try result.wait { $0 }!.get()
}
