internal import HTTPCaching
internal import HTTPTransport
internal import ImageCodec

extension Download {
  /// What a transfer came to.
  struct Outcome: Sendable {
    /// With the head of the whole response, where the rest was added to a beginning.
    var outcome: Result<TransferSummary, TransferError>
    var body = Body.bytes([])
    /// Bytes of the body, those of attempts before included.
    var received: Int64 = 0
    /// Told by the first bytes.
    var format: ImageFormat?
    /// The scans that are complete, of a body that broke off.
    var scans: ScanCounter?
    /// The first bytes are no image.
    var isRefused = false
    /// What another attempt can go on with; then `body` is empty.
    var partialBody: PartialBody?
    /// The answer was no rest to the beginning and no whole: the same is to be asked for again, without a range.
    var isRangeMismatch = false

    /// Whether there is a whole body of what was asked for.
    var isSuccess: Bool {
      guard case .success(let summary) = outcome, case (200..<300) = summary.head.status else { return false }
      return !isRangeMismatch && !isRefused
    }
  }
}

extension Download.Outcome {
  /// Whether the transfer broke off so that what came may be the beginning of another's body.
  var leavesBeginning: Bool {
    guard case .failure(let error) = outcome else { return false }
    return error.leavesBeginning && !isRefused
  }

  /// With the body as a beginning, if it can be one.
  func retainingPartialBody(of partial: PartialResponse?) -> Download.Outcome {
    guard let partial, partial.hasRest(after: received) else { return self }
    if case .failed = body { return self }
    var ending = self
    ending.partialBody = PartialBody(
      response: partial, body: body, byteCount: received, format: format, scans: scans)
    ending.body = .bytes([])
    return ending
  }
}
