internal import LineRPC
internal import Loading

extension Session {
  /// Cancels unanswered requests. They are answered before this request.
  func cancel(_ params: Parameters, _ token: RequestToken) throws(RPCError) {
    let selection = try selection(params, Method.cancel.parameters)
    let count = selection.map { loader.cancel($0) } ?? 0
    if logsLoads { log.write(.cancelled(token.id, by: try params.one(of: Method.cancel.parameters), count)) }
    answer(token) { $0.member("cancelled", count) }
  }

  /// Changes the priority of unanswered requests.
  func prioritize(_ params: Parameters, _ token: RequestToken) throws(RPCError) {
    let selection = try selection(params, Method.prioritize.parameters.filter { $0 != "priority" })
    guard let priority = try LoadParameters.priority(params) else {
      throw params.refusal(of: "priority", "must be given")
    }
    let count = selection.map { loader.prioritize($0, priority) } ?? 0
    answer(token) { $0.member("changed", count) }
  }

  /// The selected requests; nil if no request with the given id is unanswered.
  private func selection(_ params: Parameters, _ names: [String]) throws(RPCError) -> Loader.Selection? {
    let name = try params.one(of: names)
    switch name {
    case "id":
      guard let id = params.value("id").flatMap(RequestID.init) else {
        throw params.refusal(of: "id", "must be the id of a request (an integer or a string)")
      }
      return load(of: id).map(Loader.Selection.one)
    case "all":
      try params.requireTrue("all")
      return .all
    case "url": return .url(try params.string(name) ?? "")
    case "group": return .group(try params.string(name) ?? "")
    default: return .slot(try params.string(name) ?? "")
    }
  }

  /// Stops or resumes the start of transfers. Cached images are served in both states.
  func setPaused(_ isPaused: Bool, _ token: RequestToken) {
    loader.isPaused = isPaused
    log.write(.paused(isPaused, token.id))
    answer(token) { $0.member("paused", isPaused) }
  }

  /// Shuts the worker down.
  func shutdown(_ params: Parameters, _ token: RequestToken) throws(RPCError) {
    shutDown(try params.choice("mode") ?? .drain, answering: token)
  }
}
