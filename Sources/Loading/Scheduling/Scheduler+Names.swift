internal import HTTPTypes

/// Look-ups of host names ahead of the transfers.
extension Scheduler {
  /// Asks for the name of an origin that jobs wait for, ahead of its first transfer and once for all of them.
  mutating func askForName(of slot: Int32) {
    let record = origins[slot]
    guard record.name == .unknown, record.active == 0, record.health.until == nil, lookUpCount < limits.maxLookUps,
      queue.count(of: slot) > 0
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
  /// - Parameter error: the end of the loads that wait for the origin if this shows that it is down.
  /// - Returns: the jobs that waited for an origin that is down now: each is to be ended, with that error.
  mutating func nameUnanswered(
    _ id: OriginID, error: LoadError, now: ContinuousClock.Instant, random: inout some RandomNumberGenerator
  ) -> [JobID] {
    guard endLookUp(id, as: .unknown) else { return [] }
    let probe = Running(
      job: -1, number: startCount + 1, since: CompactInstant(now), epoch: origins[id.slot].health.epoch)
    defer { forgetIfIdle(id.slot) }
    return note(.unreachable, at: id.slot, by: probe, error, now: now, random: &random)
  }

  private mutating func endLookUp(_ id: OriginID, as name: Name) -> Bool {
    guard origins[id]?.name == .asked else { return false }
    origins[id.slot].name = name
    lookUpCount -= 1
    return true
  }
}
