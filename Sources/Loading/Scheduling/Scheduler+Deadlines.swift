internal import Platform
internal import Threads

/// The loads that end before their deadline, because they cannot be served by then.
///
/// The rule: while it is known that the next attempt of a job cannot start before some time, those of its loads that
/// cannot wait until then end at once, with the reason for the wait. They are found whenever that time becomes later,
/// or a load or a job is added.
extension Scheduler {
  /// A time before which the next attempt of a job cannot start.
  struct Hold {
    enum Reason { case origin, retry, rate }

    let until: Instant
    let reason: Reason
    /// Whether no load can wait for so long.
    var isTooLong = false

    fileprivate static func later(_ one: Hold?, _ other: Hold?) -> Hold? {
      guard let one, let other else { return one ?? other }
      return other.until > one.until ? other : one
    }
  }

  /// The shortest time between two requests that holds an origin. A shorter one would end loads only a little early,
  /// and cost a check for each request.
  private static let minPace = Duration.seconds(1)
  /// The longest wait for a `Crawl-delay`, which a site may set to any value: that for a Retry-After.
  private static let maxCrawlWait = OriginHealth.maxSuspension

  /// The hold of a job; nil if it may start now, or the time at which it may is unknown.
  func hold(of slot: Int32) -> Hold? { hold(of: slot, hold(ofOrigin: jobs[slot].origin)) }

  private func hold(of slot: Int32, _ holdOfOrigin: Hold?) -> Hold? {
    switch jobs[slot].phase {
    case .waiting, .awaitingPermission: holdOfOrigin
    case .backingOff: Hold.later(holdOfOrigin, jobs.due[slot].map { Hold(until: $0, reason: .retry) })
    case .lookingUp, .active, .storing, .awaitingPeer, .awaitingCache, .awaitingFile, .readingFile: nil
    }
  }

  private func hold(ofOrigin slot: Int32) -> Hold? {
    let suspension = origins[slot].health.until.map { Hold(until: $0, reason: .origin) }
    guard let next = origins[slot].nextStart, let interval = interval(of: slot), interval >= Self.minPace else {
      return suspension
    }
    let isTooLong = min(origins[slot].crawlDelay ?? .zero, latest.duration(to: next)) > Self.maxCrawlWait
    return Hold.later(suspension, Hold(until: next, reason: .rate, isTooLong: isTooLong))
  }

  func hasSubscriber(of job: Job, waitingPast start: Instant) -> Bool {
    job.subscribers.elements(in: subscriberLinks).contains { subscribers[$0].deadline.map { $0 > start } ?? true }
  }

  private func isTooLate(_ subscriber: Int32, for hold: Hold) -> Bool {
    hold.isTooLong || subscribers[subscriber].deadline.map { $0 <= hold.until } ?? false
  }

  /// Whether `takeTooLate` will return the load, as things stand.
  func isTooLate(_ id: LoadID) -> Bool { subscribers[id]?.isTooLate ?? false }

  /// Records the load in a slot if it cannot wait. Returns whether it cannot.
  @discardableResult
  mutating func checkDeadline(of subscriber: Int32, _ hold: Hold) -> Bool {
    guard isTooLate(subscriber, for: hold) else { return false }
    if !subscribers[subscriber].isTooLate {
      subscribers[subscriber].isTooLate = true
      jobs.tooLate.append(subscribers.id(at: subscriber))
    }
    return true
  }

  /// Records those loads of a job that cannot wait.
  mutating func checkDeadlines(of id: JobID) {
    guard jobs.contains(id), let hold = hold(of: id.slot) else { return }
    for subscriber in jobs[id.slot].subscribers.elements(in: subscriberLinks) { checkDeadline(of: subscriber, hold) }
  }

  /// Has the loads of an origin checked, after it has been held for longer. A burst of refusals costs one check.
  mutating func checkDeadlines(at slot: Int32) {
    guard let hold = hold(ofOrigin: slot) else { return }
    guard hold.isTooLong || origins[slot].earliestDeadline.map({ $0 <= hold.until }) ?? false else { return }
    origins.unchecked.insert(origins.id(at: slot))
  }

  private mutating func findTooLate(at slot: Int32) {
    let holdOfOrigin = hold(ofOrigin: slot)
    var earliest: Instant?
    for job in origins[slot].jobs.elements(in: jobs.links) {
      let hold = hold(of: job, holdOfOrigin)
      for subscriber in jobs[job].subscribers.elements(in: subscriberLinks) {
        if let hold, checkDeadline(of: subscriber, hold) { continue }
        if let deadline = subscribers[subscriber].deadline { earliest = min(earliest ?? deadline, deadline) }
      }
    }
    origins[slot].earliestDeadline = earliest
  }

  mutating func deadlineAdded(_ deadline: Instant, at slot: Int32) {
    origins[slot].earliestDeadline = min(origins[slot].earliestDeadline ?? deadline, deadline)
  }

  /// Returns the loads that cannot wait until their jobs may start. They are still subscribed: the caller must end
  /// each, or have the deadlines of its job checked again. Call `expired` before.
  mutating func takeTooLate() -> [(load: LoadID, job: JobID, hold: Hold)] {
    for id in origins.unchecked.sorted(by: { $0.serial < $1.serial }) { findTooLate(at: id.slot) }
    defer { (jobs.tooLate, origins.unchecked) = ([], []) }
    return jobs.tooLate.compactMap { id in
      guard let subscriber = subscribers[id] else { return nil }
      subscribers[id.slot].isTooLate = false
      if let deadline = subscriber.deadline { deadlineAdded(deadline, at: jobs[subscriber.job].origin) }
      guard let hold = hold(of: subscriber.job), isTooLate(id.slot, for: hold) else { return nil }
      return (id, jobs.id(at: subscriber.job), hold)
    }
  }
}
