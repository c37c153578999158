internal import HTTPTypes
internal import Platform
internal import Threads

/// Origins: which may start a transfer, and how long their state is kept.
extension Scheduler {
  /// Records the signal that a transfer, ended or just answered, gives about its origin. The job stays active;
  /// `finish`, `retry`, `end` or another transfer for it must follow.
  ///
  /// - Parameters:
  ///   - error: the error for loads that cannot wait for the origin. Evaluated only if the origin is suspended or down
  ///     now.
  ///   - isAnswered: whether another transfer's response has begun. Called for transfers whose answer has not been
  ///     recorded.
  /// - Returns: the jobs that wait for the origin if it is down now. The caller must end each with `originFailure`.
  mutating func record(
    _ signal: TransferSignal, by id: JobID, isHTTP2: Bool = false, error: @autoclosure () -> LoadError? = nil,
    now: Instant, random: inout some RandomNumberGenerator,
    isAnswered: (JobID) -> Bool = { _ in false }
  ) -> [JobID] {
    guard let job = jobs[id], job.phase == .active else { return [] }
    let runningIndex = Int(job.runningIndex)
    var signal = signal
    if signal == .unresponsive { jobs[id.slot].hasTimedOut = true }
    if [.closed, .unreachable, .unresponsive].contains(signal),
      !isNewEvidence(failureOf: transfers.list[runningIndex], isAnswered)
    {
      signal = signal == .closed ? .broken : .inconclusive
    }
    if signal.isAnswer { transfers.list[runningIndex].isAnswered = true }
    if isHTTP2, !origins[job.origin].isHTTP2 {
      origins[job.origin].isHTTP2 = true
      origins[job.origin].window.setBounds(limits.window(isHTTP2: true))
    }
    let waiting = record(signal, at: job.origin, by: transfers.list[runningIndex], error(), now: now, random: &random)
    transfers.list[runningIndex].epoch = origins[job.origin].health.epoch
    return waiting
  }

  /// Whether this failure is new evidence against the origin. It is not if the origin has answered since this transfer
  /// started, or is answering another transfer now.
  private func isNewEvidence(failureOf transfer: RunningTransfers.Transfer, _ isAnswered: (JobID) -> Bool) -> Bool {
    let origin = jobs[transfer.job].origin
    return transfer.number > origins[origin].startsAtLastAnswer
      && !transfers.list.contains {
        $0.job != transfer.job && jobs[$0.job].origin == origin && ($0.isAnswered || isAnswered(jobs.id(at: $0.job)))
      }
  }

  /// Records the signal about an origin that a redirect led to.
  mutating func record(
    _ signal: TransferSignal, at origin: Origin, error: @autoclosure () -> LoadError? = nil, now: Instant,
    random: inout some RandomNumberGenerator
  ) {
    let slot = admit(origin).slot
    let health = origins[slot].health
    // The time of the request is unknown. While the origin is suspended, it was sent before the suspension.
    let epoch = health.until == nil ? health.epoch : health.epoch &- 1
    let transfer = RunningTransfers.Transfer(job: -1, number: transfers.startCount + 1, since: now, epoch: epoch)
    _ = record(signal, at: slot, by: transfer, error(), now: now, random: &random)
    forgetIfIdle(slot)
  }

  /// - Returns: the jobs that wait for the origin if it is down now.
  mutating func record(
    _ signal: TransferSignal, at slot: Int32, by transfer: RunningTransfers.Transfer,
    _ error: @autoclosure () -> LoadError?, now: Instant, random: inout some RandomNumberGenerator
  ) -> [JobID] {
    latest = now
    let before = origins[slot].health
    let consequence = origins[slot].health.record(
      signal, epoch: transfer.epoch, startedAt: transfer.since, now: now, random: &random)
    let health = origins[slot].health
    switch consequence {
    case .none: break
    case .congested:
      guard transfer.number > origins[slot].lastShrink else { break }
      origins[slot].lastShrink = transfers.startCount
      origins[slot].window.refused(active: max(1, origins[slot].active), at: now)
    case .restarted: origins[slot].window = ConcurrencyWindow(limits.window(isHTTP2: origins[slot].isHTTP2))
    }
    if let until = health.until, until != before.until {
      addTimer(.release(origins.id(at: slot)), at: until)
      suspectLocalOutage(slot)
      origins[slot].failure = error()
      checkDeadlines(at: slot)
    }
    reconsider(slot)
    if signal.isAnswer {
      origins[slot].startsAtLastAnswer = transfers.startCount
      networkAnswered()
    }
    reportHealth(slot)
    guard health.isDown, !before.isDown else { return [] }
    return queue.jobs(of: slot).map { jobs.id(at: $0) }
  }

  /// Reports a change of health. The start of a probe is not reported; its outcome is.
  private mutating func reportHealth(_ slot: Int32) {
    let health = origins[slot].stateOfHealth
    guard health != .probing, health != origins[slot].reportedHealth else { return }
    origins[slot].reportedHealth = health
    origins.healthChanges.append(state(of: slot, waiting: queue.count(of: slot), reason: origins[slot].health.reason))
  }

  mutating func takeHealthChanges() -> [OriginState] {
    defer { origins.healthChanges = [] }
    return origins.healthChanges
  }

  /// Whether the origin of a job is down, so that the job must end.
  func isOriginDown(of id: JobID) -> Bool { jobs[id].map { origins[$0.origin].health.isDown } ?? false }

  /// The error for those loads of a job that cannot wait for its origin; nil unless it is suspended or down.
  func originFailure(of id: JobID) -> LoadError? {
    guard let slot = jobs[id]?.origin, let until = origins[slot].health.until else { return nil }
    var error = origins[slot].failure ?? LoadError(.connect, "\(origins[slot].origin.hostAndPort) does not answer")
    error.isOriginDown = origins[slot].health.isDown
    error.retryAfter = latest.duration(to: until)
    return error
  }

  // MARK: - Local outages

  /// Records a possible local outage (a cable, a laptop that slept): if no origin at all has answered since this one
  /// started failing, the fault may be on this machine. As soon as any origin answers, each suspected one gets a probe.
  private mutating func suspectLocalOutage(_ slot: Int32) {
    guard let since = origins[slot].health.failingSince else { return }
    if origins.lastAnswer.map({ $0 < since }) ?? true { origins.suspectedLocalOutage.insert(origins.id(at: slot)) }
  }

  /// Releases the suspected origins for a probe. O(1) except for the first answer after an outage.
  private mutating func networkAnswered() {
    origins.lastAnswer = latest
    guard !origins.suspectedLocalOutage.isEmpty else { return }
    let suspected = origins.suspectedLocalOutage.sorted { $0.serial < $1.serial }
    origins.suspectedLocalOutage = []
    for id in suspected where origins[id.slot].health.failingSince != nil {
      guard let until = origins[id.slot].health.until, origins[id.slot].health.release(at: until) else { continue }
      released(id.slot)
    }
  }

  /// Whether the first byte of the job's response changes anything, so that it should be reported before the transfer
  /// ends.
  func wantsFirstByteSignal(of id: JobID) -> Bool {
    guard let job = jobs[id], job.phase == .active else { return false }
    return !origins.suspectedLocalOutage.isEmpty
      || origins[job.origin].health.isChanged(byAnswerIn: transfers.list[Int(job.runningIndex)].epoch)
  }

  // MARK: - Starting

  /// Updates whether the queue may start a job of the origin.
  mutating func reconsider(_ slot: Int32) { queue.setEligible(mayStart(at: slot), slot) }

  /// Whether the origin's name lookup, health, window and rate permit a transfer to start.
  func mayStart(at slot: Int32) -> Bool { origins[slot].mayStart }

  // MARK: - Records

  /// Returns the ID of the origin's record, which is created if needed, for a job to be added.
  mutating func admit(_ origin: Origin) -> OriginID {
    if let known = origins.byOrigin[origin] {
      if origins[known.slot].forgetAt != nil {
        origins[known.slot].forgetAt = nil
        origins.rememberedCount -= 1
      }
      return known
    }
    var record = OriginRecord(origin: origin, window: ConcurrencyWindow(limits.window(isHTTP2: false)))
    if origin.isAddress { record.name = .found }
    let id = origins.insert(record)
    queue.admit(id.slot)
    return id
  }

  /// How long the state of an origin is kept after its last job. Without it, a host that loads images one by one would
  /// try a dead port for each, and each list would have to find the windows again.
  private static let retentionTime = Duration.seconds(600)
  /// The maximum number of such origins.
  static let maxRemembered = 10_000

  mutating func forgetIfIdle(_ slot: Int32) {
    guard origins[slot].jobs.isEmpty, origins[slot].forgetAt == nil else { return }
    guard !origins[slot].isAsNew, origins.rememberedCount < Self.maxRemembered else { return origins.remove(slot) }
    let due = max(latest.advanced(by: Self.retentionTime), origins[slot].health.until ?? latest)
    origins[slot].forgetAt = due
    origins.rememberedCount += 1
    addTimer(.forget(origins.id(at: slot)), at: due)
  }

  mutating func forget(_ id: OriginID, dueAt moment: Instant) {
    guard origins[id]?.forgetAt == moment else { return }
    origins.remove(id.slot)
  }

  mutating func release(_ id: OriginID, dueAt moment: Instant) {
    guard origins.contains(id) else { return }
    var isReleased = origins[id.slot].health.release(at: moment)
    if let next = origins[id.slot].nextStart, next <= moment {
      origins[id.slot].nextStart = nil
      isReleased = true
    }
    if isReleased { released(id.slot) }
  }

  /// Continues an origin after a suspension, a time of being down or a wait for `--rate`.
  private mutating func released(_ slot: Int32) {
    reconsider(slot)
    askForName(of: slot)
  }
}
