internal import Platform
internal import Threads

/// The phases of a job from the queue to its end.
extension Scheduler {
  enum Admission {
    case accepted
    case queueFull
    /// `originFailure(of:)` returns the error.
    case originDown
  }

  /// Queues a job after its cache lookup. Changes nothing if the queue is full or the origin is down. A deferred job is
  /// always readmitted unless the origin is down.
  ///
  /// - Parameters:
  ///   - isPermitted: false if the permission of its origin is unknown. The job counts as queued, but does not start
  ///     before it is queued again.
  ///   - needsPlace: false for a job that queued jobs wait for.
  mutating func enqueue(_ id: JobID, isPermitted: Bool = true, needsPlace: Bool = true) -> Admission {
    guard let job = jobs[id], job.phase == .lookingUp || job.phase.isDeferred else { return .accepted }
    guard !isOriginDown(of: id) else { return .originDown }
    if job.phase == .lookingUp {
      guard !needsPlace || freePlaces > 0 || startsAtOnce(id) else { return .queueFull }
      endCacheLookup(id)
    } else {
      jobs.deferredCount -= 1
    }
    if !isPermitted {
      jobs.deferredCount += 1
      jobs[id.slot].phase = .awaitingPermission
    } else if job.phase == .awaitingPeer || job.phase == .awaitingCache {
      requeue(id.slot)
    } else {
      jobs[id.slot].phase = .waiting
      addToBacklog(id.slot)
    }
    checkDeadlines(of: id)
    return .accepted
  }

  /// Lets a job start even if no permit is free and its origin's window is full, as soon as it is queued: a running
  /// transfer, which keeps its own permits, cannot continue before the job has ended.
  mutating func startBeyondLimits(_ id: JobID) {
    if jobs.contains(id), !jobsBeyondLimits.contains(id) { jobsBeyondLimits.append(id) }
  }

  /// Dequeues the jobs that running transfers wait for.
  private mutating func takeJobsBeyondLimits() -> [JobID] {
    guard !isPaused, !jobsBeyondLimits.isEmpty else { return [] }
    jobsBeyondLimits.removeAll { !jobs.contains($0) }
    let starts = jobsBeyondLimits.filter { id in
      let job = jobs[id.slot]
      return job.phase == .waiting && origins[job.origin].name != .asked && origins[job.origin].health.until == nil
    }
    for id in starts {
      queue.remove(id.slot, of: jobs[id.slot].origin)
      jobs[id.slot].phase = .active
      takePermit(id.slot)
    }
    return starts
  }

  /// Whether the job would start at once if it were queued now.
  private func startsAtOnce(_ id: JobID) -> Bool {
    guard let origin = jobs[id]?.origin, waiting.total == 0, !isPaused, awaitedLookUps.count == 0, hasFreePermit
    else { return false }
    return mayStart(at: origin) && !queue.waitsForDecoders(jobs[id.slot].queueClass)
  }

  mutating func reconsiderDecoders() {
    queue.decodeBackpressure = Priority.allCases.last { level in
      Priority.allCases.reduce(0) { $0 + ($1 >= level ? undecoded[$1] : 0) } >= limits.maxUndecoded
    }
  }

  /// Queues a job again: ahead of its level, since it has waited longest, but behind it after a first-byte timeout,
  /// since it may be what keeps the others waiting.
  mutating func requeue(_ slot: Int32) {
    jobs[slot].phase = .waiting
    jobs[slot].sequence = nextSequence(jobs[slot].hasTimedOut ? .last : .first)
    addToBacklog(slot)
  }

  mutating func addToBacklog(_ slot: Int32) {
    queue.add(slot, of: jobs[slot].origin, in: jobs[slot].queueClass, sequence: jobs[slot].sequence)
    askForName(of: jobs[slot].origin)
  }

  /// Dequeues the transfers to start now, most urgent first. They are active from here on.
  ///
  /// - Parameter needsPlace: whether a queue place is needed now. Transfers then start even while lookups are pending
  ///   after a pause.
  mutating func takeStarts(at now: Instant, needsPlace: Bool = false) -> [JobID] {
    latest = now
    var starts = takeJobsBeyondLimits()
    while !isPaused, awaitedLookUps.count == 0 || needsPlace, hasFreePermit,
      let slot = queue.takeNext(limits.order)
    {
      jobs[slot].phase = .active
      takePermit(slot)
      starts.append(jobs.id(at: slot))
    }
    transfers.countedAtStarts = transfers.countedActive
    transfers.startRate.record(starts.count, at: now)
    return starts
  }

  /// Releases the permit of a job whose transfer may turn out to be unnecessary, or has a job that waited for a peer
  /// wait for the cache. `enqueue` or `end` must follow.
  ///
  /// - Parameter phase: `awaitingPeer` or `awaitingCache`.
  mutating func deferTransfer(of id: JobID, as phase: Phase) {
    assert(phase == .awaitingPeer || phase == .awaitingCache, "a job is deferred to a peer or to the cache")
    switch jobs[id]?.phase {
    case .active:
      releasePermit(of: id)
      jobs.deferredCount += 1
    case .awaitingPeer where phase == .awaitingCache: break
    default: return
    }
    jobs[id.slot].phase = phase
  }

  /// Releases the permit of a job whose transfer has ended and whose body is to be stored.
  mutating func finish(_ id: JobID) {
    guard jobs[id]?.phase == .active else { return }
    releasePermit(of: id)
    jobs[id.slot].phase = .storing
    jobs.storingCount += 1
  }

  enum Failure: Equatable {
    /// `attempt` is the number of the next attempt.
    case retry(attempt: Int, delay: Duration)
    /// There is no further attempt: call `end`.
    case final
  }

  /// Handles a retryable failure. If there is another attempt, the permit is released.
  ///
  /// - Parameter retryAfter: the delay that the server requested; the next attempt does not start before.
  mutating func retry(
    _ id: JobID, retryAfter: Duration?, now: Instant, random: inout some RandomNumberGenerator
  ) -> Failure {
    guard let job = jobs[id], job.phase == .active else { return .final }
    latest = now
    guard job.attempt <= job.key.retries, job.hasSubscribers else { return .final }
    guard !origins[job.origin].health.isDown else { return .final }
    var delay = ExponentialBackoff.fromNothing(first: 500, job.attempt, &random)
    if let retryAfter {
      guard retryAfter <= OriginHealth.maxSuspension else { return .final }
      delay = max(delay, retryAfter)
    }
    let due = now.advanced(by: delay)
    // A suspension of the origin delays the job too.
    let start = max(due, origins[job.origin].health.until ?? due)
    guard hasSubscriber(of: job, waitingPast: start) else { return .final }
    releasePermit(of: id)
    jobs[id.slot].attempt += 1
    jobs[id.slot].phase = .backingOff
    jobs.due[id.slot] = due
    addTimer(.retry(id), at: due)
    checkDeadlines(of: id)
    return .retry(attempt: job.attempt + 1, delay: now.duration(to: start))
  }

  /// Removes a job in any phase. Returns its subscribers in the order in which they subscribed.
  mutating func end(_ id: JobID) -> [LoadID] {
    guard let job = jobs[id] else { return [] }
    switch job.phase {
    case .lookingUp: endCacheLookup(id)
    case .waiting: queue.remove(id.slot, of: job.origin)
    case .active: releasePermit(of: id)
    case .storing: jobs.storingCount -= 1
    case .backingOff: jobs.due[id.slot] = nil
    case .awaitingPeer, .awaitingCache, .awaitingPermission: jobs.deferredCount -= 1
    case .awaitingFile: files.remove(id.slot, of: Self.hostFiles)
    case .readingFile: break
    }
    let waited = subscribers(of: id)
    for load in waited { if let subscriber = subscribers[load] { remove(subscriber, load) } }
    detach(id)
    jobs.remove(id, from: &origins[job.origin].jobs)
    forgetIfIdle(job.origin)
    return waited
  }

  /// Closes a job to further loads: later loads of its key create a new one.
  mutating func detach(_ id: JobID) {
    guard let job = jobs[id], job.isJoinable else { return }
    jobs.detach(id.slot)
  }

  private mutating func takePermit(_ slot: Int32) {
    let origin = jobs[slot].origin
    transfers.startCount += 1
    jobs[slot].hasTimedOut = false
    jobs[slot].runningIndex = Int32(transfers.list.count)
    transfers.list.append(
      RunningTransfers.Transfer(
        job: slot, number: transfers.startCount, since: latest, epoch: origins[origin].health.epoch))
    transfers.unanswered.append((jobs.id(at: slot), transfers.startCount, latest.advanced(by: Self.patience)))
    origins[origin].active += 1
    origins[origin].activeAtStart = origins[origin].active
    transfers.window.started(at: latest)
    origins[origin].window.started(at: latest)
    pace(origin, after: latest)
    reconsider(origin)
  }

  mutating func releasePermit(of id: JobID) {
    let (runningIndex, origin) = (jobs[id.slot].runningIndex, jobs[id.slot].origin)
    let transfer = transfers.list[Int(runningIndex)]
    if transfer.isAnswered {
      transfers.window.answered(active: max(transfers.countedActive, transfers.countedAtStarts), at: latest)
      // If nothing is queued, nothing takes the freed permit.
      let active = origins[origin].active
      let before = queue.count(of: origin) > 0 ? max(active, origins[origin].activeAtStart) : active
      origins[origin].window.answered(active: before, at: latest)
    }
    if transfer.isQuiet { transfers.quietCount -= 1 }
    transfers.list.swapAt(Int(runningIndex), transfers.list.count - 1)
    jobs[transfers.list[Int(runningIndex)].job].runningIndex = runningIndex
    transfers.list.removeLast()
    origins[origin].active -= 1
    reconsider(origin)
  }
}
