internal import HTTPTypes

/// What the origins have to do with it: which may start a transfer, and why another may not.
extension Scheduler {
  /// A transfer has ended, or is known to be answered: takes note of what that tells of its origin. The job stays
  /// active; `finish`, `retry` or `end` comes next, or another transfer in its place.
  ///
  /// - Parameters:
  ///   - error: what becomes of the loads that wait for the origin if this shows that it is down.
  ///   - isAnswered: whether an answer to another has begun. Asked where this has not told.
  /// - Returns: the jobs that waited for an origin that is down now: each is to be ended, with that error.
  mutating func note(
    _ signal: TransferSignal, by id: JobID, isHTTP2: Bool = false, error: LoadError? = nil,
    now: ContinuousClock.Instant, random: inout some RandomNumberGenerator,
    isAnswered: (JobID) -> Bool = { _ in false }
  ) -> [JobID] {
    guard let job = jobs[id], job.phase == .active else { return [] }
    let seat = Int(job.seat)
    var signal = signal
    if signal == .unresponsive { jobs[id.slot].hasTimedOut = true }
    if [.closed, .unreachable, .unresponsive].contains(signal), !isNews(failureOf: running[seat], isAnswered) {
      signal = signal == .closed ? .broken : .inconclusive
    }
    if signal.isAnswer { running[seat].isAnswered = true }
    if isHTTP2, !origins[job.origin].isHTTP2 {
      origins[job.origin].isHTTP2 = true
      origins[job.origin].window.setBounds(limits.window(isHTTP2: true))
    }
    let isDown = note(signal, at: job.origin, by: running[seat], error, now: now, random: &random)
    running[seat].epoch = origins[job.origin].health.epoch
    return isDown ? backlog.jobs(of: job.origin).map { jobs.id(at: $0) } : []
  }

  /// Whether it tells something of the origin that a transfer was not answered. It does not where the origin has been
  /// heard of since the transfer started, or is answering another.
  private func isNews(failureOf transfer: Running, _ isAnswered: (JobID) -> Bool) -> Bool {
    let origin = jobs[transfer.job].origin
    return transfer.number > origins[origin].lastWord
      && !running.contains {
        $0.job != transfer.job && jobs[$0.job].origin == origin && ($0.isAnswered || isAnswered(jobs.id(at: $0.job)))
      }
  }

  /// Takes note of how it went with an origin that a redirect led to.
  mutating func note(
    _ signal: TransferSignal, at origin: Origin, now: ContinuousClock.Instant, random: inout some RandomNumberGenerator
  ) {
    let slot = admit(origin).slot
    let health = origins[slot].health
    // Nobody knows when the request was sent: while it is suspended, it was before.
    let epoch = health.until == nil ? health.epoch : health.epoch &- 1
    let transfer = Running(job: -1, number: startCount + 1, since: Moment(now), epoch: epoch)
    _ = note(signal, at: slot, by: transfer, nil, now: now, random: &random)
    forgetIfIdle(slot)
  }

  /// - Returns: whether the origin is found to be down.
  private mutating func note(
    _ signal: TransferSignal, at slot: Int32, by transfer: Running, _ error: LoadError?, now: ContinuousClock.Instant,
    random: inout some RandomNumberGenerator
  ) -> Bool {
    latest = Moment(now)
    let before = origins[slot].health
    let consequence = origins[slot].health.note(
      signal, epoch: transfer.epoch, startedAt: transfer.since, now: now, random: &random)
    let health = origins[slot].health
    switch consequence {
    case .none: break
    case .congested:
      guard transfer.number > origins[slot].lastShrink else { break }
      origins[slot].lastShrink = startCount
      origins[slot].window.refused(active: max(1, origins[slot].active), at: now)
    case .restarted: origins[slot].window = ConcurrencyWindow(limits.window(isHTTP2: origins[slot].isHTTP2))
    }
    if let until = health.until, until != before.until {
      addTimer(.release(origins.id(at: slot)), at: until)
      noteOutage(slot)
    }
    reconsider(slot)
    if signal.isAnswer { origins[slot].lastWord = startCount }
    if signal.isAnswer { networkAnswered() }
    let isDown = health.isDown && !before.isDown
    if isDown { origins[slot].failure = error }
    noteHealth(slot)
    return isDown
  }

  /// A probe changes nothing that is worth telling: its end does.
  private mutating func noteHealth(_ slot: Int32) {
    let health = origins[slot].stateOfHealth
    guard health != .probing, health != origins[slot].toldHealth else { return }
    origins[slot].toldHealth = health
    var state = state(of: slot, waiting: backlog.count(of: slot), isElsewhere: false)
    state.reason = origins[slot].health.reason
    healthChanges.append(state)
  }

  mutating func takeHealthChanges() -> [OriginState] {
    defer { healthChanges = [] }
    return healthChanges
  }

  /// What the loads of a job end with while its origin is down; nil while it is not.
  func originFailure(of id: JobID) -> LoadError? {
    guard let slot = jobs[id]?.origin, origins[slot].health.isDown else { return nil }
    if let failure = origins[slot].failure { return failure }
    // Transfers that began elsewhere have shown it: redirects led to it.
    var error = LoadError(.connect, "\(origins[slot].origin.hostAndPort) does not answer")
    error.isOriginDown = true
    return error
  }

  // MARK: - The machine's own network

  /// When nothing has been heard of any origin since the first failure of one, the fault may be on this side: a cable,
  /// a laptop that slept. Each of those origins gets a probe as soon as one answers.
  private mutating func noteOutage(_ slot: Int32) {
    guard let since = origins[slot].health.failingSince else { return }
    if lastHeard.map({ $0 < since }) ?? true { suspectedLocalOutage.insert(origins.id(at: slot)) }
  }

  /// O(1) but for the first answer after a time without any.
  private mutating func networkAnswered() {
    lastHeard = latest
    guard !suspectedLocalOutage.isEmpty else { return }
    let suspected = suspectedLocalOutage.sorted { $0.serial < $1.serial }
    suspectedLocalOutage = []
    for id in suspected where origins[id.slot].health.failingSince != nil {
      guard let until = origins[id.slot].health.until else { continue }
      _ = origins[id.slot].health.release(at: until)
      reconsider(id.slot)
      if backlog.count(of: id.slot) > 0 { askForName(of: id.slot) }
    }
  }

  /// Whether it is worth knowing that the job's transfer is being answered, before it has ended.
  func wantsFirstByteSignal(of id: JobID) -> Bool {
    guard let job = jobs[id], job.phase == .active else { return false }
    return !suspectedLocalOutage.isEmpty
      || origins[job.origin].health.isChanged(byAnswerIn: running[Int(job.seat)].epoch)
  }

  // MARK: - Quiet transfers

  /// How long a transfer counts for the window of all without an answer. A lost packet at the beginning costs a second
  /// (RFC 6298 section 2.1); from then on it is not the machine that it waits for, and others can have its place.
  static let patience = Duration.seconds(1)

  /// Looks which transfers have become quiet. O(1) for each transfer that starts.
  ///
  /// - Parameter isAnswered: whether an answer has begun; nil where there is no request yet. Asked where `note` has not
  ///   told.
  mutating func findQuiet(at now: ContinuousClock.Instant, isAnswered: (JobID) -> Bool?) {
    latest = Moment(now)
    while let first = unanswered.first, first.until <= latest {
      unanswered.popFirst()
      let (id, number) = (first.id, first.number)
      guard let job = jobs[id], job.phase == .active, case let seat = Int(job.seat), running[seat].number == number,
        !running[seat].isAnswered
      else { continue }
      switch isAnswered(id) {
      case true?: running[seat].isAnswered = true
      case nil: unanswered.append((id, number, Moment(now.advanced(by: Self.patience))))
      case false?:
        running[seat].isQuiet = true
        quietCount += 1
      }
    }
  }

  /// The transfers that count for the window of all.
  var countedActive: Int { running.count - quietCount }

  /// Whether a transfer more is within the limits for all. Those that do not count may be as many as those that do.
  var hasFreeSlot: Bool {
    let most = min(limits.mostTransfers, 2 * window.size)
    return countedActive < window.size && running.count < max(most, 1) && finishingCount < limits.maxFinishing
  }

  // MARK: - Starting

  /// Whether the origin may start a job may have changed.
  mutating func reconsider(_ slot: Int32) { backlog.setEligible(mayStart(at: slot), slot) }

  /// Whether the origin's name, health, window and rate let a transfer start.
  func mayStart(at slot: Int32) -> Bool {
    let record = origins[slot]
    return record.name != .asked && record.active < record.health.allowance(window: record.window.size)
      && record.nextStart == nil
  }

  // MARK: - Names

  /// The name of an origin is asked for ahead of its first transfer, once for all of its jobs.
  mutating func askForName(of slot: Int32) {
    let record = origins[slot]
    guard record.name == .unknown, record.active == 0, record.health.until == nil, lookUpCount < limits.maxLookUps
    else { return }
    origins[slot].name = .asked
    lookUpCount += 1
    namesToAsk.append(origins.id(at: slot))
    reconsider(slot)
  }

  /// The origins whose names are to be looked up now; `nameFound` or `nameUnanswered` has to follow for each.
  mutating func takeNamesToAsk() -> [(id: OriginID, origin: Origin)] {
    var asked: [(id: OriginID, origin: Origin)] = []
    for id in namesToAsk {
      if let record = origins[id] { asked.append((id, record.origin)) }
    }
    namesToAsk = []
    return asked
  }

  /// There are addresses, or there is no such name, which the transfers tell.
  ///
  /// - Parameter duration: how long the look-up took; zero if the answer was known.
  mutating func nameFound(_ id: OriginID, after duration: Duration = .zero) {
    guard endLookUp(id, as: .found) else { return }
    if duration > .zero { origins[id.slot].nameDuration = duration }
    reconsider(id.slot)
  }

  /// How long the name was looked up for the job's transfer, which is the first of its origin; else nil.
  mutating func takeNameDuration(for id: JobID) -> Duration? {
    guard let slot = jobs[id]?.origin, let duration = origins[slot].nameDuration else { return nil }
    origins[slot].nameDuration = nil
    return duration
  }

  /// No name server has answered. That is a failed probe of the origin that costs no job an attempt.
  ///
  /// - Parameter error: what becomes of the loads that wait for the origin if this shows that it is down.
  /// - Returns: the jobs that waited for an origin that is down now: each is to be ended, with that error.
  mutating func nameUnanswered(
    _ id: OriginID, error: LoadError, now: ContinuousClock.Instant, random: inout some RandomNumberGenerator
  ) -> [JobID] {
    guard endLookUp(id, as: .unknown) else { return [] }
    let probe = Running(
      job: -1, number: startCount + 1, since: Moment(now), epoch: origins[id.slot].health.epoch)
    let isDown = note(.unreachable, at: id.slot, by: probe, error, now: now, random: &random)
    defer { forgetIfIdle(id.slot) }
    return isDown ? backlog.jobs(of: id.slot).map { jobs.id(at: $0) } : []
  }

  private mutating func endLookUp(_ id: OriginID, as name: Name) -> Bool {
    guard origins[id]?.name == .asked else { return false }
    origins[id.slot].name = name
    lookUpCount -= 1
    return true
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
    var record = OriginRecord(origin: origin, window: ConcurrencyWindow(limits.window(isHTTP2: false)))
    if origin.isAddress { record.name = .found }
    origins.insert(record, at: id)
    byOrigin[origin] = id
    backlog.admit(id.slot)
    return id
  }

  /// How long it is remembered how an origin was when its last job has ended. Else a host that loads one image after
  /// the other would try each of them at a dead port, and each list would have to find the windows again.
  private static let memory = Duration.seconds(600)
  /// How many such origins there are at most.
  static let maxRemembered = 10_000

  mutating func forgetIfIdle(_ slot: Int32) {
    let record = origins[slot]
    guard record.jobs == 0, record.forgetAt == nil else { return }
    let isAsNew = record.health.isClean && !record.window.hasLearned && !record.isHTTP2 && record.nextStart == nil
    guard !isAsNew, rememberedCount < Self.maxRemembered else { return forget(slot) }
    let due = max(Moment(latest.instant.advanced(by: Self.memory)), record.health.until ?? latest)
    origins[slot].forgetAt = due
    rememberedCount += 1
    addTimer(.forget(origins.id(at: slot)), at: due)
  }

  private mutating func forget(_ slot: Int32) {
    let id = origins.id(at: slot)
    suspectedLocalOutage.remove(id)
    if origins[slot].forgetAt != nil { rememberedCount -= 1 }
    if origins[slot].name == .asked { lookUpCount -= 1 }
    byOrigin[origins[slot].origin] = nil
    origins.remove(id)
    originIDs.giveBack(id)
  }

  mutating func forget(_ id: OriginID, dueAt moment: Moment) {
    guard origins[id]?.forgetAt == moment else { return }
    forget(id.slot)
  }

  mutating func release(_ id: OriginID, dueAt moment: Moment) {
    guard origins.contains(id) else { return }
    _ = origins[id.slot].health.release(at: moment)
    if let next = origins[id.slot].nextStart, next <= moment { origins[id.slot].nextStart = nil }
    reconsider(id.slot)
    if backlog.count(of: id.slot) > 0 { askForName(of: id.slot) }
  }

  // MARK: - Looking

  /// The busiest origins, the busiest first, of all that have jobs or get nothing.
  ///
  /// - Parameter heldBack: what waits outside, to be counted in.
  func originStates(atMost limit: Int = .max, heldBack: [Origin: Int] = [:]) -> [OriginState] {
    var busiest: [OriginState] = []
    let putOff = putOff
    for id in origins.ids {
      let record = origins[id.slot]
      guard record.jobs > 0 || record.health.until != nil else { continue }
      let waiting =
        backlog.count(of: id.slot) + putOff.byOrigin[id.slot, default: 0] + heldBack[record.origin, default: 0]
      let state = state(of: id.slot, waiting: waiting, isElsewhere: putOff.elsewhere.contains(id.slot))
      // Of ten thousand origins hardly one gets past the last of the hundred that are asked for.
      if busiest.count >= limit {
        guard let last = busiest.last, state.precedes(last) else { continue }
        busiest.removeLast()
      }
      busiest.insert(state, at: busiest.partitioningIndex { state.precedes($0) })
    }
    return busiest
  }

  private func state(of slot: Int32, waiting: Int, isElsewhere: Bool) -> OriginState {
    let record = origins[slot]
    return OriginState(
      origin: record.origin, active: record.active, waiting: waiting, window: record.window.size,
      health: record.stateOfHealth, heldUntil: record.health.until?.instant,
      reason: waiting > 0 ? reason(slot, isElsewhere: isElsewhere) : nil)
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
    let (record, active) = (origins[slot], origins[slot].active)
    if record.health.state != .healthy, let reason = record.health.reason { return reason }
    if isPaused { return .paused }
    if backlog.count(of: slot) == 0 { return isElsewhere ? .otherWorker : .retry }
    if record.name == .asked { return .resolving }
    if active >= record.window.size { return .perHostLimit }
    if record.nextStart != nil { return .rate }
    return hasFreeSlot && !backlog.waitsForDecoders(slot) ? nil : .concurrencyLimit
  }
}

extension Scheduler.OriginRecord {
  fileprivate var stateOfHealth: OriginState.Health {
    switch health.state {
    case .healthy: window.isRefused ? .limited : .healthy
    case .suspended: .suspended
    case .probing: .probing
    case .down: .down
    }
  }
}

extension OriginHealth {
  fileprivate var reason: WaitReason? {
    switch cause {
    case .retryAfter: .retryAfter
    case .unavailable: .unavailable
    case .unreachable: .unreachable
    case .unresponsive: .unresponsive
    case nil: nil
    }
  }
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
