internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import Platform
internal import Threads

/// The consumer of one transfer: recognises the format from the first bytes, buffers a small body in memory, writes a
/// large one to disk.
///
/// A transfer whose first bytes are not an image is aborted. A body on its way to disk may be ahead of the disk by
/// `BodySink.capacity`; then the transfer pauses.
///
/// If the transfer asks for the first bytes only, a range that is shorter than the whole leaves a partial body, and the
/// header of the image is read when the range is complete.
///
/// If the transfer resumes a partial body, the head of the response decides (`PartialResponse`): a range is appended to
/// the partial body, a whole body replaces it. The partial body is not reported as progress until then.
final class Download: TransferConsumer, @unchecked Sendable {
  // Unchecked: the mutable state is accessed only on the transport thread, where the calls for a transfer are serial.
  // Only `shared` is accessed elsewhere, under its lock.

  enum Body: Sendable {
    case bytes([UInt8])
    case spool(SpooledBody)
    case failed(StoreError)
  }

  /// The size up to which a body is buffered in memory and written only when it is complete.
  static let spoolThreshold = 256 << 10

  struct Configuration: Sendable {
    /// Whether the body may be something else than an image.
    var acceptsAnything: Bool
    /// The header fields of the host's request.
    var requestHeaders: HeaderFields
    /// The range that was requested, unless it is the rest of a partial body.
    var firstRange: FirstRange?
    /// The largest number of bytes that a whole body may have.
    var maxBytes: Int64 = .max
    /// Opens a sink for a large body. The last parameter is called when a full sink has room again.
    var makeSink:
      @Sendable (ResponseHead, PartialResponse?, _ continuing: SpooledBody?, @escaping @Sendable () -> Void) -> BodySink
    /// Called with a partial body that is not continued.
    var discard: @Sendable (Body) -> Void
    /// The header field by which the server refuses the use of the image; nil if none does.
    var refusal: @Sendable (ResponseHead) -> String? = { _ in nil }
    /// Called with the target of a redirect. The transfer is held until it is resumed.
    var onRedirect: (@Sendable (_ target: String) -> Void)?
    /// Called when the head of a response has arrived.
    var onAnswer: (@Sendable (ResponseHead) -> Void)?
    var onProgress: @Sendable (_ received: Int64, _ total: Int64?) -> Void
    /// Called once when the header of the image is known, if that was requested. The transfer pauses then.
    var onHeader: (@Sendable (ArrivedHeader) -> Void)?
    /// Called when a preview may be worth making.
    var onScan: (@Sendable (ArrivingImage) -> Void)?
    var onEnd: @Sendable (Outcome) -> Void
    /// Unix seconds.
    var unixTime: @Sendable () -> Int
    var now: @Sendable () -> Instant = { LoadingActor.now }
  }

  private let configuration: Configuration
  private let shared = Locked(Shared())

  private struct Shared {
    var isAnswered = false
    var resume: (@Sendable () -> Void)?
    /// The number of `resume` calls before the transfer had an ID.
    var owedResumes = 0
    var wantsPreviews = false
    var wantsHeader = false
    var header: ArrivedHeader?
    var refusal: LoadError?
  }

  /// The partial body of the previous attempt, until the response decides about it.
  private var partialBody: PartialBody?
  private var isRangeMismatch = false
  /// The whole response, if the partial body is continued.
  private var whole: PartialResponse?
  /// The number of bytes of the whole body at which the requested range ends; nil if the response is no range.
  private var rangeEnd: Int64?
  /// The head of the response; of the whole response if the partial body is continued.
  private var head: ResponseHead?
  private var headReceivedAt = 0
  private var bytes: [UInt8] = []
  private var sink: BodySink?
  private var format: ImageFormat?
  private var isNotAnImage = false
  /// The header field that refuses the use of the image.
  private var refusingRule: String?
  private var received: Int64 = 0
  private var progressThrottle: ProgressThrottle
  /// Nil when no more scans can be counted.
  private var scans: ScanCounter? = ScanCounter()
  private var previewThrottle = PreviewThrottle()
  private var inspector = HeaderInspector()

  /// - Parameter partialBody: the partial body of the previous attempt. The download owns it from here on.
  init(_ configuration: Configuration, partialBody: PartialBody? = nil) {
    self.configuration = configuration
    self.partialBody = partialBody
    progressThrottle = ProgressThrottle(at: configuration.now())
  }

  /// Sets the function that resumes the transfer, after it has started.
  func began(resume: @escaping @Sendable () -> Void) {
    let owed = shared.withLock { shared in
      shared.resume = resume
      return shared.owedResumes
    }
    for _ in 0..<owed { resume() }
  }

  private func resume() {
    let resume = shared.withLock { shared in
      if shared.resume == nil { shared.owedResumes += 1 }
      return shared.resume
    }
    resume?()
  }

  /// Whether the head of a response has arrived. May be read from any thread.
  var isAnswered: Bool { shared.withLock { $0.isAnswered } }

  /// Enables `onScan`, which is called when a preview may be worth making.
  func wantPreviews() { shared.withLock { $0.wantsPreviews = true } }

  /// Requests the header of the image as soon as it has arrived. Returns it if it is known; otherwise `onHeader` gets it
  /// if the first bytes of the body suffice.
  func wantHeader() -> ArrivedHeader? {
    shared.withLock { shared in
      shared.wantsHeader = true
      return shared.header
    }
  }

  /// Sets the error with which the transfer ends when it is cancelled before its response.
  func refuse(with error: LoadError) { shared.withLock { $0.refusal = error } }

  // MARK: - TransferConsumer

  func redirected(to url: String) -> Verdict {
    guard let onRedirect = configuration.onRedirect else { return .proceed }
    onRedirect(url)
    return .pause
  }

  func received(head: ResponseHead) -> Verdict {
    shared.withLock { $0.isAnswered = true }
    configuration.onAnswer?(head)
    if let partialBody {
      let answer = partialBody.response.answer(
        status: head.status, headers: head.headers, from: head.finalURL, contentLength: head.contentLength,
        offset: partialBody.byteCount, receivedAt: configuration.unixTime())
      switch answer {
      case .rest(let whole): return goOn(from: partialBody, as: whole, head)
      case .whole: dropPartialBody()
      case .rangeMismatch:
        isRangeMismatch = true
        dropPartialBody()
        return .discard
      case .none: return .discard
      }
    }
    var head = head
    switch configuration.firstRange?.answer(
      status: head.status, headers: head.headers, contentLength: head.contentLength)
    {
    case .start(let count, let headers, let length) where length <= configuration.maxBytes:
      (head.status, head.headers, head.contentLength) = (200, headers, length)
      rangeEnd = count
    case .start, .mismatch:
      isRangeMismatch = true
      return .discard
    case .other, nil: break
    }
    self.head = head
    guard (200..<300).contains(head.status) else { return .discard }
    if let rule = configuration.refusal(head) {
      refusingRule = rule
      return .discard
    }
    headReceivedAt = configuration.unixTime()
    if let length = rangeEnd ?? head.contentLength, length <= Self.spoolThreshold { bytes.reserveCapacity(Int(length)) }
    return .proceed
  }

  private func goOn(from partialBody: PartialBody, as whole: PartialResponse, _ head: ResponseHead) -> Verdict {
    self.partialBody = nil
    self.whole = whole
    scans = partialBody.scans
    received = partialBody.byteCount
    format = partialBody.format
    var head = head
    (head.status, head.headers, head.contentLength) = (200, whole.headers, whole.completeLength)
    self.head = head
    rangeEnd = whole.completeLength
    switch partialBody.body {
    case .bytes(let bytes): self.bytes = bytes
    case .spool(let spooled): sink = configuration.makeSink(head, whole, spooled) { [weak self] in self?.resume() }
    case .failed: break
    }
    return partialBody.header.map { arrived($0, in: head) } ?? .proceed
  }

  /// Reports the header of the image and pauses the transfer, if the header was requested.
  private func arrived(_ image: ImageHeader, in head: ResponseHead) -> Verdict {
    let header = ArrivedHeader(head: head, image: image, received: received, length: contentLength)
    let isWanted = shared.withLock { shared in
      shared.header = header
      return shared.wantsHeader
    }
    guard isWanted, let onHeader = configuration.onHeader else { return .proceed }
    onHeader(header)
    return .pause
  }

  /// Whether the requested range ends before the body does.
  private var isStart: Bool { rangeEnd != nil && rangeEnd != head?.contentLength }

  /// Reads the header of the image from the bytes so far, if it was requested. A first range is short enough to be
  /// received whole, so that its connection can be used again.
  private func inspectHeader() -> Verdict {
    guard whole != nil || rangeEnd == nil else { return .proceed }
    guard let format, let head, shared.withLock({ $0.wantsHeader && $0.header == nil }),
      let image = inspector.inspect(bytes, ofLength: contentLength, format: format)
    else { return .proceed }
    return arrived(image, in: head)
  }

  /// The number of bytes of the whole content; nil if the head has none, or that of a coded content.
  private var contentLength: Int64? { head?.headers["content-encoding"] == nil ? head?.contentLength : nil }

  /// The response that a partial body of this attempt would belong to; nil if the next attempt must start from the
  /// beginning. Computed only when needed: most bodies are small and arrive complete.
  private var partial: PartialResponse? {
    if let whole { return whole }
    return head.flatMap {
      PartialResponse(
        status: $0.status, headers: $0.headers, url: $0.finalURL, contentLength: $0.contentLength,
        requestHeaders: configuration.requestHeaders, receivedAt: headReceivedAt)
    }
  }

  private var contentError: LoadError? {
    if let refusal = shared.withLock({ $0.refusal }) { return refusal }
    if let refusingRule {
      var error = LoadError(.robots, "the server does not allow it (\(refusingRule))")
      error.rule = refusingRule
      return error
    }
    guard isNotAnImage else { return nil }
    if received == 0 { return LoadError(.notAnImage, "the response has no content") }
    let type = head?.headers["content-type"].map { " (Content-Type: \($0.prefix(100)))" } ?? ""
    return LoadError(.notAnImage, LoadError.unknownFormat.message + type)
  }

  private func dropPartialBody() {
    if let partialBody { configuration.discard(partialBody.body) }
    partialBody = nil
  }

  func received(bytes chunk: UnsafeRawBufferPointer) -> Verdict {
    received += Int64(chunk.count)
    // The body is longer than the declared range: none of it can be trusted.
    if let rangeEnd, received > rangeEnd { return .abort }
    countScans(in: chunk)
    if let sink {
      reportProgress()
      let verdict = sink.append(chunk)
      reportScan()
      return verdict
    }
    bytes.append(contentsOf: chunk)
    if format == nil && !isRecognisable(complete: false) {
      isNotAnImage = true
      return .abort
    }
    reportProgress()
    reportScan()
    let verdict = inspectHeader()
    guard bytes.count > Self.spoolThreshold, let head else { return verdict }
    let sink = configuration.makeSink(head, partial, nil) { [weak self] in self?.resume() }
    self.sink = sink
    defer { bytes = [] }
    let appended = bytes.withUnsafeBytes { sink.append($0) }
    return appended == .proceed ? verdict : appended
  }

  func finished(_ outcome: Result<TransferSummary, TransferError>) {
    var ending = Outcome(outcome: rangeEnd == nil ? outcome : ofRange(outcome))
    if case .success = ending.outcome { ending.isStart = isStart }
    if ending.isStart { readHeader() }
    if case .success(let summary) = ending.outcome, (200..<300).contains(summary.head.status), !isRangeMismatch,
      refusingRule == nil, format == nil, sink == nil, !isRecognisable(complete: !ending.isStart)
    {
      isNotAnImage = true
    }
    (ending.contentError, ending.isRangeMismatch) = (contentError, isRangeMismatch)
    (ending.format, ending.received, ending.scans) = (format, received, scans)
    ending.header = shared.withLock { $0.header?.image }
    ending.partialBody = partialBody.take()
    guard let sink else {
      ending.body = .bytes(bytes)
      bytes = []
      configuration.onEnd(ending.leavesPartialBody ? ending.retainingPartialBody(of: partial) : ending)
      return
    }
    // The pieces on their way to the disk are written before `finish` completes.
    let partial = ending.leavesPartialBody ? partial : nil
    sink.finish { [onEnd = configuration.onEnd, ending] result in
      var ending = ending
      switch result {
      case .success(let body): ending.body = .spool(body)
      case .failure(let error): ending.body = .failed(error)
      }
      onEnd(ending.retainingPartialBody(of: partial))
    }
  }

  /// Reads the header of the image from a complete first range.
  private func readHeader() {
    guard let head, let format,
      case .complete(let image) = HeaderPrefix.read(bytes, ofLength: contentLength.map(Int.init), format: format)
    else { return }
    let header = ArrivedHeader(head: head, image: image, received: received, length: contentLength)
    shared.withLock { $0.header = header }
  }

  /// Translates the outcome of the range request into one for the whole body, or for its start.
  private func ofRange(_ outcome: Result<TransferSummary, TransferError>) -> Result<TransferSummary, TransferError> {
    guard let head, let length = rangeEnd, refusingRule == nil else { return outcome }
    switch outcome {
    case .success(let summary) where received == length: return .success(summary.with(head))
    case .success(let summary):
      return .failure(
        TransferError(.truncated, "the range is incomplete", bytesReceived: summary.bytesReceived))
    case .failure(let error) where error.kind == .aborted && received > length:
      return .failure(
        TransferError(.malformed, "the range is longer than announced", bytesReceived: error.bytesReceived))
    case .failure: return outcome
    }
  }

  /// Recognises the format from the first bytes. Returns true if they are or may still be an image, or if any content
  /// is accepted.
  private func isRecognisable(complete: Bool) -> Bool {
    switch Recognition(prefix: bytes, isComplete: complete) {
    case .image(let found):
      format = found
      return true
    case .needMore: return true
    case .notAnImage: return configuration.acceptsAnything
    }
  }

  private func countScans(in chunk: UnsafeRawBufferPointer) {
    scans?.consume(chunk)
    if scans?.isOver == true { scans = nil }
  }

  private func reportScan() {
    guard let onScan = configuration.onScan, let scans, scans.completeScans > 0, format == .jpeg,
      shared.withLock({ $0.wantsPreviews }),
      previewThrottle.isDue(
        scans: scans.completeScans, received: received, total: head?.contentLength, at: configuration.now())
    else { return }
    sink?.flush()
    onScan(
      ArrivingImage(
        content: sink.map { .sink($0) } ?? .bytes(bytes), scans: scans.completeScans, end: scans.endOfScans))
  }

  /// Reports progress, except at the end of the body, which is reported with the outcome.
  private func reportProgress() {
    guard received != head?.contentLength, progressThrottle.isDue(at: configuration.now()) else { return }
    configuration.onProgress(received, head?.contentLength)
  }
}
