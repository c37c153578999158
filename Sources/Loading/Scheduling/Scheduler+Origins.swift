internal import HTTPTypes

/// Origins: which of them may start a transfer, and for how long they are remembered.
extension Scheduler {
  /// A transfer has ended, or is known to be answered: takes note of what that tells of its origin. The job stays
  /// active; `finish`, `retry` or `end` comes next, or another transfer in its place.
  ///
  /// - Parameters:
  ///   - error: the end of the loads that wait for the origin. Made only if this shows that it is down.
  ///   - isAnswered: whether an answer to another has begun. Asked where this has not told.
  /// - Returns: the jobs that waited for an origin that is down now: each is to be ended, with that error.
  mutating func note(
    _ signal: TransferSignal, by id: JobID, isHTTP2: Bool = false, error: @autoclosure () -> LoadError? = nil,
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
    let waiting = note(signal, at: job.origin, by: running[seat], error(), now: now, random: &random)
    running[seat].epoch = origins[job.origin].health.epoch
    return waiting
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
    let transfer = Running(job: -1, number: startCount + 1, since: CompactInstant(now), epoch: epoch)
    _ = note(signal, at: slot, by: transfer, nil, now: now, random: &random)
    forgetIfIdle(slot)
  }

  /// - Returns: the jobs that waited for the origin if it is down now.
  mutating func note(
    _ signal: TransferSignal, at slot: Int32, by transfer: Running, _ error: @autoclosure () -> LoadError?,
    now: ContinuousClock.Instant, random: inout some RandomNumberGenerator
  ) -> [JobID] {
    latest = CompactInstant(now)
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
    if signal.isAnswer {
      origins[slot].lastWord = startCount
      networkAnswered()
    }
    noteHealth(slot)
    guard health.isDown, !before.isDown else { return [] }
    origins[slot].failure = error()
    return queue.jobs(of: slot).map { jobs.id(at: $0) }
  }

  /// A probe changes nothing that is worth telling: its end does.
  private mutating func noteHealth(_ slot: Int32) {
    let health = origins[slot].stateOfHealth
    guard health != .probing, health != origins[slot].toldHealth else { return }
    origins[slot].toldHealth = health
    var state = state(of: slot, waiting: queue.count(of: slot), isElsewhere: false)
    state.reason = origins[slot].health.reason
    healthChanges.append(state)
  }

  mutating func takeHealthChanges() -> [OriginState] {
    defer { healthChanges = [] }
    return healthChanges
  }

  /// The error that ends the loads of a job while its origin is down; nil while it is not.
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
      guard let until = origins[id.slot].health.until, origins[id.slot].health.release(at: until) else { continue }
      released(id.slot)
    }
  }

  /// Whether it is worth knowing that the job's transfer is being answered, before it has ended.
  func wantsFirstByteSignal(of id: JobID) -> Bool {
    guard let job = jobs[id], job.phase == .active else { return false }
    return !suspectedLocalOutage.isEmpty
      || origins[job.origin].health.isChanged(byAnswerIn: running[Int(job.seat)].epoch)
  }

  // MARK: - Starting

  /// Whether the origin may start a job may have changed.
  mutating func reconsider(_ slot: Int32) { queue.setEligible(mayStart(at: slot), slot) }

  /// Whether the origin's name, health, window and rate let a transfer start.
  func mayStart(at slot: Int32) -> Bool {
    let record = origins[slot]
    return record.name != .asked && record.active < record.health.allowance(window: record.window.size)
      && record.nextStart == nil
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
    queue.admit(id.slot)
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
    let due = max(CompactInstant(latest.instant.advanced(by: Self.memory)), record.health.until ?? latest)
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

  mutating func forget(_ id: OriginID, dueAt moment: CompactInstant) {
    guard origins[id]?.forgetAt == moment else { return }
    forget(id.slot)
  }

  mutating func release(_ id: OriginID, dueAt moment: CompactInstant) {
    guard origins.contains(id) else { return }
    var isReleased = origins[id.slot].health.release(at: moment)
    if let next = origins[id.slot].nextStart, next <= moment {
      origins[id.slot].nextStart = nil
      isReleased = true
    }
    if isReleased { released(id.slot) }
  }

  /// A suspension, a time of being down or a wait for `--rate` is over.
  private mutating func released(_ slot: Int32) {
    reconsider(slot)
    askForName(of: slot)
  }
}
