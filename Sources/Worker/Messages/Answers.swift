internal import HTTPTypes
internal import LineRPC
internal import Loading

/// Writes the events and the result of a load as the lines that answer its request.
@LoadingActor
final class LoadAnswer: LoadObserver {
  /// The session outlives all unanswered requests.
  private unowned let session: Session
  let load: LoadID
  private let token: RequestToken
  private let url: String

  init(to token: RequestToken, by load: LoadID, of url: String, in session: Session) {
    self.session = session
    self.load = load
    self.token = token
    self.url = url
    session.begin(self, for: token)
  }

  func load(_ id: LoadID, did event: LoadEvent) {
    let url = url
    switch event {
    case .started(let attempt):
      session.send("started", about: token) { writer in
        writer.member("url", url)
        writer.member("attempt", attempt)
      }
    case .progress(let received, let total):
      session.send("progress", about: token, isReplaceable: true) { writer in
        writer.member("url", url)
        writer.member("received", received)
        if let total { writer.member("total", total) }
      }
    case .retrying(let attempt, let delay, let kind):
      session.send("retrying", about: token) { writer in
        writer.member("url", url)
        writer.member("attempt", attempt)
        writer.member("delayMs", delay.milliseconds)
        writer.member("kind", kind.rawValue)
      }
    case .preview(let path, let width, let height, let scan):
      session.send("preview", about: token) { writer in
        writer.member("url", url)
        writer.member("path", path)
        writer.member("width", width)
        writer.member("height", height)
        writer.member("scan", scan)
      }
    case .cached(let image):
      session.send("cached", about: token) { $0.members(of: image, url: url) }
      if image.data != nil { session.pauseDeliveryIfCongested() }
    }
  }

  func load(_ id: LoadID, ended result: Result<LoadedImage, LoadError>) {
    session.answer(token, with: result, of: url)
  }
}

/// Writes the events and the result of a prefetch as the lines that answer its request.
@LoadingActor
final class PrefetchAnswer: PrefetchObserver {
  private unowned let session: Session
  let load: LoadID
  private let token: RequestToken
  /// The names of the requested events.
  private let events: Set<String>

  init(to token: RequestToken, by load: LoadID, events: Set<String>, in session: Session) {
    self.session = session
    self.load = load
    self.token = token
    self.events = events
    session.begin(self, for: token)
  }

  func prefetch(_ id: LoadID, progressed progress: Prefetch.Progress) {
    guard events.contains("progress") else { return }
    session.send("progress", about: token, isReplaceable: true) { writer in
      writer.member("done", progress.done)
      writer.member("total", progress.total)
      writer.member("bytes", progress.bytes)
    }
  }

  func prefetch(_ id: LoadID, item url: String, ended result: Result<LoadedImage, LoadError>) {
    switch result {
    case .success(let image) where events.contains("completed"):
      session.send("completed", about: token) { $0.members(of: image, url: url) }
    case .failure(let error) where events.contains("failed"):
      session.send("failed", about: token) { writer in
        writer.member("url", url)
        writer.member("error", WireErrors.wire(error, url: url))
      }
    default: return
    }
  }

  func prefetch(_ id: LoadID, ended result: Result<Prefetch.Summary, LoadError>) {
    switch result {
    case .success(let summary):
      session.counts.succeeded += 1
      session.answer(token) { $0.members(of: summary) }
    case .failure(let error):
      session.count(error)
      session.answer(token, WireErrors.wire(error, url: nil))
    }
  }
}

extension Session {
  /// Registers the load or prefetch that will answer the request.
  fileprivate func begin(_ answer: any RequestTracker.Work, for token: RequestToken) {
    tracker.assign(answer, to: token)
    counts.received += 1
  }

  /// The load or prefetch that will answer the request with this id.
  func load(of id: RequestID) -> LoadID? {
    switch tracker.work(of: id) {
    case let answer as LoadAnswer: answer.load
    case let answer as PrefetchAnswer: answer.load
    default: nil
    }
  }

  fileprivate func send(
    _ event: StaticString, about token: RequestToken, isReplaceable: Bool = false, _ write: (inout JSONWriter) -> Void
  ) {
    guard let line = tracker.event(event, about: token, write) else { return }
    send(line, about: token, isReplaceable: isReplaceable)
  }

  /// Answers with the result of a load.
  func answer(_ token: RequestToken, with result: Result<LoadedImage, LoadError>, of url: String) {
    switch result {
    case .success(let image): answer(token, with: image, of: url)
    case .failure(let error):
      logEnd(of: url) { "\(error.kind.rawValue): \(error.message)" }
      count(error)
      answer(token, WireErrors.wire(error, url: url))
    }
  }

  func answer(_ token: RequestToken, with image: LoadedImage, of url: String) {
    logEnd(of: url) {
      "\(image.cache.rawValue), \(image.byteCount) bytes, \(image.timeline.map { $0.total / 1000 } ?? 0) ms"
    }
    counts.succeeded += 1
    answer(token) { $0.members(of: image, url: url) }
    if image.data != nil { pauseDeliveryIfCongested() }
  }

  private func logEnd(of url: String, _ outcome: () -> String) {
    log.debug { "\((try? ResourceURL(url))?.redacted ?? url): \(outcome())" }
  }

  fileprivate func count(_ error: LoadError) {
    if error.kind == .cancelled { counts.cancelled += 1 } else { counts.failed += 1 }
  }
}
