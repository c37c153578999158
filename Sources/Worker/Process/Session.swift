internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Platform
internal import Threads

/// The connection to the host: receives requests and sends responses and events.
///
/// Runs on the loading thread, so that each line takes effect before the next is handled.
@LoadingActor
final class Session {
  private(set) var options: Options
  private(set) var defaults: LoadDefaults
  let loader: Loader
  let storage: DiskServices
  let transport: Transport
  let decoders: DecoderPool
  let writer: LineWriter
  let log: Log
  /// Whether the events of loads are logged.
  var logsLoads: Bool { options.logLevel == .debug }

  var tracker = RequestTracker()
  var counts = RequestCounts()
  /// The number of `process` requests so far.
  var processCount = 0
  var tracing = Tracing.off
  let startedAt = Instant.now
  /// Unix seconds.
  let startTime = WallClock.now
  private var outcome = SessionOutcome()
  /// Whether the session accepts no further requests.
  private var isEnding = false
  /// The `shutdown` request that is answered last.
  private var shutdownRequest: RequestToken?
  private var drainState = DrainState.notYet
  private let onEnd: @Sendable (Int32) -> Void

  /// The progress of the drain between the last answer and the end, in which cancelled work closes its files.
  private enum DrainState {
    case notYet
    /// The drain ends at this time at the latest.
    case until(Instant)
    case over
  }

  private static let maxDrainTime = Duration.seconds(1)

  struct RequestCounts {
    var received = 0
    var succeeded = 0
    var failed = 0
    var cancelled = 0
  }

  /// - Parameter onEnd: called once with the exit status when all requests have been answered.
  init(
    options: Options, loader: Loader, storage: DiskServices, transport: Transport, decoders: DecoderPool,
    writer: LineWriter, log: Log, onEnd: @escaping @Sendable (Int32) -> Void
  ) {
    (self.options, defaults) = (options, LoadDefaults(options))
    (self.loader, self.storage, self.transport, self.decoders) = (loader, storage, transport, decoders)
    (self.writer, self.log, self.onEnd) = (writer, log, onEnd)
  }

  // MARK: - In

  func receive(_ batch: [Incoming]) {
    for incoming in batch {
      switch incoming {
      case .call(let call): handle(tracker.accept(call))
      case .batch(let calls): for step in tracker.accept(batch: calls) { handle(step) }
      }
    }
  }

  private func handle(_ step: RequestTracker.Step) {
    switch step {
    case .perform(let request, let token): perform(request, token)
    case .failedNotification(let error, let method):
      if logsLoads { log.write(.refused(nil, method, error)) }
      sendFailure(error, of: nil)
    case .send(let line): send(line, about: nil)
    }
  }

  private func perform(_ request: Request, _ token: RequestToken) {
    guard let method = Method(rawValue: request.method) else {
      return refuse(request, token, .methodNotFound(request.method, known: Method.allCases.map(\.rawValue)))
    }
    guard !isEnding else {
      let error = LoadError(.shuttingDown, "the worker is shutting down")
      return refuse(request, token, WireErrors.wire(error, url: url(in: request.params)))
    }
    do throws(RPCError) {
      try method.check(request)
      try method.perform(in: self, request.params, token)
    } catch {
      var error = error
      if let url = url(in: request.params) { error.details.set("url", .string(url)) }
      refuse(request, token, error)
    }
  }

  private func refuse(_ request: Request, _ token: RequestToken, _ error: RPCError) {
    if logsLoads { log.write(.refused(token.id, request.method, error)) }
    answer(token, error)
  }

  /// The URL in the parameters of a refused request; cut if it is too long for an answer.
  private func url(in params: JSONObject) -> String? {
    guard case .string(let text)? = params["url"] else { return nil }
    if DataURL.isDataURL(text) { return DataURL.echo(text) }
    return text.asciiJSONLength <= ResourceURL.maximumLength ? text : text.quotable
  }

  // MARK: - Out

  /// Answers with an object whose members `write` writes. The result of a notification is sent as an event.
  func answer(_ token: RequestToken, _ write: (inout JSONWriter) -> Void) {
    guard token.id != nil else {
      if let line = tracker.event("completed", about: token, write) { send(line, about: token) }
      _ = tracker.respond(to: token) { $0.null() }
      return
    }
    let line = tracker.respond(to: token) { $0.object(write) }
    if let line { send(line, about: token) }
  }

  /// Answers with an error. The error of a notification is sent as an event.
  func answer(_ token: RequestToken, _ error: RPCError) {
    outcome.hasFailures = true
    if token.id == nil { sendFailure(error, of: token) }
    if let line = tracker.respond(to: token, error: error) { send(line, about: token) }
  }

  private func sendFailure(_ error: RPCError, of token: RequestToken?) {
    outcome.hasFailures = true
    let line = tracker.event("failed", about: token) { writer in
      if case .string(let url)? = error.details["url"] { writer.member("url", url) }
      writer.member("error", error)
    }
    if let line { send(line, about: token) }
  }

  /// - Parameter isReplaceable: whether a later line about the same request may replace this one in the queue.
  func send(_ line: [UInt8], about token: RequestToken?, isReplaceable: Bool = false) {
    if isReplaceable, let token {
      writer.sendReplaceable(line, about: token, deferred: true)
    } else {
      writer.send(line, about: token, deferred: true)
    }
  }

  /// Must be called after a line that may be large, so that the next is made only when the output has space for it.
  func pauseDeliveryIfCongested() {
    if writer.isCongested { loader.isOutputStuck = true }
  }

  // MARK: - Settings

  func apply(_ new: Options) {
    let changesRequests =
      new.transportConfiguration != options.transportConfiguration || new.requestHeaders != options.requestHeaders
      || new.maxBytes != options.maxBytes || new.maxRedirects != options.maxRedirects
    options = new
    defaults = LoadDefaults(new)
    loader.apply(new.loaderSettings)
    transport.configure(new.transportConfiguration)
    decoders.configure(new.decoderSettings)
    // With the new options the same requests may succeed.
    if changesRequests { _ = loader.clearFailures() }
    log.configure(level: new.logLevel, format: new.logFormat)
    let (limit, minFree, verify) = (new.diskLimit, new.minFreeFraction, new.verify)
    if let tier = storage.tier {
      storage.executor.run {
        tier.assumeIsolated { tier in
          tier.setVerification(verify)
          tier.setMinFreeFraction(minFree)
          tier.setLimit(limit)
        }
      }
    }
  }

  // MARK: - The end

  /// Runs after each batch of work: starts work that may start, flushes the output, and ends the session when all
  /// requests have been answered. Returns the time at which it must run again.
  func advance() -> Instant? {
    loader.isOutputStuck = writer.isCongested
    let next = loader.advance()
    if let event = loader.takeFailureEvent() { log.write(.failures(event)) }
    for change in loader.takeHealthChanges() {
      log.write(.origin(change, at: .now))
      loader.trace?.healthChanged(change)
    }
    endIfDone()
    writer.flush()
    loader.trace?.loadingThreadWorked(from: LoadingActor.executor.batchStart, to: .now)
    switch drainState {
    case .notYet: return next
    case .until(let end): return next.map { min($0, end) } ?? end
    case .over: return nil
    }
  }

  /// Ends the session after the input has ended or failed.
  func endOfInput(failed: Bool) {
    guard !isEnding else { return }
    logEnding(failed ? .inputFailed(options.endOfInput) : .endOfInput(options.endOfInput))
    outcome.hasLostInput = failed
    isEnding = true
    loader.isPaused = false
    if options.endOfInput == .cancel { _ = loader.cancel(.all) }
  }

  /// Ends the session for the `shutdown` method.
  func shutDown(_ mode: Options.EndMode, answering token: RequestToken) {
    logEnding(.shutdown(mode, token.id))
    (isEnding, shutdownRequest) = (true, token)
    loader.isPaused = false
    if mode == .cancel { _ = loader.cancel(.all) }
  }

  /// Ends the session for a signal or closed output. All unanswered requests are answered with `cancelled`.
  func terminate(for reason: LogEvent.EndReason) {
    logEnding(reason)
    isEnding = true
    outcome.wasCancelledBySignal = loader.cancel(.all) > 0
  }

  private func logEnding(_ reason: LogEvent.EndReason) {
    log.write(.workerEnding(reason, unanswered: tracker.unanswered))
  }

  private func endIfDone() {
    guard isEnding else { return }
    if let token = shutdownRequest, tracker.unanswered == 1, tracker.isOpen(token) { answer(token) { _ in } }
    guard tracker.unanswered == 0 else { return }
    switch drainState {
    case .notYet:
      loader.cancelBackgroundWork()
      if !loader.isIdle {
        drainState = .until(Instant.now.advanced(by: Self.maxDrainTime))
        return
      }
    case .until(let end):
      guard loader.isIdle || end <= Instant.now else { return }
    case .over: return
    }
    drainState = .over
    if tracker.hasRefused { outcome.hasFailures = true }
    let status = outcome.exitStatus(reportingFailures: options.exitStatus)
    log.write(.workerEnded(counts, exitStatus: status, uptime: startedAt.duration(to: .now).milliseconds))
    endTrace { [onEnd] in onEnd(status) }
  }
}
