internal import HTTPTransport
internal import ImageCodec
internal import ImageStore
internal import Threads

/// Takes in the body of one transfer: looks at its first bytes, keeps a small one in memory, sends a large one to disk.
///
/// A transfer whose first bytes are no image is ended there. A body on its way to disk may be ahead of the disk by
/// `BodySink.capacity`; then the transfer pauses.
final class Download: TransferConsumer, @unchecked Sendable {
  // Unchecked: all that changes is touched on the transport's thread only, where a transfer's calls come one by one;
  // `transfer` alone is shared, and locked.

  struct Ending: Sendable {
    var outcome: Result<TransferSummary, TransferError>
    var body: Body
    /// Told by the first bytes.
    var format: ImageFormat?
    /// The first bytes are no image.
    var isRefused = false
  }

  enum Body: Sendable {
    case bytes([UInt8])
    case spool(SpooledBody)
    case failed(StoreError)
  }

  /// Bodies up to this size are kept in memory until they are complete and written at once.
  static let spoolThreshold = 256 << 10
  /// Not more than ten progress events a second, the last one at the end included.
  private static let progressInterval = Duration.milliseconds(125)

  private let acceptsAnything: Bool
  private let makeSink: @Sendable (ResponseHead, @escaping @Sendable () -> Void) -> BodySink
  private let onProgress: @Sendable (_ received: Int64, _ total: Int64?) -> Void
  private let onEnd: @Sendable (Ending) -> Void
  private let transfer = Locked(Handle())

  private struct Handle {
    var resume: (@Sendable () -> Void)?
    /// Resumes that came before the transfer had a name.
    var owed = 0
  }

  private var head: ResponseHead?
  private var bytes: [UInt8] = []
  private var sink: BodySink?
  private var format: ImageFormat?
  private var isRefused = false
  private var received: Int64 = 0
  private var nextProgress: ContinuousClock.Instant
  private let now: @Sendable () -> ContinuousClock.Instant

  init(
    acceptsAnything: Bool, makeSink: @escaping @Sendable (ResponseHead, @escaping @Sendable () -> Void) -> BodySink,
    onProgress: @escaping @Sendable (Int64, Int64?) -> Void, onEnd: @escaping @Sendable (Ending) -> Void,
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.acceptsAnything = acceptsAnything
    self.now = now
    nextProgress = now()
    self.makeSink = makeSink
    self.onProgress = onProgress
    self.onEnd = onEnd
  }

  /// Tells how the transfer is resumed, once it has begun.
  func began(resume: @escaping @Sendable () -> Void) {
    let owed = transfer.withLock { handle in
      handle.resume = resume
      return handle.owed
    }
    for _ in 0..<owed { resume() }
  }

  private func resume() {
    let resume = transfer.withLock { handle in
      if handle.resume == nil { handle.owed += 1 }
      return handle.resume
    }
    resume?()
  }

  // MARK: - TransferConsumer

  func received(head: ResponseHead) -> Verdict {
    self.head = head
    guard (200..<300).contains(head.status) else { return .discard }
    if let length = head.contentLength, length <= Self.spoolThreshold { bytes.reserveCapacity(Int(length)) }
    return .proceed
  }

  func received(bytes chunk: UnsafeRawBufferPointer) -> Verdict {
    received += Int64(chunk.count)
    if let sink {
      tellProgress()
      return sink.append(chunk) ? .proceed : .pause
    }
    bytes.append(contentsOf: chunk)
    if format == nil && !isRecognisable(complete: false) {
      isRefused = true
      return .abort
    }
    tellProgress()
    guard bytes.count > Self.spoolThreshold, let head else { return .proceed }
    let sink = makeSink(head) { [weak self] in self?.resume() }
    self.sink = sink
    defer { bytes = [] }
    return bytes.withUnsafeBytes { sink.append($0) } ? .proceed : .pause
  }

  func finished(_ outcome: Result<TransferSummary, TransferError>) {
    var ending = Ending(outcome: outcome, body: .bytes([]), format: nil)
    if case .success(let summary) = outcome, (200..<300).contains(summary.head.status) {
      if format == nil, sink == nil, !isRecognisable(complete: true) { isRefused = true }
    } else if case .success = outcome {
      isRefused = false
    }
    ending.isRefused = isRefused
    ending.format = format
    guard let sink else {
      ending.body = .bytes(bytes)
      bytes = []
      onEnd(ending)
      return
    }
    // What is on its way to disk arrives there first.
    sink.finish { [onEnd, ending] result in
      var ending = ending
      switch result {
      case .success(let body): ending.body = .spool(body)
      case .failure(let error): ending.body = .failed(error)
      }
      onEnd(ending)
    }
  }

  /// Looks whether the first bytes are an image's. True while they still may be, and always when anything will do.
  private func isRecognisable(complete: Bool) -> Bool {
    switch Recognition(prefix: bytes, isComplete: complete) {
    case .image(let found):
      format = found
      return true
    case .needMore: return true
    case .notAnImage: return acceptsAnything
    }
  }

  /// All but the last: that goes with the end.
  private func tellProgress() {
    guard received != head?.contentLength else { return }
    let now = now()
    guard now >= nextProgress else { return }
    nextProgress = now.advanced(by: Self.progressInterval)
    onProgress(received, head?.contentLength)
  }
}
