internal import CCurl
internal import HTTPTypes
internal import Platform

/// A transfer in progress, hop by hop.
///
/// It is used on the transport's thread only. Curl's callbacks record what happened; `step` decides what follows, after
/// curl has released the handle.
final class Transfer {
  let id: TransferID
  private let request: TransferRequest
  private let clock: LoopClock
  private let connections: Connections
  private let isPermitted: AddressFilter

  /// The settings of all hops.
  let settings: ResolvedConfiguration
  /// The look-up for which the hop waits.
  var lookUp: Resolver.Ticket?
  /// The key of the host's entry in `AddressesInCurl` while curl may need it.
  var addressKey: String?
  /// The handle of the current hop while it is in use.
  private(set) var easy: EasyHandle?
  private var hop = Hop()
  private(set) var receiver: ResponseReceiver
  private var redirectChain: RedirectChain
  /// The cookies that the redirects have set.
  private var cookies: [String] = []
  private var watch: StallDetector
  private var share = TurnShare()
  /// Whether the consumer holds the transfer before its next hop.
  private var isHeld = false
  /// Whether this hop and those after it must not reuse a connection.
  private var needsFreshConnection: Bool

  private struct Hop {
    var proxy: String?
    var sockets = ConnectionAttempts()
    /// Whether the connection that curl chose for the request had unrequested input.
    var hasFoundUnread = false
    /// The connection of the request; nil before it is sent.
    var connection: Connection?
  }

  struct Connection {
    /// nil if it cannot be determined.
    var socket: curl_socket_t?
    var tls: ServiceTime.Connection?
    var isHTTP2: Bool
  }

  init(
    id: TransferID, request: TransferRequest, consumer: any TransferConsumer, settings: ResolvedConfiguration,
    clock: LoopClock, connections: Connections, isPermitted: @escaping AddressFilter
  ) throws(TransferError) {
    redirectChain = try RedirectChain(request)
    receiver = ResponseReceiver(request, consumer: consumer)
    watch = StallDetector(now: clock.now)
    needsFreshConnection = request.needsFreshConnection
    self.id = id
    self.request = request
    self.settings = settings
    self.clock = clock
    self.connections = connections
    self.isPermitted = isPermitted
  }

  var origin: Origin { redirectChain.target.origin }
  var proxy: String? { hop.proxy }
  var sockets: ConnectionAttempts { hop.sockets }
  var connection: Connection? { hop.connection }
  /// The origin as messages name it.
  var server: String { origin.hostAndPort }
  /// The host to which the hop connects, as messages name it.
  var peer: String { proxy == nil ? server : "the proxy for \(server)" }
  var isConnecting: Bool { watch.stage == .resolving || watch.stage == .connecting }

  /// Whether the system had no descriptor for the connection of this hop or for its name look-up.
  var lacksSocket: Bool { isConnecting && (sockets.isExhausted || easy?.hasNoResolver == true) }

  /// Whether a callback has told curl to stop, or would.
  var hasStopped: Bool { receiver.hasRefused || receiver.failure != nil }

  // MARK: Hops

  /// Begins a hop to the current target. The addresses of its host must be found next.
  func beginHop() throws(TransferError) {
    if let problem = settings.problem { throw TransferError(.invalidRequest, problem) }
    hop = Hop(proxy: settings.proxies.proxy(for: origin))
    receiver.beginHop(to: redirectChain.target.url)
    watch = StallDetector(now: clock.now)
    clock.check(by: due)
  }

  /// Sets `easy` up for the hop.
  ///
  /// - Parameter addresses: see `EasyHandle.prepare`.
  func prepare(_ easy: EasyHandle, addresses: [String]?) throws(TransferError) {
    watch.resolved(now: clock.now)
    let connectTimeout = settings.configuration.connectTimeout
    let isReady = easy.prepare(
      redirectChain.target, headers: redirectChain.fields, cookies: cookies, proxy: proxy, addresses: addresses,
      connectTimeout: connectTimeout - watch.hopStartedAt.duration(to: clock.now),
      needsFreshConnection: needsFreshConnection)
    guard isReady else {
      throw TransferError(.network, "the request could not be set up")
    }
    self.easy = easy
    easy.transfer = self
  }

  /// Releases the handle and returns it.
  func detach() -> EasyHandle? {
    defer { easy = nil }
    easy?.transfer = nil
    return easy
  }

  enum Step {
    case request
    /// The next hop begins when the consumer resumes the transfer.
    case hold
    case finish(Result<TransferSummary, TransferError>)
  }

  /// The next step after curl has ended the hop or was made to end it.
  ///
  /// - Parameter error: the reason why it ended; nil if the response is complete or a callback has stopped it.
  func step(after error: TransferError?) -> Step {
    if hop.hasFoundUnread {
      needsFreshConnection = true
      return .request
    }
    if let location = receiver.location, receiver.failure == nil {
      cookies = easy?.cookies ?? cookies
      do {
        try redirectChain.follow(location)
      } catch {
        return .finish(.failure(counted(error)))
      }
      return redirected()
    }
    if let failure = receiver.failure { return .finish(.failure(counted(failure))) }
    // The loop has lowered its limit: this request closes an idle connection, or waits until there is one.
    if error?.kind == .network, lacksSocket, connections.count > 0 { return .request }
    if let error, isOfClosedConnection(error) {
      needsFreshConnection = true
      return .request
    }
    // An error in a dropped rest is not a failure.
    if let error, !receiver.isDropping { return .finish(.failure(counted(error))) }
    if error == nil, receiver.isTruncated {
      return .finish(.failure(counted(TransferError(.truncated, "\(server) sent an incomplete body"))))
    }
    guard let summary else {
      return .finish(.failure(TransferError(.network, "\(server) closed the connection before the end of the header")))
    }
    return .finish(.success(summary))
  }

  private func redirected() -> Step {
    switch receiver.consumer.redirected(to: redirectChain.target.url) {
    case .proceed: return .request
    case .pause:
      isHeld = true
      return .hold
    case .discard, .abort:
      return .finish(.failure(counted(TransferError(.aborted, "the receiver refused a redirect"))))
    }
  }

  /// Ends the hold before the next hop. Returns whether there was one.
  func endHold() -> Bool {
    defer { isHeld = false }
    return isHeld
  }

  /// Whether the peer closed a reused connection before it had the request, or instead of answering. A GET may be sent
  /// again then (RFC 9110 section 9.2.2). Curl itself retries only five times, and more connections may have been kept.
  private func isOfClosedConnection(_ error: TransferError) -> Bool {
    [.network, .closed].contains(error.kind) && receiver.head == nil && !needsFreshConnection
      && easy?.connectionsOpened == 0 && !isConnecting
  }

  func counted(_ error: TransferError) -> TransferError {
    var error = error
    error.bytesReceived = receiver.bytesReceived
    error.redirects = redirectChain.redirects
    error.times = times
    return error
  }

  private var summary: TransferSummary? {
    guard let head = receiver.head else { return nil }
    return TransferSummary(
      head: head, bytesReceived: receiver.bytesReceived, redirects: redirectChain.redirects, times: times,
      requestTime: watch.requestTime, responseTime: watch.responseTime)
  }

  private var times: TransferTimes {
    var times = TransferTimes(startedAt: watch.hopStartedAt, endedAt: .now)
    times.redirects = redirectChain.redirects
    let durations: (name: Duration?, connect: Duration?, tls: Duration?) = easy?.durations ?? (nil, nil, nil)
    let looked = watch.hopStartedAt.duration(to: watch.stage == .resolving ? times.endedAt : watch.resolvedAt)
    let isResolvedByCurl = watch.stage != .resolving && addressKey == nil && !origin.isAddress
    times.name = isResolvedByCurl ? durations.name : looked > .zero ? looked : nil
    (times.connect, times.tls) = (durations.connect, durations.tls)
    switch watch.stage {
    case .resolving: break
    case .connecting:
      // The step in which the hop ended: the handshake if there was a TCP connection, otherwise connecting.
      let rest = watch.resolvedAt.duration(to: times.endedAt) - (isResolvedByCurl ? durations.name ?? .zero : .zero)
      if let connect = durations.connect { times.tls = max(.zero, rest - connect) } else { times.connect = rest }
    case .waiting: times.requestSentAt = watch.requestSentAt
    case .receiving: (times.requestSentAt, times.firstByteAt) = (watch.requestSentAt, watch.firstByteAt)
    }
    return times
  }

  // MARK: Callbacks

  /// Opens a socket for a connection to `address` if the policy allows it; otherwise curl tries the next address.
  func openSocket(for request: curl_sockaddr, to address: UnsafePointer<sockaddr>) -> curl_socket_t {
    guard mayConnect(to: IPAddress(address)) else {
      hop.sockets.blocked += 1
      return CURL_SOCKET_BAD
    }
    let socket = hop.sockets.open(
      request, acknowledgementTimeout: max(settings.configuration.connectTimeout, .seconds(10)))
    if socket >= 0 { connections.opened(socket) }
    return socket
  }

  /// Called when the request has a connection, new or reused. The policy may have become stricter since the connection
  /// was opened, and unrequested input may have followed its last answer.
  func mayRequest(on ends: ConnectionEnds) -> Bool {
    guard let easy else {
      assertionFailure("curl must send requests only for a hop that has a handle")
      return false
    }
    guard mayConnect(to: IPAddress(ends.peerAddress)) else {
      receiver.failure = blocked
      return false
    }
    let tls = TLSConnection(of: easy)
    let connection = Connection(
      socket: connections.socket(of: ends), tls: tls?.identity, isHTTP2: tls?.isHTTP2 ?? false)
    if easy.connectionsOpened == 0, hasUnread(connection, tls) {
      // Curl closes the connection of a request that is refused here.
      hop.hasFoundUnread = true
      return false
    }
    hop.connection = connection
    watch.requestSent(now: .now, unixTime: secondsSinceEpoch())
    clock.check(by: due)
    return true
  }

  /// Whether the next HTTP/1 answer on this connection may be one that was not requested. HTTP/2 input names its
  /// stream, so it cannot be mistaken.
  private func hasUnread(_ connection: Connection, _ tls: TLSConnection?) -> Bool {
    guard !connection.isHTTP2, tls != nil || origin.scheme != "https" || TLSConnection.isKnown else { return false }
    return connection.socket.map { connections.hasUnread($0, tls) } ?? true
  }

  private func mayConnect(to address: @autoclosure () -> IPAddress?) -> Bool {
    guard settings.configuration.network == .publicOnly else { return true }
    return address().map(isPermitted) ?? false
  }

  /// The error if no name server answered for the host.
  var noAnswer: TransferError { TransferError(.unanswered, "no name server answered for \(origin.host)") }
  /// The error if the name of the host has no address.
  var noAddress: TransferError { TransferError(.resolve, "the host \(origin.host) does not resolve to an address") }

  var flood: TransferError {
    TransferError(.flood, "\(peer) floods the connection with bytes that belong to no response")
  }

  private var blocked: TransferError { TransferError(.blockedAddress, "\(server) is not a public address") }

  /// Called for each byte of a proxy's answer to CONNECT. Returns false to make curl stop.
  func mayReadTunnel() -> Bool {
    guard isConnecting, let easy, connections.isServedTooLong(easy.raw) else { return true }
    receiver.failure = flood
    return false
  }

  /// Returns false to make curl stop.
  func received(line: UnsafeRawBufferPointer) -> Bool {
    watch.receivedLine(turn: clock.now, now: .now)
    let result = receiver.received(line: line)
    if result == .headTaken || result == .headRefused { watch.headCompleted(unixTime: secondsSinceEpoch()) }
    return result == .taken || result == .headTaken
  }

  func received(bytes: UnsafeRawBufferPointer) -> ResponseReceiver.WriteResult {
    watch.received(now: clock.now)
    recordProgress()
    if !share.receivePiece(in: clock.now), receiver.deferBytes() {
      clock.held.append(id)
      return .held
    }
    return receiver.received(bytes: bytes)
  }

  /// Delivers bytes that had to wait for this turn. Curl may call back from within.
  func continueInNewTurn() { if !receiver.isPaused { deliverHeld() } }

  /// Lifts a pause. Curl may call back from within.
  func resume() { if receiver.isPaused { deliverHeld() } }

  private func deliverHeld() {
    let isHeld = receiver.resume()
    watch.resumed(now: clock.now)
    clock.check(by: due)
    guard isHeld else { return }
    guard let easy else { return assertionFailure("curl must hold bytes only for a hop that has a handle") }
    // Curl does not end a transfer whose consumer refuses held bytes; the loop does, by `receiver.hasRefused`.
    if !easy.resume(), receiver.failure == nil, !receiver.hasRefused {
      receiver.failure = TransferError(.network, "the transfer could not be resumed")
    }
  }

  // MARK: Time

  private func recordProgress() {
    guard let easy else { return }
    watch.read(
      bytesOnWire: easy.bytesOnWire, minBytes: settings.configuration.minRate, now: clock.now)
  }

  /// The time at which the transfer times out unless something arrives; nil means never.
  var due: Instant? {
    guard !receiver.isPaused, !isHeld else { return nil }
    let stuckAt = watch.stuckAt(
      connectTimeout: settings.configuration.connectTimeout, idleTimeout: request.idleTimeout)
    let slowAt = settings.configuration.minRate > 0 ? watch.slowAt : nil
    return slowAt.map { min($0, stuckAt) } ?? stuckAt
  }

  /// The timeout that has occurred; nil if none has.
  func timeout() -> TransferError? {
    recordProgress()
    guard let due, due <= clock.now else { return nil }
    if due == watch.slowAt {
      let text = "\(server) sent fewer than \(settings.configuration.minRate) bytes in 30 s"
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
