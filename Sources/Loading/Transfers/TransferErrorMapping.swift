internal import HTTPTransport
internal import HTTPTypes

extension LoadError {
  /// What a transfer's failure is to a load.
  init(_ error: TransferError) {
    let kinds: [TransferError.Kind: Kind] = [
      .resolve: .resolve, .unanswered: .resolve, .connect: .connect, .tls: .tls, .timeout: .timeout,
      .redirects: .redirects, .truncated: .truncated, .tooLarge: .tooLarge, .blockedAddress: .blockedAddress,
      .cancelled: .cancelled, .undecodable: .notAnImage,
    ]
    self.init(kinds[error.kind] ?? .network, error.message)
    phase = error.phase.flatMap { Phase(rawValue: $0.rawValue) }
  }
}

extension LoadError {
  /// An answer that is no image and no part of one.
  ///
  /// - Parameter now: Unix seconds.
  init(_ head: ResponseHead, now: Int) {
    self.init(.http, "the server answered \(head.status)")
    status = head.status
    retryAfter = head.retryAfter(now: now)
    response = LoadedImage.Response(status: head.status, headers: head.headers)
  }
}

extension TransferSignal {
  /// What an answer tells of the origin that gave it, as soon as it begins.
  ///
  /// - Parameter now: Unix seconds.
  init(_ head: ResponseHead, now: Int) {
    let retryAfter = head.retryAfter(now: now)
    let isToWait = retryAfter != nil && LoadError.retryableStatuses.contains(head.status)
    let isRefusal = isToWait || LoadError.refusingStatuses.contains(head.status)
    self = isRefusal ? .refused(retryAfter: retryAfter) : .answered
  }

  /// What a transfer's end tells of the origin that gave the last answer or none; where redirects led to one that
  /// failed, of the first, for which a redirect is an answer.
  ///
  /// - Parameter now: Unix seconds.
  init(_ outcome: Result<TransferSummary, TransferError>, now: Int) {
    switch outcome {
    case .success(let summary):
      self.init(summary.head, now: now)
    case .failure(let error):
      switch error.kind {
      case .cancelled: self = .inconclusive
      case _ where error.redirects > 0: self = .answered
      case .resolve, .connect: self = .unreachable
      case .timeout:
        switch error.phase {
        case .connect: self = .unreachable
        case .firstByte, .idle: self = .unresponsive
        case .slow: self = .broken
        case .deadline, nil: self = .inconclusive
        }
      case .flood: self = .unresponsive
      // What came was not wanted.
      case .tooLarge, .redirects, .aborted, .undecodable: self = .answered
      case .closed: self = .closed
      case .truncated: self = .broken
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
