internal import LineRPC
internal import Loading

/// The methods that a host can call. No other place lists them.
enum Method: String, CaseIterable {
  case initialize, load, prefetch, cancel, prioritize, pause, resume, query, store, clear, release, stats,
    configure, shutdown

  /// Performs the request and answers it, now or later.
  ///
  /// - Throws: for invalid parameters, before any effect.
  @LoadingActor
  func perform(in session: Session, _ params: JSONObject, _ token: RequestToken) throws(RPCError) {
    switch self {
    case .initialize: try session.initialize(params, token)
    case .load: try session.load(params, token)
    case .prefetch: try session.prefetch(params, token)
    case .cancel: try session.cancel(params, token)
    case .prioritize: try session.prioritize(params, token)
    case .pause: try session.setPaused(true, params, token)
    case .resume: try session.setPaused(false, params, token)
    case .query: try session.query(params, token)
    case .store: try session.store(params, token)
    case .clear: try session.clear(params, token)
    case .release: try session.release(params, token)
    case .stats: try session.stats(params, token)
    case .configure: try session.configure(params, token)
    case .shutdown: try session.shutdown(params, token)
    }
  }
}
