internal import HTTPTypes

/// What the origins have to do with it: which may start a transfer, and why another may not.
extension Scheduler {
  /// What becomes of the jobs that wait for an origin when its probe has failed. It stands for an attempt of each.
  struct FailedProbe: Equatable {
    /// Those that have no attempt left, or nobody who would wait for it: each is to be ended, with the probe's error.
    var exhausted: [JobID] = []
    /// Those that go on waiting, with their attempts counted up.
    var retrying: [JobID] = []
    /// How long the origin is held.
    var delay: Duration
  }

  /// A transfer has ended: takes note of how it went with the origin. Its job stays active; `finish`, `retry` or `end`
  /// comes next, or another transfer in its place. That it is being answered may be noted before.
  ///
  /// - Parameter isAnswered: whether an answer to another has begun. Asked where this has not told.
  mutating func note(
    _ contact: Contact, by id: JobID, now: ContinuousClock.Instant, random: inout some RandomNumberGenerator,
    isAnswered: (JobID) -> Bool = { _ in false }
  ) -> FailedProbe? {
    guard let job = jobs[id], job.phase == .active else { return nil }
    let seat = Int(job.seat)
    var contact = contact
    if contact == .unresponsive {
      jobs[id.slot].hasTimedOut = true
      if !isNews(silenceOf: running[seat], isAnswered) { contact = .inconclusive }
    }
    let probeFailed = note(contact, at: job.origin, round: running[seat].round, now: now, random: &random)
    running[seat].round = origins[job.origin].gate.round
    if contact == .answered { running[seat].isAnswered = true }
    if contact == .unresponsive { chooseUntried(of: job.origin) }
    guard probeFailed, let until = origins[job.origin].gate.hold?.until else { return nil }
    return failWaiting(of: job.origin, until: until, now: now)
  }

  /// Whether it tells something of the origin that a transfer was not answered. It does not where the origin has been
  /// heard of since the transfer started, was found silent or held since (many of them at once are one), or is
  /// answering another.
  private func isNews(silenceOf transfer: Running, _ isAnswered: (JobID) -> Bool) -> Bool {
    let origin = jobs[transfer.job].origin
    return transfer.number > origins[origin].lastWord && transfer.round == origins[origin].gate.round
      && !running.contains {
        $0.job != transfer.job && jobs[$0.job].origin == origin && ($0.isAnswered || isAnswered(jobs.id(at: $0.job)))
      }
  }

  /// Has the first of the jobs that wait for a silent origin and have been tried least be its next: the first in line
  /// may be just those that it never answers. O(n) in the jobs that wait for the origin.
  private mutating func chooseUntried(of origin: Int32) {
    let waiting = backlog.jobs(of: origin)
    let leastTried = waiting.map { jobs[$0].attempt }.min()
    let untried = waiting.filter { jobs[$0].attempt == leastTried }
    guard let priority = untried.first.map({ jobs[$0].priority }) else { return }
    let urgent = untried.prefix { jobs[$0].priority == priority }
    guard let next = limits.order == .fifo ? urgent.first : urgent.last else { return }
    backlog.choose(next, of: origin)
  }

  /// Takes note of how it went with an origin that a redirect led to.
  mutating func note(
    _ contact: Contact, at origin: Origin, now: ContinuousClock.Instant, random: inout some RandomNumberGenerator
  ) {
    let slot = admit(origin).slot
    let gate = origins[slot].gate
    // Nobody knows when the request was sent: while there is a hold, it was before.
    let round = gate.hold == nil ? gate.round : gate.round &- 1
    _ = note(contact, at: slot, round: round, now: now, random: &random)
    forgetIfIdle(slot)
  }

  private mutating func note(
    _ contact: Contact, at slot: Int32, round: UInt32, now: ContinuousClock.Instant,
    random: inout some RandomNumberGenerator
  ) -> Bool {
    latest = Moment(now)
    let (before, wasResponsive) = (origins[slot].gate.hold?.until, origins[slot].gate.isResponsive)
    let probeFailed = origins[slot].gate.note(
      contact, round: round, limit: limits.maxPerOrigin, now: now, random: &random)
    let until = origins[slot].gate.hold?.until
    if let until, until != before {
      addTimer(.release(origins.id(at: slot)), at: until)
      noteCutOff(slot)
    }
    if wasResponsive && !origins[slot].gate.isResponsive { silenceDue = min(silenceDue, latest) }
    reconsider(slot)
    if contact.isAnswer || contact == .unresponsive { origins[slot].lastWord = startCount }
    if contact.isAnswer { hear() }
    return probeFailed
  }

  // MARK: - The machine's own network

  /// When nothing has been heard of any origin since the first failure of one, the fault may be on this side: a cable,
  /// a laptop that slept. None of those origins need then be left alone any longer once one answers.
  private mutating func noteCutOff(_ slot: Int32) {
    let gate = origins[slot].gate
    guard gate.hold?.cause == .unreachable, let since = gate.unreachableSince else { return }
    if lastHeard.map({ $0 < since }) ?? true { cutOff.insert(origins.id(at: slot)) }
  }

  /// O(1) but for the first answer after a time without any.
  private mutating func hear() {
    lastHeard = latest
    guard !cutOff.isEmpty else { return }
    let reachable = cutOff.sorted { $0.serial < $1.serial }
    cutOff = []
    for id in reachable {
      if let hold = origins[id.slot].gate.hold, hold.cause == .unreachable { release(id, dueAt: hold.until) }
    }
  }

  /// Whether it is worth knowing that the job's transfer is being answered, before it has ended.
  func wantsEarlyWord(of id: JobID) -> Bool {
    guard let job = jobs[id], job.phase == .active else { return false }
    return !cutOff.isEmpty || origins[job.origin].gate.isChanged(byAnswerIn: running[Int(job.seat)].round)
  }

  /// O(n) in the jobs that wait for the origin. Each is met once for each of its attempts.
  private mutating func failWaiting(
    of origin: Int32, until: Moment, now: ContinuousClock.Instant
  ) -> FailedProbe {
    var result = FailedProbe(delay: now.duration(to: until.instant))
    for slot in backlog.jobs(of: origin) {
      let job = jobs[slot]
      if job.attempt <= job.key.retries, hasSubscriber(of: job, waitingPast: until) {
        jobs[slot].attempt += 1
        result.retrying.append(jobs.id(at: slot))
      } else {
        result.exhausted.append(jobs.id(at: slot))
      }
    }
    return result
  }

  /// Whether the origin may start a job may have changed.
  mutating func reconsider(_ slot: Int32) {
    // As long as nobody knows whether it answers at all, it gets a second transfer only where no other origin wants
    // one.
    let comesLast = origins[slot].active > 0 && !origins[slot].gate.isResponsive
    backlog.setStanding(!mayStart(at: slot) ? .shut : comesLast ? .last : .open, of: slot)
  }

  /// Whether the origin's own limit, allowance and hold let a transfer start.
  func mayStart(at slot: Int32) -> Bool {
    let gate = origins[slot].gate
    return gate.hold == nil && origins[slot].active < gate.allowance(limit: limits.maxPerOrigin)
  }

  // MARK: - Coming and going

  /// The origin's record, for a job that is about to be there.
  mutating func admit(_ origin: Origin) -> OriginID {
    if let known = byOrigin[origin] {
      if origins[known.slot].forgetAt != nil {
        origins[known.slot].forgetAt = nil
        rememberedCount -= 1
      }
      return known
    }
    let id = originIDs.take()
    origins.insert(OriginRecord(origin: origin), at: id)
    byOrigin[origin] = id
    backlog.admit(id.slot)
    return id
  }

  /// How long it is remembered how an origin was when its last job has ended and no hold is in force. Else a host that
  /// loads one image after the other would try each of them at a dead port.
  private static let memory = Duration.seconds(60)
  /// How many such origins there are at most.
  static let mostRemembered = 1000

  mutating func forgetIfIdle(_ slot: Int32) {
    let record = origins[slot]
    guard record.jobs == 0, record.gate.hold == nil, record.forgetAt == nil else { return }
    guard !record.gate.isAtRest, rememberedCount < Self.mostRemembered else { return forget(slot) }
    let due = Moment(latest.instant.advanced(by: Self.memory))
    origins[slot].forgetAt = due
    rememberedCount += 1
    addTimer(.forget(origins.id(at: slot)), at: due)
  }

  private mutating func forget(_ slot: Int32) {
    let id = origins.id(at: slot)
    cutOff.remove(id)
    if origins[slot].forgetAt != nil { rememberedCount -= 1 }
    byOrigin[origins[slot].origin] = nil
    origins.remove(id)
    originIDs.giveBack(id)
  }

  mutating func forget(_ id: OriginID, dueAt moment: Moment) {
    guard origins[id]?.forgetAt == moment else { return }
    forget(id.slot)
  }

  mutating func release(_ id: OriginID, dueAt moment: Moment) {
    guard origins.contains(id), origins[id.slot].gate.release(at: moment) else { return }
    reconsider(id.slot)
    forgetIfIdle(id.slot)
  }

  // MARK: - Looking

  /// The busiest origins, the busiest first, of all that have jobs or a hold.
  ///
  /// - Parameter heldBack: what waits outside, to be counted in.
  func originStates(atMost limit: Int = .max, heldBack: [Origin: Int] = [:]) -> [OriginState] {
    var busiest: [OriginState] = []
    let putOff = putOff
    for id in origins.ids {
      let record = origins[id.slot]
      guard record.jobs > 0 || record.gate.hold != nil else { continue }
      let waiting =
        backlog.count(of: id.slot) + putOff.byOrigin[id.slot, default: 0] + heldBack[record.origin, default: 0]
      let state = OriginState(
        origin: record.origin, active: record.active, waiting: waiting, heldUntil: record.gate.hold?.until.instant,
        reason: waiting > 0 ? reason(id.slot, isElsewhere: putOff.elsewhere.contains(id.slot)) : nil)
      // Of ten thousand origins hardly one gets past the last of the hundred that are asked for.
      if busiest.count >= limit {
        guard let last = busiest.last, state.precedes(last) else { continue }
        busiest.removeLast()
      }
      busiest.insert(state, at: busiest.partitioningIndex { state.precedes($0) })
    }
    return busiest
  }

  /// The jobs that wait and are not in the backlog.
  struct PutOff {
    var byPriority = PriorityCounts()
    var byOrigin: [Int32: Int] = [:]
    /// The origins of those that another worker transfers.
    var elsewhere: Set<Int32> = []
  }

  /// Those that wait for their next attempt or for another worker. O(n) in all jobs.
  var putOff: PutOff {
    var counts = PutOff()
    guard backingOffCount + elsewhereCount > 0 else { return counts }
    for id in jobs.ids where [.backingOff, .elsewhere].contains(jobs[id.slot].phase) {
      counts.byPriority[jobs[id.slot].priority] += 1
      counts.byOrigin[jobs[id.slot].origin, default: 0] += 1
      if jobs[id.slot].phase == .elsewhere { counts.elsewhere.insert(jobs[id.slot].origin) }
    }
    return counts
  }

  /// Why jobs wait for the origin; nil when they start as soon as they are asked for.
  private func reason(_ slot: Int32, isElsewhere: Bool) -> WaitReason? {
    let (gate, active) = (origins[slot].gate, origins[slot].active)
    switch gate.hold?.cause {
    case .retryAfter: return .retryAfter
    case .unavailable: return .unavailable
    case .unreachable: return .unreachable
    case nil: break
    }
    if isPaused { return .paused }
    if backlog.count(of: slot) == 0 { return isElsewhere ? .otherWorker : .retry }
    let allowance = gate.allowance(limit: limits.maxPerOrigin)
    if active >= allowance {
      if gate.isCircuitOpen { return .unreachable }
      return allowance < limits.maxPerOrigin ? .readmission : .perHostLimit
    }
    return hasFreeSlot && !backlog.waitsForDecoders(slot) ? nil : .concurrencyLimit
  }

  /// Whether a transfer more is within the limits for all.
  var hasFreeSlot: Bool { activeCount < limits.maxConcurrent && finishingCount < limits.maxFinishing }
}

extension OriginState {
  /// Busier, and of two that are as busy the first by name.
  fileprivate func precedes(_ other: OriginState) -> Bool {
    let (own, others) = (active + waiting, other.active + other.waiting)
    guard own == others else { return own > others }
    return (origin.host, origin.port, origin.scheme) < (other.origin.host, other.origin.port, other.origin.scheme)
  }
}

extension Array {
  /// The first index whose element, like all after it, is as `belongsAfter` says. O(log n).
  fileprivate func partitioningIndex(where belongsAfter: (Element) -> Bool) -> Int {
    var (low, high) = (startIndex, endIndex)
    while low < high {
      let middle = low + (high - low) / 2
      if belongsAfter(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
