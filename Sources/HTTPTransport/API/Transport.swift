internal import CCurl
public import HTTPTypes
internal import Platform
internal import Threads

/// HTTP GET requests with streamed responses, on libcurl's multi interface.
///
/// The caller decides when a transfer starts and how many run at once. HTTP/1.1 connections are reused, HTTP/2
/// connections shared, compressed bodies decompressed, redirects followed.
///
/// The actor's executor is the thread of curl's loop. The first transfer starts it, together with curl and its TLS
/// library. `start`, `cancel`, `resume` and `configure` may be called on any thread; they return at once and take
/// effect on the transport's thread in the order of the calls. The thread never ends, and keeps the transport alive.
public actor Transport {
  enum Command: Sendable {
    case configure(TransportConfiguration)
    case start(TransferID, TransferRequest, any TransferConsumer)
    case lookUp(Origin, @Sendable (NameResolution) -> Void)
    case resolverStatistics(@Sendable (ResolverStatistics?) -> Void)
    case resume(TransferID)
    case cancel(TransferID)
    case explainedNoAddress(TransferID, isCertain: Bool)
  }

  private nonisolated let executor = LoopExecutor<Command>(name: "transport")
  private nonisolated let lastNumber = Locked<UInt64>(0)
  private nonisolated let environment: @Sendable (String) -> String?
  private nonisolated let isPermitted: AddressFilter
  private nonisolated let nameServers: NameServerConfiguration

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private var configuration: TransportConfiguration
  private var curl: CurlLoop?

  /// - Parameter environment: returns the value of an environment variable (for proxies and certificates), or nil.
  public init(
    configuration: TransportConfiguration, environment: @escaping @Sendable (String) -> String? = processEnvironment
  ) {
    self.init(
      configuration: configuration, environment: environment,
      isPermitted: { AddressPolicy.isGloballyRoutable($0.bytes) })
  }

  /// - Parameters:
  ///   - isPermitted: whether `NetworkPolicy.publicOnly` allows an address.
  ///   - nameServers: the servers that c-ares asks.
  init(
    configuration: TransportConfiguration, environment: @escaping @Sendable (String) -> String?,
    isPermitted: @escaping AddressFilter, nameServers: NameServerConfiguration = NameServerConfiguration()
  ) {
    self.nameServers = nameServers
    self.configuration = configuration
    self.environment = environment
    self.isPermitted = isPermitted
    executor.setLoop { [weak self] in self?.run() }
  }

  /// Starts a transfer.
  public nonisolated func start(_ request: TransferRequest, consumer: any TransferConsumer) -> TransferID {
    let id = lastNumber.withLock { number in
      number += 1
      return TransferID(number: number)
    }
    executor.post(.start(id, request, consumer), startsThread: true)
    return id
  }

  /// Cancels a transfer: its outcome is `cancelled` unless it has ended before the call takes effect. Unknown and ended
  /// transfers are ignored.
  public nonisolated func cancel(_ id: TransferID) {
    executor.post(.cancel(id), startsThread: false)
  }

  /// Looks up the addresses of an origin's host ahead of a transfer, which then need not wait for them.
  ///
  /// - Parameter completion: called once, on the transport's thread, where it blocks all transfers.
  public nonisolated func lookUp(_ origin: Origin, completion: @escaping @Sendable (NameResolution) -> Void) {
    executor.post(.lookUp(origin, completion), startsThread: true)
  }

  /// Lifts the pause of a transfer. One that is not paused is ignored.
  public nonisolated func resume(_ id: TransferID) {
    executor.post(.resume(id), startsThread: false)
  }

  /// Replaces the configuration for transfers that start later.
  public nonisolated func configure(_ configuration: TransportConfiguration) {
    executor.post(.configure(configuration), startsThread: false)
  }

  /// How many transfers are running.
  var count: Int { curl?.count ?? 0 }

  /// Counters and the state of the resolver.
  ///
  /// - Parameter completion: called once: immediately, with nil, if nothing has been started; otherwise on the
  ///   transport's thread.
  public nonisolated func resolverStatistics(_ completion: @escaping @Sendable (ResolverStatistics?) -> Void) {
    if !executor.postIfRunning(.resolverStatistics(completion)) { completion(nil) }
  }

  private nonisolated func run() {
    let unowned = executor.asUnownedSerialExecutor()
    while true {
      let work = executor.drain()
      for job in work.jobs { job.runSynchronously(on: unowned) }
      assumeIsolated { $0.turn(work.commands) }
    }
  }

  /// One turn of the loop: performs commands, lets curl work, sleeps.
  private func turn(_ commands: [Command]) {
    WakeupCoalescer.gather {
      curl?.beginTurn()
      for command in commands { perform(command) }
      curl?.work()
    }
    executor.sleep(in: curl)
  }

  private func startCurl() {
    guard curl == nil else { return }
    curl = CurlLoop(
      configuration: configuration, environment: environment, isPermitted: isPermitted, nameServers: nameServers,
      post: { [executor] in executor.post($0, startsThread: false) })
  }

  private func perform(_ command: Command) {
    switch command {
    case .configure(let new):
      configuration = new
      curl?.configure(new)
    case .start(let id, let request, let consumer):
      startCurl()
      guard let curl else {
        return consumer.finished(.failure(TransferError(.network, "libcurl could not be started")))
      }
      curl.start(id, request, consumer)
    case .lookUp(let origin, let completion):
      startCurl()
      guard let curl else { return completion(NameResolution(.unanswered)) }
      curl.lookUp(origin, completion)
    case .resolverStatistics(let completion): completion(curl?.resolverStatistics)
    case .resume(let id): curl?.resume(id)
    case .cancel(let id): curl?.cancel(id)
    case .explainedNoAddress(let id, let isCertain): curl?.explainedNoAddress(id, isCertain: isCertain)
    }
  }
}

/// The value of an environment variable of this process.
@Sendable public func processEnvironment(_ name: String) -> String? {
  getenv(name).map { String(cString: $0) }
}
