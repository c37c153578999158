internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec

extension LoadError {
  /// Maps the failure of a transfer to the error of a load.
  init(_ error: TransferError) {
    let kinds: [TransferError.Kind: Kind] = [
      .resolve: .resolve, .unanswered: .resolve, .connect: .connect, .tls: .tls, .timeout: .timeout,
      .redirects: .redirects, .truncated: .truncated, .tooLarge: .tooLarge, .blockedAddress: .blockedAddress,
      .cancelled: .cancelled, .undecodable: .notAnImage,
    ]
    self.init(kinds[error.kind] ?? .network, error.message)
    if let limit = error.limit { figures.limit = Double(limit) }
    isUnanswered = error.kind == .unanswered
    phase = error.phase.flatMap { Phase(rawValue: $0.rawValue) }
  }

  /// The error for a response whose status has no usable body.
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
  /// The signal that the head of a response gives about its origin.
  ///
  /// - Parameter now: Unix seconds.
  init(_ head: ResponseHead, now: Int) {
    let retryAfter = head.retryAfter(now: now)
    let isToWait = retryAfter != nil && head.status >= 400 && LoadError.mayPass(head.status)
    let isRefusal = isToWait || LoadError.refusingStatuses.contains(head.status)
    self = isRefusal ? .refused(retryAfter: retryAfter) : .answered
  }

  /// The signal that the end of a transfer gives about the origin of the last response or of the failure. If a redirect
  /// led to another origin that failed, the signal is for the first origin, which has answered.
  ///
  /// - Parameter now: Unix seconds.
  init(_ outcome: Result<TransferSummary, TransferError>, now: Int) {
    switch outcome {
    case .success(let summary): self.init(summary.head, now: now)
    case .failure(let error):
      switch error.kind {
      case .cancelled: self = .inconclusive
      case _ where error.redirects > 0: self = .answered
      case .unanswered, .connect: self = .unreachable
      case .timeout:
        switch error.phase {
        case .connect: self = .unreachable
        case .firstByte, .idle: self = .unresponsive
        case .slow: self = .broken
        case nil: self = .inconclusive
        }
      case .flood: self = .unresponsive
      // The origin answered; the client rejected the response.
      case .tooLarge, .redirects, .aborted, .undecodable: self = .answered
      case .closed: self = .closed
      case .truncated: self = .broken
      default: self = .inconclusive
      }
    }
  }
}

extension ResponseHead {
  /// The value of Retry-After.
  ///
  /// - Parameter now: Unix seconds.
  func retryAfter(now: Int) -> Duration? { RetryAfter.parse(headers["retry-after"], now: now) }
}

/// The Retry-After field (RFC 9110 section 10.2.3).
enum RetryAfter {
  /// The delay; nil if the field is missing or is neither seconds nor a date.
  ///
  /// - Parameter now: Unix seconds.
  static func parse(_ value: String?, now: Int) -> Duration? {
    guard let value else { return nil }
    if !value.isEmpty, value.utf8.allSatisfy(\.isASCIIDigit) {
      return .seconds(min(Int(value) ?? .max, 365 * 86_400))
    }
    return HTTPDate.parse(value, now: now).map { .seconds(max(0, $0 - now)) }
  }
}
