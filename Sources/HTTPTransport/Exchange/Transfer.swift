internal import CCurl
internal import HTTPTypes

/// One transfer in progress: what a request has become, hop by hop.
///
/// It is only touched on the transport's thread. Curl's callbacks come here; what follows from what they found out
/// (`step`) is worked out when curl has let go of the handle.
final class Transfer {
  let id: TransferID
  private let request: TransferRequest
  private let clock: LoopClock
  private let connections: Connections
  private let isPermitted: AddressFilter

  /// The settings of the current hop; nil before the first.
  private(set) var settings: ResolvedConfiguration?
  /// The look-up that the hop waits for.
  var lookUp: Resolver.Ticket?
  /// The key of the host's entry in `AddressesInCurl`, while curl may need it.
  var addressKey: String?
  /// The handle while one is in use.
  private(set) var easy: EasyHandle?
  private(set) var proxy: String?
  private(set) var sockets = ConnectionAttempts()
  private(set) var receiver: ResponseReceiver
  private var redirectChain: RedirectChain
  private var watch: StallDetector
  private var share = TurnShare()
  /// Whether this hop and those after it may use none of the connections that are open.
  private var needsFreshConnection: Bool
  /// Whether the connection that curl chose for the request had input that nobody had asked for.
  private var hasFoundUnread = false
  /// The connection of the request; nil before it is sent.
  private(set) var connection: Connection?

  struct Connection {
    /// nil if it cannot be told.
    var socket: curl_socket_t?
    var tls: ServiceTime.Connection?
    var isHTTP2: Bool
  }

  init(
    id: TransferID, request: TransferRequest, consumer: any TransferConsumer, clock: LoopClock,
    connections: Connections, isPermitted: @escaping AddressFilter
  ) throws(TransferError) {
    redirectChain = try RedirectChain(request)
    receiver = ResponseReceiver(request, consumer: consumer)
    watch = StallDetector(now: clock.now)
    needsFreshConnection = request.needsFreshConnection
    self.id = id
    self.request = request
    self.clock = clock
    self.connections = connections
    self.isPermitted = isPermitted
  }

  var origin: Origin { redirectChain.target.origin }
  /// What messages call the origin.
  var server: String { origin.hostAndPort }
  /// What it is or would be connected to.
  var peer: String { proxy == nil ? server : "the proxy for \(server)" }
  var isConnecting: Bool { watch.stage == .resolving || watch.stage == .connecting }

  /// Whether the system had no descriptor for the connection of this hop, or for the look-up of its name.
  var lacksSocket: Bool { isConnecting && (sockets.isExhausted || easy?.hasNoResolver == true) }

  /// Whether a callback has made curl stop, or would have.
  var hasStopped: Bool { receiver.hasRefused || receiver.failure != nil }

  // MARK: Hops

  /// Begins a hop to the current target; the addresses of its host are to be found next.
  func beginHop(with settings: ResolvedConfiguration) throws(TransferError) {
    if let problem = settings.problem { throw TransferError(.invalidRequest, problem) }
    self.settings = settings
    proxy = settings.proxies.proxy(for: origin)
    sockets = ConnectionAttempts()
    connection = nil
    hasFoundUnread = false
    receiver.beginHop()
    watch.beginHop(now: clock.now)
    clock.check(by: due)
  }

  /// Sets the handle up for the hop.
  ///
  /// - Parameter addresses: for `EasyHandle.prepare`.
  func prepare(_ easy: EasyHandle, addresses: [String]?) throws(TransferError) {
    watch.resolved(now: clock.now)
    let connectTimeout = easy.settings.configuration.connectTimeout
    let isReady = easy.prepare(
      redirectChain.target, headers: redirectChain.fields, proxy: proxy, addresses: addresses,
      connectTimeout: connectTimeout - watch.hopStartedAt.duration(to: clock.now),
      needsFreshConnection: needsFreshConnection)
    guard isReady else {
      throw TransferError(.network, "the request could not be set up")
    }
    self.easy = easy
    easy.transfer = self
  }

  /// Takes the handle away.
  func detach() -> EasyHandle? {
    defer { easy = nil }
    easy?.transfer = nil
    return easy
  }

  enum Step {
    case request
    case finish(Result<TransferSummary, TransferError>)
  }

  /// What to do now that curl has ended the hop, or has been made to.
  ///
  /// - Parameter error: why it was ended; nil if the response is complete or a callback has stopped it.
  func step(after error: TransferError?) -> Step {
    let isLate = error?.phase == .deadline
    if hasFoundUnread, !isLate {
      needsFreshConnection = true
      return .request
    }
    if let location = receiver.location, receiver.failure == nil, !isLate {
      do {
        try redirectChain.follow(location)
        return .request
      } catch {
        return .finish(.failure(counted(error)))
      }
    }
    if let failure = receiver.failure { return .finish(.failure(counted(failure))) }
    // The loop has lowered its limit: now an idle connection is closed for this one, or it waits until one is idle.
    if error?.kind == .network, lacksSocket, connections.count > 0 { return .request }
    if let error, isOfClosedConnection(error) {
      needsFreshConnection = true
      return .request
    }
    // What went wrong in a rest that nobody wants is no failure.
    if let error, !receiver.isDropping || isLate { return .finish(.failure(counted(error))) }
    if error == nil, receiver.isCutShort {
      return .finish(.failure(counted(TransferError(.truncated, "\(server) sent an incomplete body"))))
    }
    guard let summary else {
      return .finish(.failure(TransferError(.network, "\(server) closed the connection before the end of the header")))
    }
    return .finish(.success(summary))
  }

  /// Whether a connection that had been kept was closed by the other side before it had the request, or instead of an
  /// answer: a GET may be sent again then (RFC 9110 section 9.2.2). Curl does so by itself, but only five times, and
  /// more connections may have been kept.
  private func isOfClosedConnection(_ error: TransferError) -> Bool {
    [.network, .closed].contains(error.kind) && receiver.head == nil && !needsFreshConnection
      && easy?.connectionsOpened == 0 && !isConnecting
  }

  func counted(_ error: TransferError) -> TransferError {
    var error = error
    error.bytesReceived = receiver.bytesReceived
    error.redirects = redirectChain.redirects
    return error
  }

  private var summary: TransferSummary? {
    guard let head = receiver.head, let easy else { return nil }
    var summary = TransferSummary(
      head: head, bytesReceived: receiver.bytesReceived, wireBytes: easy.bytesOnWire, redirects: redirectChain.redirects,
      requestSentAt: watch.requestSentAt, firstByteAt: watch.firstByteAt,
      connectDuration: watch.hopStartedAt.duration(to: watch.requestSentAt),
      newConnection: easy.connectionsOpened > 0, requestTime: watch.requestTime, responseTime: watch.responseTime)
    let durations = easy.durations
    summary.tcpDuration = durations.connect
    summary.tlsDuration = durations.tls
    let isResolvedByCurl = addressKey == nil && !origin.isAddress
    let waited = watch.hopStartedAt.duration(to: watch.resolvedAt)
    summary.nameDuration = isResolvedByCurl ? durations.name : waited > .zero ? waited : nil
    return summary
  }

  // MARK: Callbacks

  /// A socket for a connection to `address`, if the policy lets it pass; else curl tries the next address.
  func openSocket(for request: curl_sockaddr, to address: UnsafePointer<sockaddr>) -> curl_socket_t {
    guard let easy, mayConnect(to: IPAddress(address)) else {
      sockets.blocked += 1
      return CURL_SOCKET_BAD
    }
    let socket = sockets.open(request, patience: max(easy.settings.configuration.connectTimeout, .seconds(10)))
    if socket >= 0 { connections.opened(socket) }
    return socket
  }

  /// Called when there is a connection for the request, a new one or not: the policy may have become stricter since it
  /// was opened, and its last answer may have had more than its end.
  func mayRequest(on ends: ConnectionEnds) -> Bool {
    guard mayConnect(to: IPAddress(ends.peerAddress)) else {
      receiver.failure = blocked
      return false
    }
    guard let easy else { return false }
    let tls = TLSConnection(of: easy)
    let connection = Connection(
      socket: connections.socket(of: ends), tls: tls?.identity, isHTTP2: tls?.isHTTP2 ?? false)
    if easy.connectionsOpened == 0, hasUnread(connection, tls) {
      // Curl closes the connection of a request that is refused here.
      hasFoundUnread = true
      return false
    }
    self.connection = connection
    watch.requestSent(now: clock.now, unixTime: secondsSinceEpoch())
    clock.check(by: due)
    return true
  }

  /// Whether an answer of HTTP/1 on this connection could be one that was not asked for. In HTTP/2, where input names
  /// its stream, it could not.
  private func hasUnread(_ connection: Connection, _ tls: TLSConnection?) -> Bool {
    guard !connection.isHTTP2, tls != nil || origin.scheme != "https" || TLSConnection.isKnown else { return false }
    return connection.socket.map { connections.hasUnread($0, tls) } ?? true
  }

  private func mayConnect(to address: @autoclosure () -> IPAddress?) -> Bool {
    guard easy?.settings.configuration.network == .publicOnly else { return true }
    return address().map(isPermitted) ?? false
  }

  /// The error if no name server answered for the host.
  var noAnswer: TransferError { TransferError(.unanswered, "no name server answered for \(origin.host)") }
  /// The error if the name of the host has no address.
  var noAddress: TransferError { TransferError(.resolve, "the host \(origin.host) has no address") }

  var flood: TransferError {
    TransferError(.flood, "\(peer) floods the connection with bytes that belong to no response")
  }

  private var blocked: TransferError { TransferError(.blockedAddress, "\(server) is not a public address") }

  /// Called for each byte of a proxy's answer to CONNECT. False makes curl stop.
  func mayReadTunnel() -> Bool {
    guard isConnecting, let easy, connections.isServedTooLong(easy.raw) else { return true }
    receiver.failure = flood
    return false
  }

  /// False makes curl stop.
  func received(line: UnsafeRawBufferPointer) -> Bool {
    watch.received(now: clock.now)
    let wasComplete = receiver.isHeadComplete
    let goesOn = receiver.received(line: line, from: redirectChain.target.url)
    if receiver.isHeadComplete && !wasComplete { watch.headCompleted(unixTime: secondsSinceEpoch()) }
    return goesOn
  }

  func received(bytes: UnsafeRawBufferPointer) -> ResponseReceiver.WriteResult {
    watch.received(now: clock.now)
    noteProgress()
    if !share.take(in: clock.now), receiver.hold() {
      clock.held.append(id)
      return .held
    }
    return receiver.received(bytes: bytes)
  }

  /// Takes what has had to wait for this turn. Curl may call back from within.
  func goOn() {
    if !receiver.isPaused { takeHeld() }
  }

  /// Lifts a pause. Curl may call back from within.
  func resume() {
    if receiver.isPaused { takeHeld() }
  }

  private func takeHeld() {
    let isHeld = receiver.resume()
    watch.resumed(now: clock.now)
    clock.check(by: due)
    guard isHeld, let easy else { return }
    // Curl does not end a transfer whose consumer refuses what was held: `receiver.hasRefused` tells the loop to.
    if !easy.resume(), receiver.failure == nil, !receiver.hasRefused {
      receiver.failure = TransferError(.network, "the transfer could not be resumed")
    }
  }

  // MARK: Time

  private func noteProgress() {
    guard let easy else { return }
    watch.read(
      bytesOnWire: easy.bytesOnWire, minBytes: easy.settings.configuration.minRate, now: clock.now)
  }

  /// When it will have taken too long unless something arrives; nil is never.
  var due: ContinuousClock.Instant? {
    guard let configuration = settings?.configuration else { return nil }
    guard !receiver.isPaused else { return request.deadline }
    let stuckAt = watch.stuckAt(connectTimeout: configuration.connectTimeout, idleTimeout: request.idleTimeout)
    let slowAt = configuration.minRate > 0 ? watch.slowAt : nil
    return [stuckAt, slowAt, request.deadline].compactMap(\.self).min()
  }

  /// What has timed out; nil when it is not due after all.
  func timeout() -> TransferError? {
    noteProgress()
    guard let due, due <= clock.now else { return nil }
    if let deadline = request.deadline, deadline <= clock.now {
      return TransferError(.timeout, "the deadline has passed", phase: .deadline)
    }
    if due == watch.slowAt {
      let text = "\(server) sent fewer than \(settings?.configuration.minRate ?? 0) bytes in 30 s"
      return TransferError(.timeout, text, phase: .slow)
    }
    return switch watch.stage {
    case .resolving: noAnswer
    case .connecting: TransferError(.timeout, "connecting to \(peer) timed out", phase: .connect)
    case .waiting: TransferError(.timeout, "waiting for an answer of \(server) timed out", phase: .firstByte)
    case .receiving: TransferError(.timeout, "\(server) stopped sending", phase: .idle)
    }
  }
}
