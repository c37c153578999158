internal import HTTPCaching
internal import HTTPTransport
internal import ImageCodec

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
    /// Whether the response was neither the requested range nor a whole body: the request must be sent again without a
    /// range.
    var isRangeMismatch = false
  }
}

extension Download.Outcome {
  /// Whether the transfer leaves a usable partial body: one that was interrupted, or asked for the start only.
  var leavesPartialBody: Bool {
    if isStart { return contentError == nil }
    guard case .failure(let error) = outcome else { return false }
    return error.leavesPartialBody && contentError == nil
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
