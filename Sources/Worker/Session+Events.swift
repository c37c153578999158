internal import HTTPTypes
internal import LineRPC
internal import Loading

/// What becomes of loads, as lines.
extension Session: LoadObserver {
  func load(_ id: LoadID, did event: LoadEvent) {
    guard let request = pending[id] else { return }
    let ticket = request.ticket
    let url = request.url ?? ""
    let line: [UInt8]?
    switch event {
    case .started(let attempt):
      line = conversation.event("started", about: ticket) { writer in
        writer.member("url", url)
        writer.member("attempt", attempt)
      }
    case .progress(let received, let total):
      line = conversation.event("progress", about: ticket) { writer in
        writer.member("url", url)
        writer.member("received", received)
        if let total { writer.member("total", total) }
      }
      if let line { writer.sendReplaceable(line, about: ticket, deferred: true) }
      return
    case .retrying(let attempt, let delay, let kind):
      line = conversation.event("retrying", about: ticket) { writer in
        writer.member("url", url)
        writer.member("attempt", attempt)
        writer.member("delayMs", delay.milliseconds)
        writer.member("kind", kind.rawValue)
      }
    case .cached(let image):
      line = conversation.event("cached", about: ticket) { $0.members(of: image, url: url) }
    }
    if let line { send(line, about: ticket) }
  }

  func load(_ id: LoadID, ended result: Result<LoadedImage, LoadError>) {
    guard let request = unregister(id) else { return }
    logEnd(of: request.url ?? "", result)
    switch result {
    case .success(let image):
      counts.succeeded += 1
      answer(request.ticket) { $0.members(of: image, url: request.url) }
    case .failure(let error):
      count(error)
      answer(request.ticket, WireErrors.wire(error, url: request.url), url: request.url)
    }
  }

  private func logEnd(of url: String, _ result: Result<LoadedImage, LoadError>) {
    log.debug {
      let name = (try? ResourceURL(url))?.redacted ?? url
      switch result {
      case .success(let image):
        return "\(name): \(image.cache.rawValue), \(image.byteCount) bytes, \(image.timing.total.milliseconds) ms"
      case .failure(let error):
        return "\(name): \(error.kind.rawValue): \(error.message)"
      }
    }
  }

  fileprivate func count(_ error: LoadError) {
    if error.kind == .cancelled { counts.cancelled += 1 } else { counts.failed += 1 }
  }
}

extension Session: PrefetchObserver {
  func prefetch(_ id: LoadID, progressed progress: Prefetch.Progress) {
    guard let request = pending[id], request.prefetchEvents.contains("progress") else { return }
    let line = conversation.event("progress", about: request.ticket) { writer in
      writer.member("done", progress.done)
      writer.member("total", progress.total)
      writer.member("bytes", progress.bytes)
    }
    if let line { writer.sendReplaceable(line, about: request.ticket, deferred: true) }
  }

  func prefetch(_ id: LoadID, item url: String, ended result: Result<LoadedImage, LoadError>) {
    guard let request = pending[id] else { return }
    let line: [UInt8]?
    switch result {
    case .success(let image) where request.prefetchEvents.contains("completed"):
      line = conversation.event("completed", about: request.ticket) { $0.members(of: image, url: url) }
    case .failure(let error) where request.prefetchEvents.contains("failed"):
      line = conversation.event("failed", about: request.ticket) { writer in
        writer.member("url", url)
        writer.member("error", WireErrors.wire(error, url: url))
      }
    default: return
    }
    if let line { send(line, about: request.ticket) }
  }

  func prefetch(_ id: LoadID, ended result: Result<Prefetch.Summary, LoadError>) {
    guard let request = unregister(id) else { return }
    switch result {
    case .success(let summary):
      counts.succeeded += 1
      answer(request.ticket) { $0.members(of: summary) }
    case .failure(let error):
      count(error)
      answer(request.ticket, WireErrors.wire(error, url: nil))
    }
  }
}
