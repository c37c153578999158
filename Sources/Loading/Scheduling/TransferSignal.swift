/// The outcome of a transfer as evidence about its origin's health.
enum TransferSignal: Equatable {
  /// The origin sent a response that is not `refused`.
  case answered
  /// The origin refused: 429 or 503, or an error with Retry-After.
  case refused(retryAfter: Duration?)
  /// The connection broke during the response.
  case broken
  /// The origin closed the connection before a response.
  case closed
  /// No connection was established: no address, no listener, or a handshake timeout.
  case unreachable
  /// The connection was established, but no data arrived in time.
  case unresponsive
  /// No evidence about the origin: the transfer was cancelled, or the fault is on this machine.
  case inconclusive

  /// Whether the origin has answered at all.
  var isAnswer: Bool {
    switch self {
    case .answered, .refused, .broken: true
    case .closed, .unreachable, .unresponsive, .inconclusive: false
    }
  }
}
