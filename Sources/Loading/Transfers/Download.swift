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

  /// The part of the body that was requested.
  private struct RequestedRange {
    let isRequested: Bool
    /// The partial body of the previous attempt, until the response decides about it.
    var partialBody: PartialBody?
    /// Whether the response is neither the range nor a whole body.
    var isMismatch = false
    /// The whole response, if the partial body is continued.
    var whole: PartialResponse?
    /// The number of bytes of the whole body at which the range ends; nil if the response is no range.
    var end: Int64?
  }

  /// The walks through the structure of the image.
  private struct Walks {
    /// Nil when no more scans can be counted.
    var scans: ScanCounter? = ScanCounter()
    /// Nil unless the image alone tells whether its body is complete.
    var truncation: TruncationScan?

    mutating func consume(_ chunk: UnsafeRawBufferPointer) {
      scans?.consume(chunk)
      if scans?.isOver == true { scans = nil }
      truncation?.consume(chunk)
    }
  }

  private var range: RequestedRange
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
  private var walks = Walks()
  private var previewThrottle = PreviewThrottle()
  private var inspector = HeaderInspector()

  /// - Parameter partialBody: the partial body of the previous attempt. The download owns it from here on.
  init(_ configuration: Configuration, partialBody: PartialBody? = nil) {
    self.configuration = configuration
    range = RequestedRange(
      isRequested: partialBody != nil || configuration.firstRange != nil, partialBody: partialBody)
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

  /// Requests the header of the image as soon as it has arrived. Returns it if it is known; otherwise `onHeader` gets
  /// it if the first bytes of the body suffice.
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
    if let partialBody = range.partialBody {
      let answer = partialBody.response.answer(
        status: head.status, headers: head.headers, from: head.finalURL, contentLength: head.contentLength,
        offset: partialBody.byteCount, receivedAt: configuration.unixTime())
      switch answer {
      case .rest(let whole): return goOn(from: partialBody, as: whole, head)
      case .whole: dropPartialBody()
      case .rangeMismatch:
        range.isMismatch = true
        // After an error that may pass, the rest may be had later.
        if !LoadError.mayPass(head.status) { dropPartialBody() }
        return .discard
      }
    }
    var head = head
    switch configuration.firstRange?.answer(
      status: head.status, headers: head.headers, contentLength: head.contentLength)
    {
    case .start(let count, let headers, let length) where length <= configuration.maxBytes:
      (head.status, head.headers, head.contentLength) = (200, headers, length)
      range.end = count
    case .start, .mismatch:
      range.isMismatch = true
      return .discard
    case .whole, nil: break
    }
    self.head = head
    guard (200..<300).contains(head.status) else { return .discard }
    if let rule = configuration.refusal(head) {
      refusingRule = rule
      return .discard
    }
    headReceivedAt = configuration.unixTime()
    if let length = range.end ?? head.contentLength, length <= Self.spoolThreshold {
      bytes.reserveCapacity(Int(length))
    }
    return .proceed
  }

  private func goOn(from partialBody: PartialBody, as whole: PartialResponse, _ head: ResponseHead) -> Verdict {
    (range.partialBody, range.whole, range.end) = (nil, whole, whole.completeLength)
    walks.scans = partialBody.scans
    received = partialBody.byteCount
    format = partialBody.format
    var head = head
    (head.status, head.headers, head.contentLength) = (200, whole.headers, whole.completeLength)
    self.head = head
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
  private var isStart: Bool { range.end != nil && range.end != head?.contentLength }

  /// Reads the header of the image from the bytes so far, if it was requested. A first range is short enough to be
  /// received whole, so that its connection can be used again.
  private func inspectHeader() -> Verdict {
    guard range.whole != nil || range.end == nil else { return .proceed }
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
    if let whole = range.whole { return whole }
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
    guard isNotAnImage, let head else { return nil }
    // The image is not ready yet (RFC 9110 section 15.3.3).
    if head.status == 202 { return LoadError(head, now: configuration.unixTime()) }
    if received == 0 { return LoadError(head.status == 200 ? .truncated : .notAnImage, "the response has no content") }
    var error = LoadError.notAnImage(bytes)
    if let type = head.headers["content-type"] { error.message += " (Content-Type: \(type.prefix(100)))" }
    return error
  }

  private func dropPartialBody() {
    if let partialBody = range.partialBody.take() { configuration.discard(partialBody.body) }
  }

  func received(bytes chunk: UnsafeRawBufferPointer) -> Verdict {
    received += Int64(chunk.count)
    if let length = configuration.lengthOfPrefix {
      bytes.append(contentsOf: chunk.prefix(length - bytes.count))
      return bytes.count < length ? .proceed : .discard
    }
    // The body is longer than the declared range: none of it can be trusted.
    if let end = range.end, received > end { return .abort }
    walks.consume(chunk)
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
    var ending = Outcome(outcome: range.end == nil ? outcome : ofRange(outcome))
    if case .success = ending.outcome { ending.isStart = isStart }
    if ending.isStart { readHeader() }
    if case .success(let summary) = ending.outcome, (200..<300).contains(summary.head.status), !range.isMismatch,
      refusingRule == nil, format == nil, sink == nil, !isRecognisable(complete: !ending.isStart)
    {
      isNotAnImage = true
    }
    if case .success(let summary) = ending.outcome, walks.truncation?.isCut == true {
      ending.outcome = .failure(Self.cut(summary))
    }
    (ending.contentError, ending.isMismatch) = (contentError, range.isMismatch || isNotAnImage)
    ending.hadRange = range.isRequested
    ending.hasUsableHead = head.map { (200..<300).contains($0.status) } ?? false
    (ending.format, ending.received, ending.scans) = (format, received, walks.scans)
    ending.header = shared.withLock { $0.header?.image }
    ending.partialBody = range.partialBody.take()
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
    guard let head, let length = range.end, refusingRule == nil else { return outcome }
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

  /// The failure of a transfer whose connection was closed, as if the body were complete, before the image was.
  private static func cut(_ summary: TransferSummary) -> TransferError {
    var error = TransferError(
      .truncated, "the connection was closed before the end of the image", bytesReceived: summary.bytesReceived)
    (error.redirects, error.times) = (summary.redirects, summary.times)
    return error
  }

  /// Recognises the format from the first bytes. Returns true if they are or may still be an image, or if any content
  /// is accepted.
  private func isRecognisable(complete: Bool) -> Bool {
    switch Recognition(prefix: bytes, isComplete: complete) {
    case .image(let found):
      format = found
      if head?.isEndedByClose == true, range.end == nil, !configuration.acceptsAnything {
        walks.truncation = TruncationScan(found)
        bytes.withUnsafeBytes { walks.truncation?.consume($0) }
      }
      return true
    case .needMore: return true
    case .notAnImage: return configuration.acceptsAnything
    }
  }

  private func reportScan() {
    guard let onScan = configuration.onScan, let scans = walks.scans, scans.completeScans > 0, format == .jpeg,
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
