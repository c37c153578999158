internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import Platform
internal import Threads

/// The permission of sites for the requests of jobs, those to the targets of redirects included, and their rate.
///
/// A robots.txt is loaded like an image, by an internal load: its job has the health, the windows, the retries and the
/// timeouts of its origin, and its priority is the highest of the loads that wait for it.
@LoadingActor
final class PermissionCoordinator {
  weak var client: JobCoordinator?
  private let jobs: JobRegistry
  private let registry: LoadRegistry
  private let transport: Transport
  private var permissions: Permissions
  /// The URLs whose permission jobs wait for: their own, or the targets of redirects.
  private var awaited: [JobID: ResourceURL] = [:]
  /// Reads long robots.txt files and applies many rules; started when the first is to be read.
  private lazy var rulesThread = ThreadExecutor(name: "robots")

  /// - Parameter userAgent: nil if robots.txt is ignored.
  init(jobs: JobRegistry, registry: LoadRegistry, transport: Transport, userAgent: String?) {
    (self.jobs, self.registry, self.transport) = (jobs, registry, transport)
    permissions = Permissions(userAgent: userAgent)
  }

  /// The value of User-Agent for which robots.txt is read; nil if it is ignored.
  var userAgent: String? { permissions.userAgent }

  // MARK: - Before the queue

  /// The permission of a job, as far as it is known before the job is queued.
  enum KnownPermission {
    case allowed
    case refused(LoadError)
    /// The origin has not been asked, or has too many rules to decide at once.
    case open(ResourceURL, RobotsRules?)
  }

  /// The permission of a job for its transfer. A job is checked once.
  func permission(of id: JobID) -> KnownPermission {
    guard permissions.isObeyed, let job = jobs[id], !job.isPermitted, !job.isForPermission,
      case .http(let url) = job.request.source
    else { return .allowed }
    guard let rules = permissions.rules(of: job.request.origin, now: .now) else { return .open(url, nil) }
    guard rules.isQuick(for: url.requestTarget) else { return .open(url, rules) }
    if let rule = rules.refusal(of: url.requestTarget) { return .refused(.refused(by: rule, url, isRedirect: false)) }
    permit(id, rules.crawlDelay)
    return .allowed
  }

  private func permit(_ id: JobID, _ crawlDelay: Duration?) {
    jobs[id]?.isPermitted = true
    jobs.scheduler.setCrawlDelay(crawlDelay, forOriginOf: id)
  }

  /// Finds out whether the site allows a request of a job: its first, or the one to the target of a redirect.
  func find(of id: JobID, for url: ResourceURL, _ rules: RobotsRules?) {
    if let rules { judge(id, url, by: rules) } else { ask(id, for: url) }
  }

  // MARK: - The load of a robots.txt

  /// Lets the job wait for the robots.txt of an origin, which is loaded once for all jobs that wait.
  private func ask(_ id: JobID, for url: ResourceURL) {
    guard let job = jobs[id] else { return }
    awaited[id] = url
    let origin = url.origin
    if permissions.load(of: origin) == nil {
      let (load, priority) = (registry.makeID(), jobs.scheduler.job(id)?.priority ?? .normal)
      permissions.begin(load, of: origin)
      permissions.wait(id, for: origin)
      client?.loader?.submit(
        .robots(of: origin, as: permissions.userAgent ?? "", like: job.request, priority), as: load,
        for: RobotsObserver { [weak self] in self?.loaded(load, of: origin, $0) }, requester: .permission,
        place: nil)
    } else {
      permissions.wait(id, for: origin)
      raise(for: id)
    }
    if job.transfer != nil, let robots = permissions.load(of: origin).flatMap({ jobs.scheduler.job(of: $0) }) {
      jobs.scheduler.startBeyondLimits(robots)
    }
  }

  /// Gives the robots.txt that a job waits for at least the priority of the job.
  func raise(for id: JobID) {
    guard let origin = awaited[id]?.origin, let load = permissions.load(of: origin),
      let priority = jobs.scheduler.job(id)?.priority, let own = jobs.scheduler.priority(of: load), priority > own
    else { return }
    registry[load]?.priority = priority
    _ = jobs.scheduler.setPriority(priority, of: load)
  }

  /// Ends the wait of a job. A robots.txt that no job waits for is not loaded.
  func leave(_ id: JobID) {
    guard let url = awaited.removeValue(forKey: id), let load = permissions.leave(url.origin) else { return }
    client?.loader?.cancel(load)
  }

  private func loaded(_ load: LoadID, of origin: Origin, _ result: Result<LoadedImage, LoadError>) {
    switch result {
    case .success(let file):
      let userAgent = permissions.userAgent ?? ""
      readRules({ RobotsRules(file.data ?? [], for: userAgent) }) { [weak self] rules in
        self?.settle(load, of: origin, .success(rules))
      }
    case .failure(let error):
      settle(load, of: origin, error.meansNoRobotsFile ? .success(.allowingAll) : .failure(error))
    }
  }

  private func settle(_ load: LoadID, of origin: Origin, _ result: Result<RobotsRules, LoadError>) {
    if case .success(let rules) = result { permissions.remember(rules, of: origin, now: .now) }
    for id in permissions.end(load, of: origin) ?? [] {
      guard let job = jobs[id], let url = awaited[id], url.origin == origin else { continue }
      awaited[id] = nil
      switch result {
      case .success(let rules): judge(id, url, by: rules)
      case .failure(var error):
        error.message = "robots.txt of \(origin) cannot be loaded: \(error.message)"
        // The response is not that to the request of the load.
        error.response = nil
        if job.transfer != nil { refuse(id, error) } else { client?.giveUp(id, error) }
      }
    }
  }

  // MARK: - The rules

  /// Runs `work` on a thread that no other load waits for.
  private func readRules<Result: Sendable>(
    _ work: @escaping @Sendable () -> Result, then completion: @escaping @LoadingActor @Sendable (Result) -> Void
  ) {
    rulesThread.run {
      let result = work()
      LoadingActor.run { completion(result) }
    }
  }

  /// Decides by the rules of an origin about a request of a job.
  private func judge(_ id: JobID, _ url: ResourceURL, by rules: RobotsRules) {
    let (target, transfer) = (url.requestTarget, jobs[id]?.transfer)
    if rules.isQuick(for: target) { return judged(id, url, rules.crawlDelay, refusedBy: rules.refusal(of: target)) }
    readRules({ rules.refusal(of: target) }) { [weak self] rule in
      guard let self, let job = self.jobs[id], job.transfer == transfer else { return }
      self.judged(id, url, rules.crawlDelay, refusedBy: rule)
    }
  }

  private func judged(_ id: JobID, _ url: ResourceURL, _ crawlDelay: Duration?, refusedBy rule: String?) {
    guard jobs[id]?.transfer == nil else {
      if let rule { return refuse(id, .refused(by: rule, url, isRedirect: true)) }
      return follow(id, to: url, crawlDelay: crawlDelay)
    }
    guard let client, jobs.scheduler.job(id)?.phase == .awaitingPermission else { return }
    if let rule { return client.fail(id, .refused(by: rule, url, isRedirect: false)) }
    permit(id, crawlDelay)
    client.enqueue(id)
  }

  // MARK: - Redirects

  /// Whether the redirects of a job are checked before they are followed. Those of a robots.txt need no permission.
  func checksRedirects(of job: Job) -> Bool {
    !job.isForPermission && (permissions.isObeyed || jobs.scheduler.limits.startInterval != nil)
  }

  /// Lets the transfer of a job follow a redirect if robots.txt of the target's origin allows it, at the rate of that
  /// origin. Nothing is sent to the target before. A redirect that is refused ends the transfer.
  func redirected(_ id: JobID, to target: String) {
    guard jobs[id]?.transfer != nil else { return }
    client?.transfers.firstByteReceived(id)
    guard let url = try? ResourceURL(final: target) else {
      return refuse(id, LoadError(.redirects, "the target of the redirect is not a valid URL"))
    }
    guard permissions.isObeyed else { return follow(id, to: url, crawlDelay: nil) }
    find(of: id, for: url, permissions.rules(of: url.origin, now: .now))
  }

  private func follow(_ id: JobID, to url: ResourceURL, crawlDelay: Duration?) {
    switch jobs.scheduler.redirect(id, to: url.origin, crawlDelay: crawlDelay, now: .now) {
    case .now: followRedirect(id)
    case .later: break
    case .tooLate(let wait):
      refuse(id, .rate(of: url.origin, crawlDelay, allows: "the redirect to \(url.redacted)", in: wait))
    }
  }

  /// Sends the request to the target of a redirect.
  func followRedirect(_ id: JobID) { if let transfer = jobs[id]?.transfer { transport.resume(transfer) } }

  private func refuse(_ id: JobID, _ error: LoadError) {
    guard let transfer = jobs[id]?.transfer else { return }
    jobs[id]?.download?.refuse(with: error)
    transport.cancel(transfer)
  }
}

extension Job {
  /// Whether the job transfers a robots.txt.
  nonisolated var isForPermission: Bool { first.requester == .permission }
}

extension LoadRequest {
  /// The number of redirects that RFC 9309 section 2.3.1.2 asks for.
  static let maxRobotsRedirects = 5

  /// The request for the robots.txt of an origin.
  ///
  /// - Parameter request: one that waits for it.
  fileprivate static func robots(
    of origin: Origin, as userAgent: String, like request: LoadRequest, _ priority: Priority
  ) -> LoadRequest {
    guard let url = try? ResourceURL("\(origin)/robots.txt") else {
      preconditionFailure("the origin of a valid URL has a valid URL for its robots.txt")
    }
    var fields: HeaderFields = ["accept": "text/plain, */*;q=0.5"]
    if !userAgent.isEmpty { fields.append("user-agent", userAgent) }
    var robots = LoadRequest(
      url: url.requestURL, source: .http(url), key: "robots.txt of \(origin)", fields: LoadHeaders(fields))
    (robots.cacheMode, robots.store, robots.retriesFailed) = (.noStore, [], true)
    (robots.delivery, robots.validation, robots.maxBytes) = (.data, .none, .max)
    (robots.timeout, robots.retries, robots.priority) = (request.timeout, request.retries, priority)
    return robots
  }
}

extension LoadError {
  /// The error for a request that the robots.txt of its origin does not allow.
  fileprivate static func refused(by rule: String, _ url: ResourceURL, isRedirect: Bool) -> LoadError {
    let subject = isRedirect ? "the redirect to \(url.redacted)" : "it"
    var error = LoadError(.robots, "robots.txt of \(url.origin) does not allow \(subject) (\(rule))")
    error.rule = rule
    return error
  }

  /// Whether the failure of a robots.txt means that there is none, so that everything is allowed (RFC 9309 section
  /// 2.3.1.3). Too many redirects count as that, like a redirect to an address that is not allowed.
  fileprivate var meansNoRobotsFile: Bool {
    switch kind {
    case .http: status.map { (300..<500).contains($0) && $0 != 429 } ?? false
    case .redirects, .blockedAddress: true
    default: false
    }
  }
}

/// Receives a robots.txt.
@LoadingActor
private final class RobotsObserver: LoadObserver {
  private let onEnd: @LoadingActor (Result<LoadedImage, LoadError>) -> Void

  init(onEnd: @escaping @LoadingActor (Result<LoadedImage, LoadError>) -> Void) { self.onEnd = onEnd }

  func load(_ id: LoadID, did event: LoadEvent) {}

  func load(_ id: LoadID, ended result: Result<LoadedImage, LoadError>) { onEnd(result) }
}
