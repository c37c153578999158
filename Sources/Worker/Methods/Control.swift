internal import LineRPC
internal import Loading

extension Session {
  /// Cancels unanswered requests. They are answered before this request.
  func cancel(_ params: JSONObject, _ token: RequestToken) throws(RPCError) {
    let params = try Parameters(params, known: Method.cancel.parameters)
    let selection = try selection(params, Method.cancel.parameters)
    let count = selection.map { loader.cancel($0) } ?? 0
    if logsLoads { log.write(.cancelled(token.id, by: try params.one(of: Method.cancel.parameters), count)) }
    answer(token) { $0.member("cancelled", count) }
  }

  /// Changes the priority of unanswered requests.
  func prioritize(_ params: JSONObject, _ token: RequestToken) throws(RPCError) {
    let params = try Parameters(params, known: Method.prioritize.parameters)
    let selection = try selection(params, Method.prioritize.parameters.filter { $0 != "priority" })
    guard let priority = try LoadParameters.priority(params) else {
      throw .invalidParams(member: "priority", "priority must be given")
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
        throw .invalidParams(member: "id", "id must be the id of a request (an integer or a string)")
      }
      return load(of: id).map(Loader.Selection.one)
    case "all":
      guard try params.flag("all") == true else { throw .invalidParams(member: "all", "all must be true") }
      return .all
    case "url": return .url(try params.string(name) ?? "")
    case "group": return .group(try params.string(name) ?? "")
    default: return .slot(try params.string(name) ?? "")
    }
  }

  /// Stops or resumes the start of transfers. Cached images are served in both states.
  func setPaused(_ isPaused: Bool, _ params: JSONObject, _ token: RequestToken) throws(RPCError) {
    _ = try Parameters(params, known: Method.pause.parameters)
    loader.isPaused = isPaused
    log.write(.paused(isPaused, token.id))
    answer(token) { $0.member("paused", isPaused) }
  }

  /// Shuts the worker down.
  func shutdown(_ params: JSONObject, _ token: RequestToken) throws(RPCError) {
    let params = try Parameters(params, known: Method.shutdown.parameters)
    shutDown(try params.choice("mode") ?? .drain, answering: token)
  }
}
