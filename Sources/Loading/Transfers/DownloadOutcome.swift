internal import HTTPCaching
internal import HTTPTransport
internal import ImageCodec
internal import Platform

extension Download {
  /// The outcome of a transfer.
  struct Outcome: Sendable {
    /// The outcome; with the head of the whole response if a partial body was continued.
    var outcome: Result<TransferSummary, TransferError>
    var body = Body.bytes([])
    /// The bytes of the body, including those of earlier attempts.
    var received: Int64 = 0
    /// The format recognised from the first bytes.
    var format: ImageFormat?
    /// The complete scans of an interrupted body.
    var scans: ScanCounter?
    /// The header of the image, if it was read while the body arrived.
    var header: ImageHeader?
    /// The error if the first bytes are not an image, or if the site does not allow the load.
    var contentError: LoadError?
    /// The partial body that another attempt can continue; `body` is empty then.
    var partialBody: PartialBody?
    /// Whether only the start of the body was requested, and has arrived.
    var isStart = false
    /// Whether a range was requested.
    var hadRange = false
    /// Whether the response was neither the requested range nor a whole body, or not of an image.
    var isMismatch = false
    /// Whether the head of a response whose body is used has arrived.
    var hasUsableHead = false
  }
}

extension Download.Outcome {
  /// Whether the transfer leaves a usable partial body: one that was interrupted, or asked for the start only.
  var leavesPartialBody: Bool {
    if isStart { return contentError == nil }
    guard case .failure(let error) = outcome else { return false }
    return error.leavesPartialBody && contentError == nil
  }

  /// Whether the transfer may have failed because of fields that the worker added to the request, a range or
  /// conditions: some servers and proxies answer these with any error or with a page, or close the connection.
  var mayBeDueToAddedFields: Bool {
    if isMismatch { return true }
    switch outcome {
    case .success(let summary): return !(200..<300).contains(summary.head.status)
    case .failure(let error):
      // The redirect may be the answer to these fields, and its target may be dead.
      if let times = error.times, times.redirects > 0, !hasUsableHead, error.kind != .cancelled { return true }
      switch error.kind {
      case .malformed, .flood, .undecodable, .redirects, .tooLarge: return true
      case .closed, .network, .truncated: return !hasUsableHead
      default: return false
      }
    }
  }

  /// Whether the rest of the partial body may be requested again. After a request that brought none of it, the rest is
  /// not requested again, since the next one might wait in vain, too; unless a load was cancelled soon after it.
  var mayResumeAgain: Bool {
    guard hadRange, case .failure(let error) = outcome, error.bytesReceived == 0,
      let sent = error.times?.requestSentAt, let end = error.times?.endedAt
    else { return true }
    return error.kind == .cancelled && sent.duration(to: end) < .seconds(1)
  }

  /// Returns the outcome with its body as a partial body, if it can be one.
  func retainingPartialBody(of partial: PartialResponse?) -> Download.Outcome {
    guard let partial, partial.hasRest(after: received) else { return self }
    if case .failed = body { return self }
    var ending = self
    ending.partialBody = PartialBody(
      response: partial, body: body, byteCount: received, format: format, scans: scans, header: header)
    ending.body = .bytes([])
    return ending
  }
}
