internal import HTTPTypes
internal import Platform

/// The time between two requests to an origin (`--rate`, `Crawl-delay`), for first requests and for those that follow
/// redirects.
extension Scheduler {
  /// When the request to the target of a redirect may be sent.
  enum RedirectTurn: Equatable {
    case now
    /// When `expired` returns the job.
    case later
    /// After so long a wait that the transfer must end: it would keep its permit until then.
    case tooLate(Duration)
  }

  static let maxRedirectWait = Duration.seconds(30)

  /// Reserves the time of the request to an origin that a redirect of the job leads to.
  mutating func redirect(
    _ id: JobID, to origin: Origin, crawlDelay: Duration?, now: Instant
  ) -> RedirectTurn {
    latest = now
    let slot = admit(origin).slot
    defer { forgetIfIdle(slot) }
    setCrawlDelay(crawlDelay, at: slot)
    let start = max(now, origins[slot].nextStart ?? now)
    let wait = now.duration(to: start)
    guard wait <= Self.maxRedirectWait, jobs[id].map({ hasSubscriber(of: $0, waitingPast: start) }) ?? true else {
      return .tooLate(wait)
    }
    pace(slot, after: start)
    reconsider(slot)
    guard wait > .zero else { return .now }
    addTimer(.redirect(id), at: start)
    return .later
  }

  /// Sets the minimum time between two starts that the origin of a job asks for.
  mutating func setCrawlDelay(_ delay: Duration?, forOriginOf id: JobID) {
    if let slot = jobs[id]?.origin { setCrawlDelay(delay, at: slot) }
  }

  private mutating func setCrawlDelay(_ delay: Duration?, at slot: Int32) {
    guard delay != origins[slot].crawlDelay else { return }
    origins[slot].crawlDelay = delay
    checkDeadlines(at: slot)
  }

  /// The error for a load that cannot wait until the rate of its origin allows the next attempt.
  func rateError(of id: JobID, _ hold: Hold) -> LoadError {
    guard let slot = jobs[id]?.origin else { preconditionFailure("a load waits for a job") }
    return .rate(
      of: origins[slot].origin, origins[slot].crawlDelay, allows: "it", in: latest.duration(to: hold.until))
  }

  /// Whether the origin of the job has a rate.
  func hasRate(_ id: JobID) -> Bool { jobs[id].flatMap { interval(of: $0.origin) } != nil }

  /// The minimum time between two requests; nil without a rate.
  func interval(of slot: Int32) -> Duration? {
    let interval = max(limits.startInterval ?? .zero, origins[slot].crawlDelay ?? .zero)
    return interval > .zero ? interval : nil
  }

  /// Lets no other request to the origin start for some time after one, if the origin has a rate.
  mutating func pace(_ slot: Int32, after start: Instant) {
    guard let interval = interval(of: slot) else { return }
    let next = start.advanced(by: interval)
    origins[slot].nextStart = next
    addTimer(.release(origins.id(at: slot)), at: next)
    checkDeadlines(at: slot)
  }

  /// Moves the next request to the job's origin by the time at which the request of the job was really sent, later than
  /// its start: the connection, or many other starts, may have taken a while.
  mutating func requestSent(by id: JobID, at sent: Instant) {
    guard let slot = jobs[id]?.origin, let interval = interval(of: slot) else { return }
    let next = sent.advanced(by: interval)
    guard next > latest, next > origins[slot].nextStart ?? latest else { return }
    pace(slot, after: sent)
    reconsider(slot)
  }
}
