internal import HTTPTransport
internal import LineRPC
public import Loading
public import Platform
internal import Threads

/// Replays a recorded session: repeats its causes in their order and at their times, and compares its effects.
///
/// The disk thread and the decoders really work. Their results wait here until their turn.
public final class Replayer: WorkSequencer, SessionObserver {
  private struct Arrivals {
    /// The work that other threads have passed to the loading thread, by the number of its source.
    var work: [UInt64: FIFO<@LoadingActor @Sendable () -> Void>] = [:]
    var moment = Moment(nanoseconds: 0, unixTime: 0)
    var diskTime = 0
    /// The number of causes so far.
    var progress = 0
    /// The reason why the next cause waits.
    var wait = ""
  }

  public let recording: Recording
  let transport: ReplayTransport
  let decoder: ReplayDecoder
  let host: HostFolder
  private let start = Instant.now
  private let arrivals = Locked(Arrivals())

  @LoadingActor private var session: (any ReplayableSession)?
  @LoadingActor private var callbacks: ReplayCallbacks?
  @LoadingActor private var reader: JournalReader
  @LoadingActor private var sanitizer: Sanitizer
  @LoadingActor private var bodies: ReplayBodies
  /// The check of the present cause, or of the next one if it waits.
  @LoadingActor private var check: EffectCheck?
  @LoadingActor private var mask = AnswerMask()
  @LoadingActor private var isRunning = false
  @LoadingActor private var hasEnded = false

  /// - Parameter hostRoot: the folder for the files of the host.
  @LoadingActor
  public init(
    _ recording: Recording, transport: ReplayTransport, decoder: ReplayDecoder, paths: WorkerPaths, hostRoot: String
  ) throws(RecordingError) {
    (self.recording, self.transport, self.decoder) = (recording, transport, decoder)
    host = HostFolder(root: hostRoot, files: recording.files)
    reader = try JournalReader(recording.files.journal, start: start)
    sanitizer = Sanitizer(redactsQueries: recording.header.redactsQueries, paths: paths)
    bodies = ReplayBodies(recording)
    arrivals.withLock { arrivals in
      (arrivals.moment.unixTime, arrivals.diskTime) = (recording.startTime, recording.startTime)
    }
    transport.setEffectHandler { [weak self] effect in LoadingActor.assumeIsolated { self?.compare(effect) } }
    decoder.setResultHandler { [weak self] in self?.wake() }
  }

  // MARK: - What the session sees

  public var now: Instant { start + .nanoseconds(arrivals.withLock { $0.moment.nanoseconds }) }
  public var unixTime: Int { arrivals.withLock { $0.moment.unixTime } }
  public var unixTimeOfDisk: Int { arrivals.withLock { $0.diskTime } }

  public func run(for source: WorkSource, _ work: @escaping @LoadingActor @Sendable () -> Void) {
    // The host's work was recorded as what it is.
    if source == .host { return }
    arrivals.withLock { $0.work[source.number, default: FIFO()].append(work) }
    wake()
  }

  public func observed(_ value: Bool) -> Bool {
    LoadingActor.assumeIsolated { check?.observed() ?? false }
  }

  public func dated(_ work: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let time = unixTime
    return { [arrivals] in
      arrivals.withLock { $0.diskTime = time }
      work()
    }
  }

  // MARK: - Progress

  /// The number of causes that have been repeated.
  public var progress: Int { arrivals.withLock { $0.progress } }

  /// The event that the next cause waits for.
  public var wait: String { arrivals.withLock { $0.wait } }

  /// Begins the replay.
  public func begin(_ callbacks: ReplayCallbacks) {
    LoadingActor.executor.run {
      LoadingActor.assumeIsolated {
        self.callbacks = callbacks
        self.repeatCauses()
      }
    }
  }

  /// Continues the replay.
  private func wake() { LoadingActor.executor.run { LoadingActor.assumeIsolated { self.repeatCauses() } } }

  /// Repeats the causes that can be repeated now.
  @LoadingActor
  private func repeatCauses() {
    guard let callbacks, !isRunning else { return }
    isRunning = true
    defer { isRunning = false }
    while !hasEnded {
      do throws(RecordingError) {
        if check == nil { check = try reader.nextGroup().map { EffectCheck($0) } }
        guard let next = check?.group else { return end(.success(())) }
        guard try isReady(next.cause) else { return arrivals.withLock { $0.wait = next.waitDescription } }
        callbacks.onCause()
        arrivals.withLock { arrivals in
          arrivals.moment = next.moment
          arrivals.progress += 1
        }
        try perform(next.cause)
        if let difference = check?.missing { end(.failure(difference)) }
        check = nil
      } catch {
        end(.failure(Difference(message: error.message)))
      }
    }
  }

  /// Whether everything is there that the cause needs.
  @LoadingActor
  private func isReady(_ cause: Cause) throws(RecordingError) -> Bool {
    switch cause {
    case .work(let source):
      if arrivals.withLock({ $0.work[source]?.isEmpty == false }) { return true }
      guard source <= WorkSource.last else { throw otherWay("a result of work \(source), which has not begun") }
      return false
    case .decoded(let decode, let failure, _):
      switch decoder.progress(of: decode) {
      case .unknown: throw otherWay("the end of decode \(decode), which has not begun")
      case .running: return failure != nil
      case .ended: return true
      }
    default: return true
    }
  }

  @LoadingActor
  private func perform(_ cause: Cause) throws(RecordingError) {
    switch cause {
    case .start: session = callbacks?.makeSession()
    case .input(let lines):
      var batch: [Incoming] = []
      for line in lines { batch.append(try incoming(line)) }
      session?.receive(batch)
    case .endOfInput(let failed): session?.endOfInput(failed: failed)
    case .termination: session?.terminate()
    case .figures: session?.collectFigures()
    case .work(let source):
      let work = arrivals.withLock { arrivals in
        let work = arrivals.work[source]?.popFirst()
        if arrivals.work[source]?.isEmpty == true { arrivals.work[source] = nil }
        return work
      }
      work?()
    case .advance: _ = session?.advance()
    case .redirect(let transfer, let url): _ = try consumer(of: transfer).redirected(to: url)
    case .response(let transfer, let head): _ = try consumer(of: transfer).received(head: head)
    case .body(let transfer, let count, _):
      let bytes = try bodies.next(count, of: transfer)
      let consumer = try consumer(of: transfer)
      _ = bytes.withUnsafeBytes { consumer.received(bytes: $0) }
    case .end(let transfer, let outcome, _):
      try consumer(of: transfer).finished(outcome)
      transport.end(transfer)
      bodies.end(transfer)
    case .name(let lookUp, let resolution):
      guard let completion = transport.takeLookUp(lookUp) else {
        throw otherWay("the end of name lookup \(lookUp), which has not begun")
      }
      completion(resolution)
    case .decoded(let decode, let failure, let start): decoder.deliver(decode, failure: failure, start: start)
    }
  }

  @LoadingActor
  private func incoming(_ line: InputLine) throws(RecordingError) -> Incoming {
    switch line {
    case .invalid(let message): return .call(.refused(.parseError(message), id: nil))
    case .tooLong(let limit): return .tooLong(limit: limit)
    case .json(let json, _, let paths):
      mask.note(json)
      let local = try host.localized(RequestPaths.localized(json, sanitizer.paths), paths)
      return JournalWriter.line(local).withUnsafeBytes { Incoming(line: $0) }
    }
  }

  @LoadingActor
  private func consumer(of transfer: UInt64) throws(RecordingError) -> any TransferConsumer {
    guard let consumer = transport.consumer(of: transfer) else {
      throw otherWay("a response of transfer \(transfer), which has not begun")
    }
    return consumer
  }

  // MARK: - Comparison

  /// Compares a line for the host.
  @LoadingActor
  public func sent(_ line: [UInt8]) { compare(.sent(line)) }

  /// Compares the end of the session.
  @LoadingActor
  public func ended(status: Int32) { compare(.exit(status)) }

  @LoadingActor
  private func compare(_ effect: Effect) {
    guard !hasEnded, check != nil else { return }
    switch check?.compare(sanitizer.clean(effect.json), &mask) {
    case .same, nil: break
    // A journal that was cut may lack effects of its last cause.
    case .unrecorded where recording.isIncomplete && progress == recording.causeCount: end(.success(()))
    case .unrecorded(let difference), .different(let difference): end(.failure(difference))
    }
  }

  @LoadingActor
  private func otherWay(_ text: String) -> RecordingError {
    RecordingError("line \(check?.group.line ?? 0) of the journal: the recorded session handled \(text) in the replay")
  }

  @LoadingActor
  private func end(_ result: Result<Void, Difference>) {
    guard !hasEnded else { return }
    hasEnded = true
    callbacks?.onEnd(result)
  }
}
