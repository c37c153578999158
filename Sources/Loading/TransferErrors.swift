internal import HTTPTransport
internal import HTTPTypes

extension LoadError {
  /// What a transfer's failure is to a load.
  init(_ error: TransferError) {
    let kinds: [TransferError.Kind: Kind] = [
      .resolve: .resolve, .connect: .connect, .tls: .tls, .timeout: .timeout, .redirects: .redirects,
      .truncated: .truncated, .tooLarge: .tooLarge, .blockedAddress: .blockedAddress, .cancelled: .cancelled,
    ]
    self.init(kinds[error.kind] ?? .network, error.message)
    phase = error.phase.flatMap { Phase(rawValue: $0.rawValue) }
  }
}

extension Contact {
  /// What a transfer's end tells of the origin that was asked. A redirect is an answer of it, whatever comes after.
  ///
  /// - Parameter now: Unix seconds.
  init(_ outcome: Result<TransferSummary, TransferError>, now: Int) {
    switch outcome {
    case .success(let summary):
      let (status, retryAfter) = (summary.head.status, summary.head.retryAfter(now: now))
      let isToWait = retryAfter != nil && LoadError.retryableStatuses.contains(status)
      self = status == 429 || status == 503 || isToWait ? .refused(retryAfter: retryAfter) : .answered
    case .failure(let error):
      switch error.kind {
      case .cancelled: self = .inconclusive
      case _ where error.redirects > 0: self = .answered
      case .resolve, .connect: self = .unreachable
      case .timeout:
        switch error.phase {
        case .connect: self = .unreachable
        case .firstByte, .idle: self = .unresponsive
        case .deadline, nil: self = .inconclusive
        }
      // What came was not wanted.
      case .tooLarge, .redirects, .aborted: self = .answered
      default: self = .inconclusive
      }
    }
  }
}

extension ResponseHead {
  /// What Retry-After says.
  ///
  /// - Parameter now: Unix seconds.
  func retryAfter(now: Int) -> Duration? { RetryAfter.parse(headers["retry-after"], now: now) }
}
