internal import LineRPC
internal import Loading
internal import Text

/// The methods that a host can call. No other place lists them.
enum Method: String, CaseIterable {
  case initialize, load, prefetch, probe, process, cancel, prioritize, pause, resume, query, store, clear, release,
    stats,
    metrics, configure, trace, shutdown

  /// The names of its parameters. No other place lists them.
  var parameters: [String] {
    switch self {
    case .initialize: ["protocolVersion", "client", "options", "formats"]
    case .load:
      [
        "url", "file", "key", "priority", "group", "slot", "headers", "cache", "store", "deliver", "saveTo", "validate",
        "events", "timeoutMs", "deadlineMs", "retries", "maxBytes", "retryFailed", "response", "digest", "want",
        "transform", "placeholder", "facts", "isolate", "outputs",
      ]
    case .process:
      [
        "file", "data", "priority", "group", "slot", "deadlineMs", "maxBytes", "want", "validate", "placeholder",
        "facts", "isolate", "outputs",
      ]
    case .prefetch: ["urls", "priority", "group", "headers", "want", "transform", "events"]
    case .probe:
      [
        "url", "key", "priority", "group", "slot", "headers", "cache", "timeoutMs", "deadlineMs", "retries",
        "retryFailed",
      ]
    case .cancel: ["id", "url", "group", "slot", "all"]
    case .prioritize: ["id", "url", "group", "slot", "priority"]
    case .pause, .resume, .stats, .metrics: []
    case .query: ["url", "key", "file", "transform"]
    case .store: ["url", "key", "path", "data", "deliver"]
    case .clear: ["url", "key", "file", "prefix", "host", "olderThanSeconds", "expired", "failures", "tier"]
    case .release: ["path", "all", "unused"]
    case .configure: Options.runtimeMembers
    case .trace: ["action", "path", "limit"]
    case .shutdown: ["mode"]
    }
  }

  /// Refuses a request that has a parameter, or a misspelled `params`, outside of `params`: without it, a `clear` of
  /// one host would clear the whole cache.
  func check(_ request: Request) throws(RPCError) {
    for name in request.ignoredMembers {
      if parameters.contains(name) {
        throw .refusal(of: name, "must be within params")
      }
      if ["params"].nearest(to: name) != nil {
        throw .invalidParams(member: name, "unknown member \(name.quotable) of the request (did you mean params?)")
      }
    }
  }

  /// Ends the error for a parameter that the method does not have: with the nearest name, or else with the methods that
  /// have it.
  private func hint(for unknown: String) -> String {
    let others = Self.allCases.filter { $0.parameters.contains(unknown) }.map(\.rawValue)
    if others.isEmpty || parameters.nearest(to: unknown) != nil { return Text.hint(for: unknown, among: parameters) }
    return " of \(rawValue) (\(others.joined(separator: ", ")) \(others.count == 1 ? "has" : "have") it)"
  }

  /// Performs the request and answers it, now or later.
  ///
  /// - Throws: for invalid parameters, before any effect.
  @LoadingActor
  func perform(in session: Session, _ object: JSONObject, _ token: RequestToken) throws(RPCError) {
    // It explains itself why it refuses a member.
    if self == .configure { return try session.configure(object, token) }
    let params = try Parameters(object, known: parameters, hint: hint)
    switch self {
    case .initialize: try session.initialize(params, token)
    case .load: try session.load(params, token)
    case .prefetch: try session.prefetch(params, token)
    case .probe: try session.probe(params, token)
    case .process: try session.process(params, token)
    case .cancel: try session.cancel(params, token)
    case .prioritize: try session.prioritize(params, token)
    case .pause: session.setPaused(true, token)
    case .resume: session.setPaused(false, token)
    case .query: try session.query(params, token)
    case .store: try session.store(params, token)
    case .clear: try session.clear(params, token)
    case .release: try session.release(params, token)
    case .stats: session.stats(token)
    case .metrics: session.metrics(token)
    case .configure: break  // See above.
    case .trace: try session.trace(params, token)
    case .shutdown: try session.shutdown(params, token)
    }
  }
}
