internal import HTTPTypes

/// What has come of a transfer's response, and what its consumer has said to it.
///
/// It works inside curl's callbacks and calls nothing of curl's: it notes what was decided and tells curl to go on or
/// stop.
struct ResponseReceiver {
  enum WriteResult {
    case taken
    /// Curl has to keep the bytes and offer all of them again after `resume`.
    case held
    /// Curl has to stop.
    case refused
  }

  private enum Use {
    case deliver
    /// The rest of a response that nobody wants, up to so many bytes.
    case drop(left: Int)
  }

  let consumer: any TransferConsumer
  private let maxBytes: Int64
  /// How much of `maxBytes` is used up when the answer is a part.
  private let bytesKept: Int64
  /// Whether the answer may be a part of the content.
  private let asksForRange: Bool
  private let isContent: TransferRequest.ContentTest?

  // The hop.
  private var parser = ResponseHeadParser()
  private var use = Use.deliver
  private var decoder: ContentDecoder?
  private(set) var isHeadComplete = false
  /// How many bytes of header, then of trailer, may come yet, and how many lines.
  private var headerBytesLeft = mostHeader
  private var linesLeft = mostLines
  /// Where a redirect leads.
  private(set) var location: String?
  /// Whether curl has been told to stop.
  private(set) var hasRefused = false

  // The transfer.
  private(set) var head: ResponseHead?
  private(set) var bytesReceived: Int64 = 0
  /// The largest body that this response may have.
  private var allowance: Int64 = 0
  private(set) var isPaused = false
  private var isHeldByCurl = false
  /// Why curl has been told to stop, if that is an error.
  var failure: TransferError?

  /// How much of an unwanted body is read to keep its connection.
  private static let worthReading = 64 << 10
  /// How many bytes of header are read; curl has limits of its own, which differ between its versions.
  private static let mostHeader = 256 << 10
  /// How many lines of both: what looks into a header looks at each.
  private static let mostLines = 1000
  /// How many bytes of trailer are read, which curl would keep.
  private static let mostTrailer = 64 << 10

  init(_ request: TransferRequest, consumer: any TransferConsumer) {
    self.consumer = consumer
    maxBytes = request.maxBytes
    bytesKept = request.bytesKept
    asksForRange = request.headers["range"] != nil
    isContent = request.isContent
  }

  /// Forgets the response of the hop before.
  mutating func beginHop() {
    parser = ResponseHeadParser()
    use = .deliver
    decoder = nil
    isHeadComplete = false
    headerBytesLeft = Self.mostHeader
    linesLeft = Self.mostLines
    location = nil
    hasRefused = false
  }

  /// Whether the rest of the response is of no interest.
  var isDropping: Bool {
    if case .drop = use { true } else { false }
  }

  /// Whether the body ended before its content coding did, or before the length that curl did not see in the head.
  var isCutShort: Bool {
    !isDropping && (decoder?.isComplete == false || bytesReceived < head?.contentLength ?? 0)
  }

  /// Takes a header line of the response to `url`, or one of its trailer, which is ignored. False makes curl stop.
  mutating func received(line: UnsafeRawBufferPointer, from url: String) -> Bool {
    headerBytesLeft -= line.count
    linesLeft -= 1
    let isTooLong = headerBytesLeft < 0 || linesLeft < 0
    if isHeadComplete { return !isTooLong || fail(.malformed, "the trailer of the answer is too long") }
    if isTooLong {
      hasRefused = true
      return fail(.tooLarge, "the header of the answer is too large")
    }
    let isEnd = parser.take(line)
    if parser.isStatusMalformed {
      hasRefused = true
      return fail(.network, "the answer has a malformed status line")
    }
    guard isEnd else { return true }
    isHeadComplete = true
    headerBytesLeft = Self.mostTrailer
    hasRefused = !received(headFrom: url)
    return !hasRefused
  }

  private mutating func received(headFrom url: String) -> Bool {
    let headers = parser.headers
    let hasBody = parser.status != 204 && parser.status != 304
    let contentLength = hasBody ? parser.contentLength : 0
    if parser.status < 200 { return fail(.network, "the answer switches to another protocol") }
    if hasBody, parser.hasMalformedLength { return fail(.network, "the answer has a malformed Content-Length") }
    if parser.hasAmbiguousLength { return fail(.network, "the answer has several different lengths") }
    location = RedirectChain.location(status: parser.status, headers: headers)
    if location != nil { return drop(contentLength) }
    let head = ResponseHead(
      status: parser.status, headers: headers, finalURL: url, httpVersion: parser.httpVersion,
      contentLength: contentLength)
    self.head = head
    allowance = parser.status == 206 ? maxBytes - bytesKept : maxBytes
    if parser.isPartial && !asksForRange {
      return fail(.truncated, "the answer is a partial response to a request without Range")
    }
    let verdict = consumer.received(head: head)
    // After the consumer has seen the head: a long error page that it discards is no reason to hide the status.
    if verdict == .proceed || verdict == .pause {
      if let announced, announced > allowance { return tooLarge() }
      if let coding = headers["content-encoding"]?.lowercased(), hasBody, !coding.isEmpty, coding != "identity" {
        decoder = ContentDecoder(coding, isContent: isContent)
      }
      if let coding = headers["transfer-encoding"]?.lowercased(), coding != "chunked", coding != "identity" {
        return fail(.malformed, "the answer has an unknown transfer coding")
      }
    }
    return obey(verdict, remaining: contentLength)
  }

  /// How long the body says it is: a part does so even without a Content-Length.
  private var announced: Int64? {
    guard let head else { return nil }
    return head.contentLength
      ?? (head.status == 206 ? head.headers["content-range"].flatMap(ContentRange.init)?.count : nil)
  }

  mutating func received(bytes: UnsafeRawBufferPointer) -> WriteResult {
    if hasRefused { return .refused }
    let intake = isPaused ? .held : take(bytes)
    isHeldByCurl = isHeldByCurl || intake == .held
    hasRefused = intake == .refused
    return intake
  }

  /// Has curl keep bytes for a while without asking the consumer. False if they are not to be kept.
  mutating func hold() -> Bool {
    guard !hasRefused, !isPaused else { return false }
    isHeldByCurl = true
    return true
  }

  private mutating func take(_ bytes: UnsafeRawBufferPointer) -> WriteResult {
    if case .drop(let left) = use {
      use = .drop(left: left - bytes.count)
      return bytes.count <= left ? .taken : .refused
    }
    guard let decoder else { return deliver(bytes) ? .taken : .refused }
    let outcome = decoder.decode(bytes) { piece in
      guard deliver(piece), !isDropping else { return .none }
      return isPaused ? .later : .more
    }
    switch outcome {
    case .done: return .taken
    case .paused: return .held
    case .ended: return drop(nil) ? .taken : .refused
    // What a decoder may still hold is of no interest where the rest is dropped.
    case .stopped: return failure == nil && isDropping ? .taken : .refused
    case .unknown:
      _ = fail(.undecodable, "the answer has an unknown content coding")
      return .refused
    case .malformed:
      _ = fail(.undecodable, "the body cannot be decompressed")
      return .refused
    }
  }

  private mutating func deliver(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard Int64(bytes.count) <= allowance - bytesReceived else { return tooLarge() }
    bytesReceived += Int64(bytes.count)
    return obey(consumer.received(bytes: bytes), remaining: head?.contentLength.map { $0 - bytesReceived })
  }

  /// Lifts a pause. True when curl holds bytes that it has to be asked for.
  mutating func resume() -> Bool {
    defer { isHeldByCurl = false }
    isPaused = false
    return isHeldByCurl
  }

  private mutating func obey(_ verdict: Verdict, remaining: Int64?) -> Bool {
    switch verdict {
    case .proceed: return true
    case .pause:
      isPaused = true
      return true
    case .discard:
      return drop(remaining)
    case .abort:
      failure = TransferError(.aborted, "the receiver stopped the transfer")
      return false
    }
  }

  private mutating func drop(_ remaining: Int64?) -> Bool {
    use = .drop(left: Self.worthReading)
    return remaining ?? 0 <= Self.worthReading
  }

  private mutating func tooLarge() -> Bool { fail(.tooLarge, "the body is larger than \(maxBytes) bytes") }

  private mutating func fail(_ kind: TransferError.Kind, _ message: String) -> Bool {
    failure = TransferError(kind, message)
    return false
  }
}
