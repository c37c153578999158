internal import CCurl
internal import HTTPTypes
internal import Platform
internal import Threads

/// The transfers in progress, and curl's multi handle, which drives them. Confined to one thread.
final class CurlLoop {
  private let sockets: SocketPoll
  private let multi: UnsafeMutableRawPointer
  private let clock = LoopClock()
  private let connections = Connections()
  private let emptyConnectionCache: EmptyConnectionCache
  private let resolver: Resolver
  private var addresses = AddressesInCurl()
  private let environment: (String) -> String?
  private let isPermitted: AddressFilter
  private let post: @Sendable (Transport.Command) -> Void
  private var settings: ResolvedConfiguration
  private var transfers: [TransferID: Transfer] = [:]
  private var limits: ConnectionLimits {
    didSet { if limits != oldValue { limitConnections() } }
  }

  private static let globalResult = curl_global_init(Int(CURL_GLOBAL_DEFAULT))

  /// Fails if curl cannot be started.
  ///
  /// - Parameter post: posts a command to the thread of this loop. May be called on any thread.
  init?(
    configuration: TransportConfiguration, environment: @escaping (String) -> String?,
    isPermitted: @escaping AddressFilter, nameServers: NameServerConfiguration,
    post: @escaping @Sendable (Transport.Command) -> Void
  ) {
    guard Self.globalResult == CURLE_OK, let sockets = SocketPoll(), let cache = EmptyConnectionCache(),
      let multi = curl_multi_init()
    else { return nil }
    self.sockets = sockets
    self.multi = multi
    emptyConnectionCache = cache
    self.environment = environment
    self.isPermitted = isPermitted
    self.post = post
    settings = ResolvedConfiguration(configuration, environment: environment)
    limits = ConnectionLimits(max: configuration.maxConnections)
    resolver = Resolver(nameServers, poll: sockets, clock: clock)
    _ = ccurl_multi_set_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
    limitConnections()
    sockets.serve(multi)
  }

  deinit { curl_multi_cleanup(multi) }

  var count: Int { transfers.count }

  // MARK: Commands

  func beginTurn() { clock.now = .now }

  func configure(_ configuration: TransportConfiguration) {
    guard configuration != settings.configuration else { return }
    settings = ResolvedConfiguration(configuration, environment: environment, previous: settings)
    limits = ConnectionLimits(max: configuration.maxConnections)
  }

  private func limitConnections() {
    _ = ccurl_multi_set_long(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, limits.open)
    _ = ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, limits.kept)
  }

  func start(_ id: TransferID, _ request: TransferRequest, _ consumer: any TransferConsumer) {
    do {
      let transfer = try Transfer(
        id: id, request: request, consumer: consumer, settings: settings, clock: clock, connections: connections,
        isPermitted: isPermitted)
      transfers[id] = transfer
      begin(transfer)
    } catch {
      consumer.finished(.failure(error))
    }
  }

  func resume(_ id: TransferID) {
    guard let transfer = transfers[id] else { return }
    if transfer.endHold() { return begin(transfer) }
    transfer.resume()
    if transfer.hasStopped { end(transfer, nil) }
  }

  func cancel(_ id: TransferID) {
    guard let transfer = transfers[id] else { return }
    finish(transfer, .failure(transfer.counted(TransferError(.cancelled, "cancelled"))))
  }

  // MARK: Names

  var resolverStatistics: ResolverStatistics {
    let kind = settings.configuration.resolver
    return kind == .cAres ? resolver.statistics : ResolverStatistics(kind: kind)
  }

  func lookUp(_ origin: Origin, _ completion: @escaping @Sendable (NameResolution) -> Void) {
    switch resolver.need(for: origin, under: settings) {
    case .nothing: completion(NameResolution(.resolved))
    case .known(let outcome): completion(NameResolution(outcome.asResolution))
    case .lookUp(let name):
      let began = clock.now
      _ = resolver.lookUp(name) { [clock] outcome in
        completion(NameResolution(outcome.asResolution, duration: began.duration(to: clock.now)))
      }
    }
  }

  // MARK: Work

  /// Lets curl read and write without waiting, and ends the transfers that are complete or have timed out.
  func work() {
    continueHeldTransfers()
    sockets.reportReady(multi, beginCall: connections.beginCall)
    resolver.work()
    var left: Int32 = 0
    while let message = curl_multi_info_read(multi, &left) {
      guard message.pointee.msg == CURLMSG_DONE, let raw = message.pointee.easy_handle else {
        assertionFailure("curl has messages about ended transfers only")
        continue
      }
      let code = message.pointee.data.result
      var context: UnsafeMutableRawPointer?
      _ = ccurl_get_pointer(raw, CURLINFO_PRIVATE, &context)
      guard let easy = EasyHandle.behind(context), let transfer = easy.transfer else {
        assertionFailure("a handle that curl drives must belong to a transfer")
        continue
      }
      emptyConnectionCache.detachConnection(of: raw)
      let isOurs = code == CURLE_OK || transfer.hasStopped
      let error = isOurs ? nil : connections.error(of: transfer) ?? TransferError(code, of: transfer, on: easy)
      if error?.kind == .resolve { explainNoAddress(of: transfer) } else { end(transfer, error) }
    }
    connections.removeEnded(except: transfers.values)
    // Checked after curl has read: input that arrived while the loop was busy counts as progress.
    if clock.beginCheck() { endLateTransfers() }
  }

  private func continueHeldTransfers() {
    guard !clock.held.isEmpty else { return }
    let held = clock.held
    clock.held = []
    for transfer in held.compactMap({ transfers[$0] }) {
      transfer.continueInNewTurn()
      if transfer.hasStopped { end(transfer, nil) }
    }
  }

  var wakeUp: WakeupPipe { sockets.wakeUp }

  /// Waits for the next work, or polls without waiting.
  func sleep(mayWait: Bool) {
    let nextCheck = [clock.nextCheck, resolver.nextCheck].compactMap { $0 }.min()
    sockets.sleep(for: multi, milliseconds: mayWait && clock.held.isEmpty ? nextCheck?.pollTimeout ?? .max : 0)
  }

  private func endLateTransfers() {
    for transfer in Array(transfers.values) {
      if let error = transfer.timeout() {
        end(transfer, error)
      } else {
        clock.check(by: transfer.due)
      }
    }
  }

  // MARK: Hops

  /// Begins a hop, and sends its request once the addresses of its host are known.
  private func begin(_ transfer: Transfer) {
    do throws(TransferError) {
      try transfer.beginHop()
    } catch {
      return finish(transfer, .failure(transfer.counted(error)))
    }
    switch resolver.need(for: transfer.origin, under: transfer.settings) {
    case .nothing: send(transfer, to: nil)
    case .known(let outcome): proceed(transfer, outcome)
    case .lookUp(let name):
      transfer.lookUp = resolver.lookUp(name) { [unowned self, unowned transfer] outcome in
        transfer.lookUp = nil
        proceed(transfer, outcome)
      }
    }
  }

  private func proceed(_ transfer: Transfer, _ outcome: Resolver.Outcome) {
    switch outcome {
    case .addresses(let addresses): send(transfer, to: addresses)
    case .noSuchName: finish(transfer, .failure(transfer.counted(transfer.noAddress)))
    case .unanswered: finish(transfer, .failure(transfer.counted(transfer.noAnswer)))
    }
  }

  /// Finds out whether the name of a host for which curl has found no address exists.
  private func explainNoAddress(of transfer: Transfer) {
    let (id, post) = (transfer.id, post)
    SystemNames.findAbsence(of: transfer.origin.host) { post(.explainedNoAddress(id, isCertain: $0)) }
  }

  func explainedNoAddress(_ id: TransferID, isCertain: Bool) {
    if let transfer = transfers[id] { proceed(transfer, isCertain ? .noSuchName : .unanswered) }
  }

  /// - Parameter hostAddresses: the addresses of the host; nil if curl resolves it.
  private func send(_ transfer: Transfer, to hostAddresses: [IPAddress]?) {
    do throws(TransferError) {
      guard let easy = EasyHandle(settings: transfer.settings, connections: connections) else {
        throw TransferError(.network, "out of memory for another transfer")
      }
      transfer.addressKey = hostAddresses.map { _ in transfer.origin.hostAndPort }
      let lines = hostAddresses.map { addresses.begin(transfer.origin.hostAndPort, $0) }
      try transfer.prepare(easy, addresses: lines)
      guard curl_multi_add_handle(multi, easy.raw) == CURLM_OK else {
        throw TransferError(.network, "out of memory for another transfer")
      }
    } catch {
      finish(transfer, .failure(transfer.counted(error)))
    }
  }

  /// Handles the end of a hop, by itself or because of `error`: begins the next hop or finishes the transfer.
  private func end(_ transfer: Transfer, _ error: TransferError?) {
    if transfer.lacksSocket { limits.lower(count: connections.count) }
    switch transfer.step(after: error) {
    case .finish(let outcome): finish(transfer, outcome)
    case .request:
      detach(transfer)
      begin(transfer)
    case .hold: detach(transfer)
    }
  }

  private func detach(_ transfer: Transfer) {
    transfer.lookUp.map(resolver.unsubscribe)
    transfer.lookUp = nil
    if let easy = transfer.detach() { curl_multi_remove_handle(multi, easy.raw) }
    if let key = transfer.addressKey { addresses.end(key) }
    transfer.addressKey = nil
  }

  private func finish(_ transfer: Transfer, _ outcome: Result<TransferSummary, TransferError>) {
    transfers[transfer.id] = nil
    limits.raise()
    detach(transfer)
    transfer.receiver.consumer.finished(outcome)
  }
}
