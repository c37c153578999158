internal import ImageCodec
internal import LineRPC
internal import Loading
internal import Platform
internal import Threads
internal import Tracing

extension Session {
  /// The state of the trace.
  enum Tracing {
    case off
    /// The file is being opened.
    case starting
    case on(TraceRecorder)
  }

  /// Starts or stops a trace.
  func trace(_ params: Parameters, _ token: RequestToken) throws(RPCError) {
    guard let starts = try params.choice("action", named: [("start", true), ("stop", false)]) else {
      throw params.refusal(of: "action", "must be given: start or stop")
    }
    if starts { try startTrace(params, token) } else { try stopTrace(params, token) }
  }

  private func startTrace(_ params: Parameters, _ token: RequestToken) throws(RPCError) {
    guard let path = try params.absolutePath("path") else {
      throw params.refusal(of: "path", "must be given: the absolute path of the trace's file")
    }
    let limit = try params.integer("limit", in: TraceRecorder.minLimit...(1 << 40)) ?? options.traceLimit
    switch tracing {
    case .off: break
    case .starting: throw .invalidParams(member: "action", "a trace is being started already")
    case .on(let recorder):
      throw .invalidParams(member: "action", "a trace is being written to \(recorder.path) already; stop it first")
    }
    tracing = .starting
    storage.executor.run { [log] in
      let opened = Result { () throws(TraceError) in try TraceRecorder.open(path, limit: limit, log) }
      LoadingActor.run { [weak self] in self?.traceOpened(opened, path, limit: limit, token) }
    }
  }

  private func traceOpened(
    _ opened: Result<TraceRecorder, TraceError>, _ path: String, limit: Int64, _ token: RequestToken
  ) {
    switch opened {
    case .failure(let error):
      tracing = .off
      answer(token, WireErrors.wire(LoadError(.io, "\(path) cannot be used for a trace: \(error.message)"), url: nil))
    case .success(let recorder):
      begin(recorder)
      answer(token) { writer in
        writer.member("path", recorder.path)
        writer.member("limit", limit)
      }
    }
  }

  func begin(_ recorder: TraceRecorder) {
    let trace = LoaderTrace(recorder)
    tracing = .on(recorder)
    loader.trace = trace
    decoders.observe { trace.decoderWorked($0) }
  }

  private func stopTrace(_ params: Parameters, _ token: RequestToken) throws(RPCError) {
    for name in ["path", "limit"] where params.has(name) {
      throw params.refusal(of: name, "may only be given with action start")
    }
    guard case .on(let recorder) = tracing else {
      throw .invalidParams(member: "action", "no trace is being recorded")
    }
    endTrace(recorder) { summary in
      LoadingActor.run { [weak self] in
        if let error = summary.error {
          let message = "the trace in \(recorder.path) is incomplete: \(error.message)"
          self?.answer(token, WireErrors.wire(LoadError(.io, message), url: nil))
        } else {
          self?.answer(token) { writer in
            writer.member("path", recorder.path)
            writer.member("events", summary.events)
            writer.member("bytes", summary.bytes)
            writer.member("dropped", summary.dropped)
            writer.member("full", summary.isFull)
          }
        }
      }
    }
  }

  private func endTrace(
    _ recorder: TraceRecorder, then completion: @escaping @Sendable (TraceRecorder.Summary) -> Void
  ) {
    loader.completeTrace()
    loader.trace = nil
    decoders.observe(nil)
    tracing = .off
    recorder.stop(then: completion)
  }

  /// Ends the trace, if there is one, at the end of the session.
  func endTrace(then completion: @escaping @Sendable () -> Void) {
    guard case .on(let recorder) = tracing else { return completion() }
    endTrace(recorder) { _ in completion() }
  }
}

extension TraceRecorder {
  /// - Parameter path: `%p` in it is replaced by the process ID.
  static func open(_ path: String, limit: Int64, _ log: Log) throws(TraceError) -> TraceRecorder {
    var pieces: [Substring] = []
    var rest = path[...]
    while let place = rest.utf8.firstRange(ofPart: "%p".utf8) {
      pieces.append(rest[..<place.lowerBound])
      rest = rest[place.upperBound...]
    }
    let path = (pieces + [rest]).joined(separator: "\(getpid())")
    let label = "imageworker \(Version.current) (\(getpid()))"
    return try TraceRecorder(path: path, limit: limit, label: label) { log.write(.traceFailed(path, $0)) }
  }
}
