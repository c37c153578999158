internal import LineRPC
internal import Loading

/// The methods that a host can call. The one place that names them.
enum Method: String, CaseIterable {
  case initialize, load, prefetch, cancel, prioritize, pause, resume, query, store, clear, release, stats,
    configure, shutdown

  /// Carries the request out, and answers it now or later.
  ///
  /// - Throws: what is wrong with the parameters; nothing has happened then.
  @LoadingActor
  func perform(in session: Session, _ params: JSONObject, _ ticket: RequestToken) throws(RPCError) {
    switch self {
    case .initialize: try session.initialize(params, ticket)
    case .load: try session.load(params, ticket)
    case .prefetch: try session.prefetch(params, ticket)
    case .cancel: try session.cancel(params, ticket)
    case .prioritize: try session.prioritize(params, ticket)
    case .pause: try session.setPaused(true, params, ticket)
    case .resume: try session.setPaused(false, params, ticket)
    case .query: try session.query(params, ticket)
    case .store: try session.store(params, ticket)
    case .clear: try session.clear(params, ticket)
    case .release: try session.release(params, ticket)
    case .stats: try session.stats(params, ticket)
    case .configure: try session.configure(params, ticket)
    case .shutdown: try session.shutdown(params, ticket)
    }
  }
}
