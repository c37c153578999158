internal import CCurl
internal import HTTPTypes

/// One transfer in progress: what a request has become, hop by hop, and what curl's callbacks tell of it.
///
/// It is only touched on the transport's thread. Callbacks note what they decide and make curl stop; what follows from
/// it (`step`) is worked out when curl has let go of the handle.
final class Transfer {
  let id: TransferID
  let request: TransferRequest
  let consumer: any TransferConsumer
  private let clock: LoopClock
  private let isPermitted: AddressFilter

  /// The handle while one is in use.
  var easy: EasyHandle?

  // The hop.
  private var route: Route
  private(set) var proxy: String?
  private(set) var sockets = SocketTally()

  // Where it stands.
  enum Stage {
    case connecting
    case waiting
    case receiving
  }
  enum Use {
    case deliver
    /// The rest of a response that nobody wants, up to so many bytes.
    case drop(left: Int)
  }
  enum Intake {
    case taken
    case held
    case refused
  }
  private(set) var stage = Stage.connecting
  private var lastProgress: ContinuousClock.Instant
  private var bytesOnWire: Int64 = 0
  private var isPaused = false
  private var isHeldByCurl = false
  private var use = Use.deliver
  private var parser = ResponseHeadParser()
  private var isHeadComplete = false
  private var location: String?

  // What came of it.
  private(set) var head: ResponseHead?
  private(set) var bytesReceived: Int64 = 0
  /// What a callback has decided.
  private(set) var failure: TransferError?
  /// Whether a callback has told curl to stop.
  private(set) var hasRefused = false
  private var hopStartedAt: ContinuousClock.Instant
  private var requestSentAt: ContinuousClock.Instant?
  private var firstByteAt: ContinuousClock.Instant?
  private var requestTime = 0
  private var responseTime = 0

  /// How much of an unwanted body is read to keep its connection.
  private static let worthReading = 64 << 10

  init(
    id: TransferID, request: TransferRequest, consumer: any TransferConsumer, clock: LoopClock,
    isPermitted: @escaping AddressFilter
  ) throws(TransferError) {
    route = try Route(request)
    self.id = id
    self.request = request
    self.consumer = consumer
    self.clock = clock
    self.isPermitted = isPermitted
    lastProgress = clock.now
    hopStartedAt = clock.now
  }

  // MARK: Hops

  var target: Target { route.target }

  /// Sets the handle up for the current target.
  func prepare(_ easy: EasyHandle) throws(TransferError) {
    let settings = easy.settings
    proxy = settings.proxies.proxy(for: target.origin)
    if proxy != nil, settings.configuration.network == .publicOnly, !AddressPolicy.mayProxyReach(target.origin.host) {
      throw blocked
    }
    guard easy.prepare(target, headers: route.fields, proxy: proxy) else {
      throw TransferError(.network, "the request could not be set up")
    }
    self.easy = easy
    easy.transfer = self
    stage = .connecting
    sockets = SocketTally()
    use = .deliver
    parser = ResponseHeadParser()
    isHeadComplete = false
    hasRefused = false
    location = nil
    bytesOnWire = 0
    hopStartedAt = clock.now
    progressed()
    clock.check(by: due)
  }

  /// Takes the handle away.
  func detach() -> EasyHandle? {
    defer { easy = nil }
    easy?.transfer = nil
    return easy
  }

  // MARK: Callbacks

  /// A socket for a connection to `address`, if the policy lets it pass; else curl tries the next address.
  func openSocket(for request: curl_sockaddr, to address: UnsafePointer<sockaddr>) -> curl_socket_t {
    guard mayConnect(to: IPAddress(address)) else {
      sockets.blocked += 1
      return CURL_SOCKET_BAD
    }
    return sockets.open(request)
  }

  /// Called when there is a connection for the request, a new one or not: the policy may have become stricter since it
  /// was opened.
  func mayRequest(from peer: UnsafePointer<CChar>) -> Bool {
    guard mayConnect(to: IPAddress(String(cString: peer))) else {
      failure = blocked
      return false
    }
    stage = .waiting
    requestSentAt = .now
    requestTime = secondsSinceEpoch()
    progressed()
    clock.check(by: due)
    return true
  }

  private func mayConnect(to address: @autoclosure () -> IPAddress?) -> Bool {
    guard proxy == nil, easy?.settings.configuration.network == .publicOnly else { return true }
    return address().map(isPermitted) ?? false
  }

  private var blocked: TransferError { TransferError(.blockedAddress, "\(target.origin) is not a public address") }

  /// False makes curl stop.
  func received(line: UnsafeRawBufferPointer) -> Bool {
    if isHeadComplete { return true }  // a trailer
    if stage != .receiving {
      stage = .receiving
      firstByteAt = .now
    }
    progressed()
    guard parser.take(line) else { return true }
    isHeadComplete = true
    responseTime = secondsSinceEpoch()
    let goesOn = headCompleted()
    hasRefused = hasRefused || !goesOn
    return goesOn
  }

  private func headCompleted() -> Bool {
    let headers = parser.headers
    let hasBody = parser.status != 204 && parser.status != 304
    let contentLength = hasBody ? parser.contentLength : 0
    if let location = Route.location(status: parser.status, headers: headers) {
      self.location = location
      return drop(contentLength)
    }
    let head = ResponseHead(
      status: parser.status, headers: headers, finalURL: target.url, httpVersion: parser.httpVersion,
      contentLength: contentLength)
    self.head = head
    let verdict = consumer.received(head: head)
    if verdict == .proceed || verdict == .pause, let contentLength, contentLength > request.maxBytes {
      return tooLarge()
    }
    return obey(verdict, remaining: contentLength)
  }

  func received(bytes: UnsafeRawBufferPointer) -> Intake {
    if hasRefused { return .refused }
    progressed()
    if case .drop(let left) = use {
      use = .drop(left: left - bytes.count)
      hasRefused = bytes.count > left
      return hasRefused ? .refused : .taken
    }
    if isPaused {
      isHeldByCurl = true
      return .held
    }
    guard Int64(bytes.count) <= request.maxBytes - bytesReceived else {
      hasRefused = !tooLarge()
      return .refused
    }
    bytesReceived += Int64(bytes.count)
    let goesOn = obey(consumer.received(bytes: bytes), remaining: nil)
    hasRefused = !goesOn
    return goesOn ? .taken : .refused
  }

  /// False makes curl stop.
  private func obey(_ verdict: Verdict, remaining: Int64?) -> Bool {
    switch verdict {
    case .proceed: return true
    case .pause:
      isPaused = true
      return true
    case .discard:
      return drop(remaining)
    case .abort:
      failure = TransferError(.aborted, "stopped by its receiver")
      return false
    }
  }

  private func drop(_ remaining: Int64?) -> Bool {
    use = .drop(left: Self.worthReading)
    return remaining ?? 0 <= Self.worthReading
  }

  private func tooLarge() -> Bool {
    failure = TransferError(.tooLarge, "the body is larger than \(request.maxBytes) bytes")
    return false
  }

  // MARK: Pausing

  /// Lifts a pause. Curl may call back from within.
  func resume() {
    guard isPaused else { return }
    isPaused = false
    progressed()
    clock.check(by: due)
    guard isHeldByCurl, let easy else { return }
    isHeldByCurl = false
    let result = curl_easy_pause(easy.raw, CURLPAUSE_CONT)
    // Curl does not end a transfer whose receiver refuses what was held back: `hasRefused` tells the transport to.
    if result != CURLE_OK, !hasRefused {
      failure = TransferError(.network, "the transfer could not be resumed")
      hasRefused = true
    }
  }

  // MARK: Time

  private func progressed() { lastProgress = clock.now }

  /// When it will have taken too long unless something arrives; nil is never.
  var due: ContinuousClock.Instant? {
    let limit: Duration? =
      switch stage {
      case .connecting: easy?.settings.configuration.connectTimeout
      case .waiting, .receiving: isPaused ? nil : request.idleTimeout
      }
    let stuck = limit.map { lastProgress.advanced(by: $0) }
    guard let deadline = request.deadline else { return stuck }
    return stuck.map { min($0, deadline) } ?? deadline
  }

  /// What has timed out; nil when it is not due after all.
  func timeout() -> TransferError? {
    guard let due, due <= clock.now else { return nil }
    if let deadline = request.deadline, deadline <= clock.now {
      return TransferError(.timeout, "the deadline has passed", phase: .deadline)
    }
    // A compressed body may have come on without anything to deliver yet.
    let onWire = easy?.offset(CURLINFO_SIZE_DOWNLOAD_T) ?? 0
    guard onWire == bytesOnWire else {
      bytesOnWire = onWire
      progressed()
      return nil
    }
    switch stage {
    case .connecting: return TransferError(.timeout, "no connection to \(peer) in time", phase: .connect)
    case .waiting: return TransferError(.timeout, "no answer from \(target.origin) in time", phase: .firstByte)
    case .receiving: return TransferError(.timeout, "\(target.origin) has stopped sending", phase: .idle)
    }
  }

  /// What the transfer is connected to.
  var peer: String { proxy == nil ? target.origin.description : "the proxy for \(target.origin)" }

  // MARK: What follows

  enum Step {
    case request
    case finish(Result<TransferSummary, TransferError>)
  }

  /// What to do now that curl has ended the hop, or has been made to.
  ///
  /// - Parameter error: why it was ended; nil if the response is complete or a callback has stopped it.
  func step(after error: TransferError?) -> Step {
    if let location, failure == nil, error?.phase != .deadline {
      do {
        try route.follow(location)
        return .request
      } catch {
        return .finish(.failure(counted(error)))
      }
    }
    if let failure { return .finish(.failure(counted(failure))) }
    if case .drop = use, error?.phase != .deadline, let summary { return .finish(.success(summary)) }
    if let error { return .finish(.failure(counted(error))) }
    guard let summary else {
      return .finish(.failure(TransferError(.network, "\(target.origin) closed the connection within the header")))
    }
    return .finish(.success(summary))
  }

  func counted(_ error: TransferError) -> TransferError {
    var error = error
    error.bytesReceived = bytesReceived
    return error
  }

  private var summary: TransferSummary? {
    guard let head, let easy, let requestSentAt, let firstByteAt else { return nil }
    return TransferSummary(
      head: head, bytesReceived: bytesReceived, wireBytes: easy.offset(CURLINFO_SIZE_DOWNLOAD_T),
      redirects: route.redirects,
      requestSentAt: requestSentAt, firstByteAt: firstByteAt, connectDuration: hopStartedAt.duration(to: requestSentAt),
      newConnection: easy.number(CURLINFO_NUM_CONNECTS) > 0, requestTime: requestTime, responseTime: responseTime)
  }
}
