/// How a transfer went, as far as it concerns its origin.
enum TransferSignal: Equatable {
  /// It gave an answer that is not `refused`.
  case answered
  /// It wants to be left alone: 429 or 503, or an error with Retry-After.
  case refused(retryAfter: Duration?)
  /// The connection broke while it answered.
  case broken
  /// It closed the connection before an answer.
  case closed
  /// There was no connection: no address, nobody listening, no answer to the handshake in time.
  case unreachable
  /// It was connected and kept silent for too long.
  case unresponsive
  /// Nothing that tells of the origin: cancelled, or trouble on this side.
  case inconclusive

  /// Whether the origin was heard of.
  var isAnswer: Bool {
    switch self {
    case .answered, .refused, .broken: true
    case .closed, .unreachable, .unresponsive, .inconclusive: false
    }
  }
}
