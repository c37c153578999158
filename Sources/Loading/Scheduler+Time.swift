/// What is due when.
extension Scheduler {
  /// How many timers there are, those included that have lost their meaning.
  var timerCount: Int { timers.count }

  /// When `expired` or `makeWay` has something to do next.
  var nextTimer: ContinuousClock.Instant? {
    // What is not after the latest look has been looked at.
    let silence = isShortOfSlots && silenceDue > latest ? silenceDue : .never
    let next = min(timers.next ?? .never, silence)
    return next == .never ? nil : next.instant
  }

  /// Lets due retries and held origins in again.
  ///
  /// - Returns: the loads whose deadline passed. They are still subscribed: the caller makes each `leave`.
  mutating func expired(at now: ContinuousClock.Instant) -> [LoadID] {
    latest = Moment(now)
    var late: [LoadID] = []
    while let (due, timer) = timers.take(dueAt: latest) {
      switch timer {
      case .deadline(let id):
        if subscribers.contains(id) { late.append(id) }
      case .retry(let id):
        guard jobs[id]?.phase == .backingOff else { continue }
        backingOffCount -= 1
        requeue(id.slot)
      case .release(let id): release(id, dueAt: due)
      case .forget(let id): forget(id, dueAt: due)
      }
    }
    return late
  }

  mutating func addTimer(_ timer: Timer, at moment: Moment) {
    timers.add(timer, at: moment)
    // Loads end long before their deadlines: those of the ended are not to pile up.
    guard timers.count > 2 * (subscribers.count + backingOffCount + 2 * origins.count) + 64 else { return }
    timers = timers.filter { isPending($1, at: $0) }
  }

  private func isPending(_ timer: Timer, at moment: Moment) -> Bool {
    switch timer {
    case .deadline(let id): subscribers.contains(id)
    case .retry(let id): jobs.contains(id)
    case .release(let id): origins[id]?.gate.hold?.until == moment
    case .forget(let id): origins[id]?.forgetAt == moment
    }
  }

  func hasSubscriber(of job: Job, waitingPast due: Moment) -> Bool {
    job.subscribers.elements(in: subscriberLinks).contains { subscribers[$0].deadline > due }
  }
}
