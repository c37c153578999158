internal import LineRPC
internal import Loading

/// Writes the events and the result of a load as the lines that answer its request.
@LoadingActor
final class LoadAnswer: LoadObserver {
  /// The session outlives all unanswered requests.
  private unowned let session: Session
  let load: LoadID
  private let token: RequestToken
  private let subject: LoadSubject
  /// The events that the host requested.
  private let events: LoadRequest.Events

  init(to token: RequestToken, by load: LoadID, of request: LoadRequest, in session: Session) {
    self.session = session
    self.load = load
    self.token = token
    subject = LoadSubject(request, as: load)
    events = request.events
    session.begin(self, for: token)
  }

  func load(_ id: LoadID, did event: LoadEvent) {
    session.logEvent(event, of: subject, token)
    let url = subject.url
    switch event {
    case .started(let attempt):
      guard events.contains(.started) else { return }
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
      guard events.contains(.retrying) else { return }
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
      if image.hasData { session.pauseDeliveryIfCongested() }
    }
  }

  func load(_ id: LoadID, ended result: Result<LoadedImage, LoadError>) {
    session.answer(token, with: result, of: subject)
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
  /// The fields that all items have, for the log.
  private let headers: LoadHeaders

  init(
    to token: RequestToken, by load: LoadID, events: Set<String>, headers: LoadHeaders, in session: Session
  ) {
    self.session = session
    self.load = load
    self.token = token
    self.events = events
    self.headers = headers
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

  func prefetch(_ id: LoadID, item: Prefetch.Item, did event: LoadEvent) {
    session.logEvent(event, of: LoadSubject(item), token)
  }

  func prefetch(_ id: LoadID, item: Prefetch.Item, ended result: Result<LoadedImage, LoadError>) {
    session.logEnd(of: LoadSubject(item), token, result)
    let url = item.url
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
      if session.logsLoads { session.log.write(.prefetchCompleted(id, token.id, headers, summary)) }
      session.counts.succeeded += 1
      session.answer(token) { $0.members(of: summary) }
    case .failure(let error):
      if session.logsLoads { session.log.write(.prefetchFailed(id, token.id, headers, error)) }
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
  fileprivate func answer(_ token: RequestToken, with result: Result<LoadedImage, LoadError>, of load: LoadSubject) {
    switch result {
    case .success(let image): answer(token, with: image, of: load)
    case .failure(let error):
      logEnd(of: load, token, result)
      count(error)
      answer(token, WireErrors.wire(error, url: load.kind == .process ? nil : load.url))
    }
  }

  func answer(_ token: RequestToken, with image: LoadedImage, of load: LoadSubject) {
    if logsLoads { log.write(.loadCompleted(load, token.id, image)) }
    counts.succeeded += 1
    answer(token) { writer in
      switch load.kind {
      case .load: writer.members(of: image, url: load.url)
      case .probe: writer.members(ofProbe: image, url: load.url)
      case .process: writer.members(ofProcess: image)
      }
    }
    if image.hasData { pauseDeliveryIfCongested() }
  }

  fileprivate func logEvent(_ event: LoadEvent, of load: LoadSubject, _ token: RequestToken) {
    if logsLoads, let event = LogEvent.load(load, token.id, did: event) { log.write(event) }
  }

  fileprivate func logEnd(of load: LoadSubject, _ token: RequestToken, _ result: Result<LoadedImage, LoadError>) {
    switch result {
    case .success(let image): if logsLoads { log.write(.loadCompleted(load, token.id, image)) }
    case .failure(let error):
      let event = LogEvent.loadFailed(load, token.id, error)
      if logsLoads || event.level < .debug { log.write(event) }
    }
  }

  fileprivate func count(_ error: LoadError) {
    if error.kind == .cancelled { counts.cancelled += 1 } else { counts.failed += 1 }
  }
}

/// The names of the events that a host can request.
enum EventNames {
  static let optional: [(name: String, event: LoadRequest.Events)] = [
    ("started", .started), ("progress", .progress), ("retrying", .retrying), ("cached", .cached),
    ("preview", .preview),
  ]

  static let ofLoad = optional.map(\.name)

  /// Events for the outcome of each item, which only a prefetch sends.
  static let prefetchOnly = ["completed", "failed"]

  /// The names of all events.
  static let all = ofLoad + prefetchOnly

  /// The end of a sentence that begins with the name if it is refused, or nil.
  static func check(_ name: String) -> String? {
    ofLoad.contains(name) ? nil : "must be one of \(ofLoad.joined(separator: ", "))"
  }

  static func events(_ names: [String]) -> LoadRequest.Events {
    names.reduce(into: []) { events, name in
      if let event = optional.first(where: { $0.name == name })?.event { events.insert(event) }
    }
  }
}
