internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Threads

/// One host's conversation with the worker: requests in, responses and events out.
///
/// Lives on the loading thread, so that a line has taken effect before the next is looked at.
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

  var tracker = RequestTracker()
  var counts = RequestCounts()
  let startedAt = ContinuousClock.now
  private var hasFailures = false
  private var wasCancelledBySignal = false
  private var hasLostInput = false
  private var ending: ShutdownReason?
  private var rest = DrainState.notYet
  private let onEnd: @Sendable (Int32) -> Void

  /// What comes between the last answer and the end: what was given up lets go of its files.
  private enum DrainState {
    case notYet
    /// At the latest then.
    case until(ContinuousClock.Instant)
    case over
  }

  private static let longestRest = Duration.seconds(1)

  struct RequestCounts {
    var received = 0
    var succeeded = 0
    var failed = 0
    var cancelled = 0
  }

  /// Why the session ends; nothing more is accepted.
  private enum ShutdownReason {
    case endOfInput
    case shutdown(RequestToken)
    case signal
  }

  /// - Parameter onEnd: gets the exit status, once, when everything has been answered.
  init(
    options: Options, loader: Loader, storage: DiskServices, transport: Transport, decoders: DecoderPool,
    writer: LineWriter, log: Log, onEnd: @escaping @Sendable (Int32) -> Void
  ) {
    self.options = options
    defaults = LoadDefaults(options)
    self.loader = loader
    self.storage = storage
    self.transport = transport
    self.decoders = decoders
    self.writer = writer
    self.log = log
    self.onEnd = onEnd
  }

  // MARK: - In

  func receive(_ batch: [Incoming]) {
    for incoming in batch {
      switch incoming {
      case .call(let call): take(tracker.accept(call))
      case .batch(let calls): for step in tracker.accept(batch: calls) { take(step) }
      }
    }
  }

  private func take(_ step: RequestTracker.Step) {
    switch step {
    case .perform(let request, let token): perform(request, token)
    case .failedNotification(let error, _): tellFailure(error, of: nil)
    case .send(let line): writer.send(line, deferred: true)
    }
  }

  private func perform(_ request: Request, _ token: RequestToken) {
    guard let method = Method(rawValue: request.method) else {
      return answer(token, .methodNotFound(request.method))
    }
    guard ending == nil else {
      let error = WireErrors.wire(LoadError(.shuttingDown, "the worker is shutting down"), url: nil)
      return answer(token, error, url: url(in: request.params))
    }
    do throws(RPCError) {
      try method.perform(in: self, request.params, token)
    } catch {
      answer(token, error, url: url(in: request.params))
    }
  }

  /// What a request that was refused as it stood named, as far as it can be shown.
  private func url(in params: JSONObject) -> String? {
    guard case .string(let text)? = params["url"] else { return nil }
    if DataURL.isDataURL(text) { return DataURL.echo(text) }
    return text.asciiJSONLength <= ResourceURL.maximumLength ? text : nil
  }

  // MARK: - Out

  /// Answers with an object whose members `write` writes; a notification's outcome is an event.
  func answer(_ token: RequestToken, _ write: (inout JSONWriter) -> Void) {
    guard token.id != nil else {
      if let line = tracker.event("completed", about: token, write) { send(line, about: token) }
      _ = tracker.respond(to: token) { $0.null() }
      return
    }
    let line = tracker.respond(to: token) { $0.object(write) }
    if let line { send(line, about: token) }
  }

  /// Answers with an error; a notification's is an event.
  func answer(_ token: RequestToken, _ error: RPCError, url: String? = nil) {
    hasFailures = true
    if token.id == nil { tellFailure(error, of: token, url: url) }
    if let line = tracker.respond(to: token, error: error) { send(line, about: token) }
  }

  private func tellFailure(_ error: RPCError, of token: RequestToken?, url: String? = nil) {
    hasFailures = true
    let line = tracker.event("failed", about: token) { writer in
      if let url { writer.member("url", url) }
      writer.member("error", error)
    }
    if let line { send(line, about: token) }
  }

  func send(_ line: [UInt8], about token: RequestToken?) {
    writer.send(line, about: token, deferred: true)
  }

  /// To be called after a line that may be large: the next is not to be made before there is room for it.
  func noteCongestion() {
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
    // They might be none any more.
    if changesRequests { _ = loader.clearFailures() }
    log.setLevel(new.logLevel)
    let (limit, minFree, verify) = (new.diskLimit, Double(new.minFree) / 100, new.verification)
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

  /// After each batch of work: starts what may start, lets lines go, and ends when all is answered.
  func advance() -> ContinuousClock.Instant? {
    loader.isOutputStuck = writer.isCongested
    let next = loader.advance()
    for change in loader.takeHealthChanges() { log.info(change.logLine(at: .now)) }
    endIfDone()
    writer.flush()
    switch rest {
    case .notYet: return next
    case .until(let end): return next.map { min($0, end) } ?? end
    case .over: return nil
    }
  }

  /// The host has nothing more to say, or cannot be heard any more.
  func endOfInput(failed: Bool) {
    guard ending == nil else { return }
    hasLostInput = failed
    ending = .endOfInput
    loader.isPaused = false
    if options.endOfInput == .cancel { _ = loader.cancel(.all) }
  }

  /// The `shutdown` method.
  func shutDown(_ mode: Options.EndMode, answering token: RequestToken) {
    ending = .shutdown(token)
    loader.isPaused = false
    if mode == .cancel { _ = loader.cancel(.all) }
  }

  /// A signal asks for the end: everything outstanding is answered `cancelled`.
  func terminate() {
    // A shutdown under way is still to be answered.
    if case .shutdown = ending {} else { ending = .signal }
    wasCancelledBySignal = loader.cancel(.all) > 0
  }

  private func endIfDone() {
    switch ending {
    case nil: return
    case .shutdown(let token) where tracker.unanswered == 1 && tracker.isOpen(token):
      answer(token) { _ in }
    default: break
    }
    guard tracker.unanswered == 0 else { return }
    switch rest {
    case .notYet:
      loader.cancelBackgroundWork()
      if !loader.isIdle {
        rest = .until(.now.advanced(by: Self.longestRest))
        return
      }
    case .until(let end):
      guard loader.isIdle || end <= .now else { return }
    case .over: return
    }
    rest = .over
    let failed = options.exitStatus && (hasFailures || tracker.hasRefused || wasCancelledBySignal)
    log.info("done after \(counts.received) loads and prefetches, \(startedAt.duration(to: .now).milliseconds) ms")
    onEnd(hasLostInput ? ExitStatus.inputOrOutput : failed ? ExitStatus.failures : 0)
  }
}
