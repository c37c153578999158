internal import HTTPTypes
internal import Platform

/// Lookups of host names ahead of the transfers.
extension Scheduler {
  /// Requests one lookup of an origin's name, before its first transfer, if jobs wait for the origin.
  mutating func askForName(of slot: Int32) {
    guard origins[slot].name == .unknown, origins[slot].health.until == nil, queue.count(of: slot) > 0,
      origins[slot].active == 0, origins.lookUpCount < limits.maxLookUps
    else { return }
    origins[slot].name = .asked
    origins.lookUpCount += 1
    origins.namesToAsk.append(origins.id(at: slot))
    reconsider(slot)
  }

  /// The origins whose names must be looked up now; `nameFound` or `nameUnanswered` must follow for each.
  mutating func takeNamesToAsk() -> [(id: OriginID, origin: Origin)] {
    defer { origins.namesToAsk = [] }
    return origins.namesToAsk.compactMap { id in origins[id].map { (id, $0.origin) } }
  }

  /// Ends a lookup that found addresses, or found that the name does not exist; the transfers report the latter.
  ///
  /// - Parameter duration: how long the lookup took; zero if the answer was cached.
  mutating func nameFound(_ id: OriginID, after duration: Duration = .zero) {
    guard endLookUp(id, as: .found) else { return }
    if duration > .zero { origins[id.slot].nameDuration = duration }
    reconsider(id.slot)
  }

  /// Returns the duration of the name lookup for the first transfer of an origin; nil for later ones.
  mutating func takeNameDuration(for id: JobID) -> Duration? {
    guard let slot = jobs[id]?.origin, let duration = origins[slot].nameDuration else { return nil }
    origins[slot].nameDuration = nil
    return duration
  }

  /// Ends a lookup that no name server answered. It counts as a failed probe of the origin and costs no job an attempt.
  ///
  /// - Parameter error: the error for the loads that wait for the origin, if it is down now.
  /// - Returns: the jobs that wait for the origin if it is down now. The caller must end each with that error.
  mutating func nameUnanswered(
    _ id: OriginID, error: LoadError, now: Instant, random: inout some RandomNumberGenerator
  ) -> [JobID] {
    guard endLookUp(id, as: .unknown) else { return [] }
    let probe = RunningTransfers.Transfer(
      job: -1, number: transfers.startCount + 1, since: now, epoch: origins[id.slot].health.epoch)
    defer { forgetIfIdle(id.slot) }
    return record(.unreachable, at: id.slot, by: probe, error, now: now, random: &random)
  }

  private mutating func endLookUp(_ id: OriginID, as name: Name) -> Bool {
    guard origins[id]?.name == .asked else { return false }
    origins[id.slot].name = name
    origins.lookUpCount -= 1
    return true
  }
}
