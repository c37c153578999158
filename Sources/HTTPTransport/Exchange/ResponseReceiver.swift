internal import HTTPTypes

/// The response of a transfer as received so far, and the consumer's verdicts on it.
///
/// It runs inside curl's callbacks and never calls curl. It records decisions, and returns whether curl may continue.
struct ResponseReceiver {
  enum LineResult {
    case taken
    /// The line completed the head; curl may read the body.
    case headTaken
    /// The line completed the head; curl must stop.
    case headRefused
    /// Curl must stop.
    case refused
  }

  enum WriteResult {
    case taken
    /// Curl must keep the bytes and offer all of them again after `resume`.
    case held
    /// Curl must stop.
    case refused
  }

  private enum Use {
    case deliver
    /// Drop the rest of an unwanted response, up to this number of bytes.
    case drop(left: Int)
  }

  let consumer: any TransferConsumer
  private let maxBytes: Int64
  /// Bytes of `maxBytes` that are used up if the response is partial.
  private let bytesKept: Int64
  /// Whether the response may be partial.
  private let asksForRange: Bool
  private let isContent: TransferRequest.ContentTest

  private var hop = Hop(url: "")

  private struct Hop {
    let url: String
    var parser = ResponseHeadParser()
    var use = Use.deliver
    var decoder: ContentDecoder?
    var isHeadComplete = false
    /// Bytes of header, then of trailer, that may still arrive; and lines of both together.
    var headerBytesLeft = ResponseReceiver.maxHeaderBytes
    var linesLeft = ResponseReceiver.maxLines
    /// The target of a redirect.
    var location: String?
    /// Whether curl was told to stop.
    var hasRefused = false
  }

  private(set) var head: ResponseHead?
  private(set) var bytesReceived: Int64 = 0
  /// Largest body that this response may have, in bytes.
  private var allowance: Int64 = 0
  private(set) var isPaused = false
  private var isHeldByCurl = false
  /// The reason why curl was told to stop, if it is an error.
  var failure: TransferError?

  /// Bytes of an unwanted body that are read to keep its connection.
  private static let maxDroppedBytes = 64 << 10
  /// Largest header, in bytes. Curl has its own limits, which differ between its versions.
  private static let maxHeaderBytes = 256 << 10
  /// Largest number of header and trailer lines, since a search in a header looks at every line.
  private static let maxLines = 1000
  /// Largest trailer, in bytes. Without the limit, curl would store all of it.
  private static let maxTrailerBytes = 64 << 10

  init(_ request: TransferRequest, consumer: any TransferConsumer) {
    self.consumer = consumer
    maxBytes = request.maxBytes
    bytesKept = request.bytesKept
    asksForRange = request.headers["range"] != nil
    isContent = request.isContent
  }

  /// Discards the response of the previous hop, and expects one from `url`.
  mutating func beginHop(to url: String) { hop = Hop(url: url) }

  /// The target of a redirect.
  var location: String? { hop.location }
  /// Whether curl was told to stop.
  var hasRefused: Bool { hop.hasRefused }

  /// Whether the rest of the response is dropped.
  var isDropping: Bool {
    if case .drop = hop.use { true } else { false }
  }

  /// Whether the body ended before its content coding did, or before a length in the head that curl did not see.
  var isTruncated: Bool {
    !isDropping && (hop.decoder?.isComplete == false || bytesReceived < head?.contentLength ?? 0)
  }

  /// Consumes a header line of the response, or a line of its trailer, which is ignored.
  mutating func received(line: UnsafeRawBufferPointer) -> LineResult {
    hop.headerBytesLeft -= line.count
    hop.linesLeft -= 1
    let isTooLong = hop.headerBytesLeft < 0 || hop.linesLeft < 0
    if hop.isHeadComplete {
      return !isTooLong || fail(.malformed, "the trailer of the answer is too long") ? .taken : .refused
    }
    if isTooLong { return refuse(.tooLarge, "the header of the answer is too large") }
    let isEnd = hop.parser.consume(line)
    if hop.parser.isStatusMalformed { return refuse(.network, "the answer has a malformed status line") }
    guard isEnd else { return .taken }
    hop.isHeadComplete = true
    hop.headerBytesLeft = Self.maxTrailerBytes
    hop.hasRefused = !receivedHead()
    return hasRefused ? .headRefused : .headTaken
  }

  private mutating func receivedHead() -> Bool {
    let hasBody = hop.parser.status != 204 && hop.parser.status != 304
    let headers = hop.parser.headers
    let framing = BodyFraming(headers.lines)
    let contentLength = hasBody ? framing.contentLength : 0
    if hop.parser.status < 200 { return fail(.network, "the answer switches to another protocol") }
    if hasBody, framing.hasMalformedLength { return fail(.network, "the answer has a malformed Content-Length") }
    if framing.hasAmbiguousLength { return fail(.network, "the answer has several different lengths") }
    hop.location = RedirectChain.location(status: hop.parser.status, headers: headers)
    if location != nil { return drop(contentLength) }
    var head = ResponseHead(
      status: hop.parser.status, headers: headers, finalURL: hop.url, httpVersion: hop.parser.httpVersion,
      contentLength: contentLength)
    head.isEndedByClose = hasBody && framing.isEndedByClose && hop.parser.httpVersion.hasPrefix("1.")
    self.head = head
    allowance = hop.parser.status == 206 ? maxBytes - bytesKept : maxBytes
    if hop.parser.status == 206, framing.isPartial, !asksForRange {
      return fail(.truncated, "the answer is a partial response to a request without Range")
    }
    let verdict = consumer.received(head: head)
    // Checked after the consumer has seen the head: it may discard a long error page, whose status must not be lost.
    if verdict == .proceed || verdict == .pause {
      if let announcedLength, announcedLength > allowance { return tooLarge() }
      if let coding = framing.contentCoding, hasBody, !coding.isEmpty, coding != "identity" {
        hop.decoder = ContentDecoder(coding, isContent: isContent)
      }
      if let coding = framing.transferCoding, coding != "chunked", coding != "identity" {
        return fail(.malformed, "the answer has an unknown transfer coding")
      }
    }
    return apply(verdict, remaining: contentLength)
  }

  /// The announced length of the body. A partial response has one even without a Content-Length.
  private var announcedLength: Int64? {
    guard let head else { return nil }
    return head.contentLength
      ?? (head.status == 206 ? head.headers["content-range"].flatMap(ContentRange.init)?.count : nil)
  }

  mutating func received(bytes: UnsafeRawBufferPointer) -> WriteResult {
    if hasRefused { return .refused }
    let result = isPaused ? .held : consume(bytes)
    isHeldByCurl = isHeldByCurl || result == .held
    hop.hasRefused = result == .refused
    return result
  }

  /// Makes curl keep bytes for a while, without asking the consumer. Returns false if they must not be kept.
  mutating func deferBytes() -> Bool {
    guard !hasRefused, !isPaused else { return false }
    isHeldByCurl = true
    return true
  }

  private mutating func consume(_ bytes: UnsafeRawBufferPointer) -> WriteResult {
    if case .drop(let left) = hop.use {
      hop.use = .drop(left: left - bytes.count)
      return bytes.count <= left ? .taken : .refused
    }
    guard let decoder = hop.decoder else { return deliver(bytes) ? .taken : .refused }
    let outcome = decoder.decode(bytes) { piece in
      guard deliver(piece), !isDropping else { return .none }
      return isPaused ? .later : .more
    }
    switch outcome {
    case .done: return .taken
    case .paused: return .held
    case .ended: return drop(nil) ? .taken : .refused
    // Bytes that the decoder still holds are not needed once the rest is dropped.
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
    return apply(consumer.received(bytes: bytes), remaining: head?.contentLength.map { $0 - bytesReceived })
  }

  /// Lifts a pause. Returns true if curl holds bytes, which it must then be asked for.
  mutating func resume() -> Bool {
    defer { isHeldByCurl = false }
    isPaused = false
    return isHeldByCurl
  }

  private mutating func apply(_ verdict: Verdict, remaining: Int64?) -> Bool {
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
    hop.use = .drop(left: Self.maxDroppedBytes)
    return remaining ?? 0 <= Self.maxDroppedBytes
  }

  private mutating func tooLarge() -> Bool {
    failure = TransferError(.tooLarge, "the body is larger than \(maxBytes) bytes")
    failure?.limit = maxBytes
    return false
  }

  private mutating func refuse(_ kind: TransferError.Kind, _ message: String) -> LineResult {
    hop.hasRefused = true
    failure = TransferError(kind, message)
    return .refused
  }

  private mutating func fail(_ kind: TransferError.Kind, _ message: String) -> Bool {
    failure = TransferError(kind, message)
    return false
  }
}
