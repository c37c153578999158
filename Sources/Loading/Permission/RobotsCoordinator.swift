internal import HTTPTransport
internal import HTTPTypes
internal import Threads

/// Requests the robots.txt of origins, and decides by it which images may be loaded (RFC 9309).
@LoadingActor
final class RobotsCoordinator {
  private static let lifetime = Duration.seconds(86_400)
  /// The lifetime of the answer of an origin whose file cannot be loaded.
  nonisolated fileprivate static let lifetimeOfFailure = Duration.seconds(60)
  private static let maxOrigins = 10_000
  private static let maxRequests = 64
  private static let maxAttempts = 2
  /// The number of redirects that RFC 9309 section 2.3.1.2 asks for.
  private static let maxRedirects = 5

  /// The value of User-Agent for which the rules are read; nil if robots.txt is ignored.
  let userAgent: String?
  private let transport: any Transferring
  private let storage: DiskServices
  private var known = ExpiringCache<Origin, Permission>(timeToLive: lifetime, capacity: maxOrigins)
  /// The failed requests, apart because they expire sooner.
  private var failed = ExpiringCache<Origin, Permission>(timeToLive: lifetimeOfFailure, capacity: maxOrigins)
  private var waiting: [Origin: [@LoadingActor (Permission) -> Void]] = [:]
  /// The origins whose requests have not started.
  private var queue = FIFO<Origin>()
  private var running = 0

  /// - Parameter storage: its thread reads the files, because a long one takes a tenth of a second.
  init(userAgent: String?, transport: any Transferring, storage: DiskServices) {
    (self.userAgent, self.transport, self.storage) = (userAgent, transport, storage)
  }

  var isObeyed: Bool { userAgent != nil }

  /// The rules of an origin, or the reason why it could not be asked.
  struct Permission: Sendable {
    var rules: RobotsRules
    var failure: String?
  }

  /// The permission of the origin, if it has been asked.
  func permission(of origin: Origin) -> Permission? {
    let now = LoadingActor.now
    return known.value(of: origin, now: now) ?? failed.value(of: origin, now: now)
  }

  /// Asks an origin for its rules, once for all that wait for them. `completion` may be called at once.
  func ask(_ origin: Origin, then completion: @escaping @LoadingActor (Permission) -> Void) {
    if let permission = permission(of: origin) { return completion(permission) }
    if waiting[origin] == nil { queue.append(origin) }
    waiting[origin, default: []].append(completion)
    startRequests()
  }

  private func startRequests() {
    while running < Self.maxRequests, let origin = queue.popFirst() {
      running += 1
      request(origin, attempt: 1)
    }
  }

  private func request(_ origin: Origin, attempt: Int) {
    guard let userAgent, let url = try? ResourceURL("\(origin)/robots.txt") else { return }
    var headers: HeaderFields = ["accept": "text/plain, */*;q=0.5"]
    if !userAgent.isEmpty { headers.append("user-agent", userAgent) }
    var request = TransferRequest(url: url, headers: headers, maxRedirects: Self.maxRedirects)
    request.needsFreshConnection = attempt > 1
    let source = WorkSource()
    _ = transport.start(
      request,
      consumer: RobotsDownload { answer in
        LoadingActor.run(for: source) { [weak self] in self?.answered(origin, answer, attempt: attempt) }
      })
  }

  private func answered(_ origin: Origin, _ answer: RobotsDownload.Answer, attempt: Int) {
    switch answer {
    case .unreachable where attempt < Self.maxAttempts: request(origin, attempt: attempt + 1)
    case .unreachable(let reason): settle(origin, Permission(rules: .disallowingAll, failure: reason))
    case .missing: settle(origin, Permission(rules: .allowingAll))
    case .file(let bytes):
      let userAgent = userAgent ?? ""
      storage.perform({ RobotsRules(bytes, for: userAgent) }) { [weak self] rules in
        self?.settle(origin, Permission(rules: rules))
      }
    }
  }

  private func settle(_ origin: Origin, _ permission: Permission) {
    if permission.failure == nil {
      known.remember(permission, of: origin, now: LoadingActor.now)
    } else {
      failed.remember(permission, of: origin, now: LoadingActor.now)
    }
    running -= 1
    for completion in waiting.removeValue(forKey: origin) ?? [] { completion(permission) }
    startRequests()
  }
}

extension RobotsCoordinator.Permission {
  /// The error for a request that is not allowed.
  ///
  /// - Parameter subject: the URL as the message names it.
  func refusal(of url: ResourceURL, as subject: String = "it") -> LoadError? {
    guard let rule = rules.refusal(of: url.requestTarget) else { return nil }
    var error = LoadError(
      .robots,
      failure.map { "robots.txt of \(url.origin) cannot be loaded: \($0)" }
        ?? "robots.txt of \(url.origin) does not allow \(subject) (\(rule))")
    if failure == nil { error.rule = rule } else { error.retryAfter = RobotsCoordinator.lifetimeOfFailure }
    return error
  }
}

/// Receives a robots.txt.
private final class RobotsDownload: TransferConsumer, @unchecked Sendable {
  // Unchecked: the mutable state is accessed only on the transport thread, where the calls for a transfer are serial.

  enum Answer: Sendable {
    case file([UInt8])
    /// The server has no such file (RFC 9309 section 2.3.1.3).
    case missing
    /// The server has an error, or does not answer (section 2.3.1.4).
    case unreachable(String)
  }

  private let onEnd: @Sendable (Answer) -> Void
  private var bytes: [UInt8] = []

  init(onEnd: @escaping @Sendable (Answer) -> Void) { self.onEnd = onEnd }

  func received(head: ResponseHead) -> Verdict { (200..<300).contains(head.status) ? .proceed : .discard }

  func received(bytes: UnsafeRawBufferPointer) -> Verdict {
    self.bytes.append(contentsOf: bytes)
    return self.bytes.count < RobotsRules.maxBytes ? .proceed : .discard
  }

  func finished(_ outcome: Result<TransferSummary, TransferError>) {
    switch outcome {
    case .success(let summary):
      switch summary.head.status {
      case 200..<300: onEnd(.file(bytes))
      case 429, 500...: onEnd(.unreachable("the server answered \(summary.head.status)"))
      default: onEnd(.missing)
      }
    case .failure(let error):
      // Too many redirects count as a missing file, like a file that the policy of addresses refuses.
      onEnd(error.kind == .redirects ? .missing : .unreachable(LoadError(error).message))
    }
  }
}
