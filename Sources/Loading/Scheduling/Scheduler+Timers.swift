internal import Platform
internal import Threads

/// The timers of the scheduler.
extension Scheduler {
  /// The number of timers, including obsolete ones.
  var timerCount: Int { timers.count }

  /// When `expired`, `takeTooLate` or `findQuiet` must be called next.
  var nextTimer: Instant? {
    let isShortOfPermits = !isPaused && transfers.countedActive >= transfers.window.size && queue.hasEligible
    let hasTooLate = !jobs.tooLate.isEmpty || !origins.unchecked.isEmpty
    return [hasTooLate ? latest : nil, timers.next, isShortOfPermits ? transfers.unanswered.first?.until : nil]
      .compactMap(\.self).min()
  }

  struct Expired: Equatable {
    /// The loads whose deadline has passed. They are still subscribed: the caller must unsubscribe each.
    var loads: [LoadID] = []
    /// The jobs whose next attempt is due at an origin that is down: the caller must end each.
    var jobs: [JobID] = []
    /// The jobs whose transfers may follow a redirect now.
    var redirects: [JobID] = []
  }

  /// Handles the due timers: queues retries, releases origins, collects expired loads.
  mutating func expired(at now: Instant) -> Expired {
    latest = now
    var expired = Expired()
    while let (due, timer) = timers.take(dueAt: latest) {
      switch timer {
      case .deadline(let id):
        if subscribers.contains(id) { expired.loads.append(id) }
      case .retry(let id):
        guard jobs[id]?.phase == .backingOff else { continue }
        if isOriginDown(of: id) { expired.jobs.append(id) } else { retryDue(id) }
      case .redirect(let id): if jobs[id]?.phase == .active { expired.redirects.append(id) }
      case .release(let id): release(id, dueAt: due)
      case .forget(let id): forget(id, dueAt: due)
      }
    }
    // After a pause of the process, a later timer may have released the origin.
    for id in expired.jobs where !isOriginDown(of: id) { retryDue(id) }
    expired.jobs.removeAll { jobs[$0]?.phase != .backingOff }
    return expired
  }

  private mutating func retryDue(_ id: JobID) {
    jobs.due[id.slot] = nil
    requeue(id.slot)
  }

  mutating func addTimer(_ timer: Timer, at moment: Instant) {
    timers.add(timer, at: moment)
    // Most loads end long before their deadline: drop the timers of those that have ended.
    guard timers.count > 2 * (subscribers.count + jobs.backingOffCount + 2 * origins.count) + 64 else { return }
    timers = timers.filter { isPending($1, at: $0) }
  }

  private func isPending(_ timer: Timer, at moment: Instant) -> Bool {
    switch timer {
    case .deadline(let id): subscribers.contains(id)
    case .retry(let id), .redirect(let id): jobs.contains(id)
    case .release(let id): origins[id].map { $0.health.until == moment || $0.nextStart == moment } ?? false
    case .forget(let id): origins[id]?.forgetAt == moment
    }
  }
}
