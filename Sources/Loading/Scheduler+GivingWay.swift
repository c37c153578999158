/// Silent transfers give way: an origin that does not answer must not keep slots that others could use.
///
/// A transfer is *silent* when it has run for longer than our patience with its origin and no byte of an answer has
/// come. The oldest silent one of an origin is its probe, which goes on to its own time-out. The others give way when
/// jobs of other origins wait for nothing but a slot: their jobs wait again, as the first of their level, and have lost
/// no attempt. The origin has one slot from then on, until it answers. A job gives way once, and never for a less
/// urgent one.
extension Scheduler {
  /// How long an origin that has not answered yet may let a transfer wait. A lost packet at the beginning costs a
  /// second (RFC 6298 section 2.1); more than that is no accident, and the others should not pay for it.
  static let patience = Duration.seconds(1)
  /// The same for one that has. It may be slow, where each image is made when it is asked for, and would make it twice.
  static let patienceWithResponsive = Duration.seconds(5)

  /// Whether a job could start if it had a slot, of an origin that is not in doubt itself.
  var isShortOfSlots: Bool {
    !isPaused && activeCount >= limits.maxConcurrent && finishingCount < limits.maxFinishing && backlog.hasOpen
  }

  /// When a transfer becomes silent if it is not answered before.
  func patienceEnd(of transfer: Running) -> Moment {
    let isResponsive = origins[jobs[transfer.job].origin].gate.isResponsive
    let patience = isResponsive ? Self.patienceWithResponsive : Self.patience
    return Moment(transfer.since.instant.advanced(by: patience))
  }

  /// The transfers to abort now, for others that wait. They hold their slots until they have ended: then call
  /// `giveWay`, or what fits the answer if it was faster.
  ///
  /// O(1), but for when a transfer has become silent, or is and cannot give way to what waits: then O(n log n) in those
  /// that run.
  ///
  /// - Parameter isAnswered: whether an answer has begun; nil where there is no request yet, so that patience has not
  ///   begun either. Asked where `note` has not told.
  mutating func makeWay(at now: ContinuousClock.Instant, isAnswered: (JobID) -> Bool?) -> [JobID] {
    latest = Moment(now)
    guard isShortOfSlots, mayGiveWay || silenceDue <= latest else { return [] }
    let candidates = findSilent(isAnswered)
    var chosen: [JobID] = []
    for transfer in candidates {
      let job = jobs[transfer.job]
      let freed = limits.maxConcurrent - activeCount + givingWayCount
      let wanted = backlog.openOrigins(atLeast: job.priority, but: job.origin)
      guard wanted > 0, freed < wanted else { continue }
      running[Int(job.seat)].isGivingWay = true
      givingWayCount += 1
      jobs[transfer.job].hasGivenWay = true
      origins[job.origin].gate.keptSilent(in: transfer.round)
      reconsider(job.origin)
      chosen.append(jobs.id(at: transfer.job))
    }
    // There is less patience with the origins of these from here on.
    mayGiveWay = !(chosen.isEmpty ? candidates : findSilent(isAnswered)).isEmpty
    return chosen
  }

  /// The silent transfers that may give way: the least urgent first, and of these the youngest.
  private mutating func findSilent(_ isAnswered: (JobID) -> Bool?) -> [Running] {
    silenceDue = .never
    var silent: [Running] = []
    for seat in running.indices where !running[seat].isAnswered && !running[seat].isGivingWay {
      if patienceEnd(of: running[seat]) <= latest {
        switch isAnswered(jobs.id(at: running[seat].job)) {
        case true?:
          running[seat].isAnswered = true
          continue
        case false?:
          silent.append(running[seat])
          continue
        case nil: running[seat].since = latest
        }
      }
      silenceDue = min(silenceDue, patienceEnd(of: running[seat]))
    }
    var probed: Set<Int32> = []
    return silent.sorted { $0.number < $1.number }
      .filter { !probed.insert(jobs[$0.job].origin).inserted && !jobs[$0.job].hasGivenWay }
      .sorted { (jobs[$0.job].priority, $1.number) < (jobs[$1.job].priority, $0.number) }
  }

  /// The transfer that was to give way has ended, and there is nothing to be made of it: the slot is free, and the job
  /// waits for it again. False, and nothing changes, if it was not to.
  mutating func giveWay(_ id: JobID) -> Bool {
    guard let job = jobs[id], job.phase == .active, running[Int(job.seat)].isGivingWay, job.hasSubscribers else {
      return false
    }
    releaseSlot(of: id)
    requeue(id.slot)
    return true
  }
}
