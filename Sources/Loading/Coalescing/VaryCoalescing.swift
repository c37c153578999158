internal import HTTPCaching
internal import HTTPTypes
internal import ImageStore
internal import Text

/// Coalescing by Vary. Until a response for the key is known, any request header may select another representation, so
/// loads with different headers are separate jobs. Once a stored response is known, be it stale or not matching, only
/// the headers named by its Vary count, and jobs that agree in those are merged: the loads of the later one wait for
/// the transfer of the earlier one.
///
/// The new response's own Vary is checked against every merged load. A load that it does not match is sent again alone
/// and never coalesced with an unanswered transfer again, so each request sent answers at least the load that it was
/// made for. Credentials always keep loads apart; they are not treated as headers here.
extension Loader {
  /// Merges the job into an earlier job that agrees in the headers named by Vary.
  ///
  /// - Returns: whether the job was merged; it has ended then.
  func mergeIntoEquivalentJob(_ job: JobID, _ record: JobRecord) -> Bool {
    guard let key = scheduler.job(job)?.key,
      let fields = SelectingFields(of: record.first.request.headers, among: known(to: record, key).map(\.cached)),
      let earlier = scheduler.share(job, under: key.narrowedByVary(to: fields)),
      !scheduler.subscribers(of: job).contains(where: { loads[$0]?.isUnshared == true })
    else { return false }
    move(loadsOf: job, to: earlier)
    return true
  }

  /// Ends a job and moves its loads to another one.
  func move(loadsOf job: JobID, to other: JobID) {
    let moved = scheduler.merge(job, into: other)
    jobs[job] = nil
    let running = scheduler.job(other).flatMap { $0.phase == .active ? $0.attempt : nil }
    for id in moved {
      if let load = loads[id] { attach(load, in: other, attempt: running) }
    }
  }

  /// Updates a load that has joined an existing job, and the job's download.
  ///
  /// - Parameter attempt: the running attempt, if any.
  func attach(_ load: ActiveLoad, in job: JobID, attempt: Int?) {
    releasePlace(of: load)
    if let attempt { load.emit(.started(attempt: attempt)) }
    if load.request.events.contains(.preview) { jobs[job]?.download?.wantPreviews() }
  }

  /// The responses whose Vary names the headers that count. A job that bypasses the cache has no lookup result, so the
  /// memory tier is peeked instead.
  private func known(to record: JobRecord, _ key: TransferKey) -> [StoredResponse] {
    guard key.revalidation == .bypassed else { return record.candidates?.map(\.response) ?? [] }
    return memory.peek(at: key.key.text, partition: key.partition).map(\.response)
  }

  /// Sends a load again alone: the response answers another request.
  func refetchUnshared(_ load: ActiveLoad) {
    load.isUnshared = true
    join(load)
  }
}

extension JobRecord {
  /// Whether a response that must not be stored invalidates the stored one: a 200 shows that the stored one is out of
  /// date (RFC 9111 section 4.3.3).
  func supersedes(_ response: StoredResponse) -> Bool {
    response.status == 200 && !first.request.mayStore(status: 200, headers: response.headers) && first.request.letsKeep
  }

  /// Whether a load has headers that could have brought another response than those that were sent.
  func sentOthers(than load: ActiveLoad) -> Bool {
    load !== first && load.request.coalescingHeaders != first.request.coalescingHeaders
  }

  /// Whether the response to the request that was sent also answers the load, by its Vary. A response that must not be
  /// stored answers only loads with equivalent requests (RFC 9111 section 4).
  ///
  /// - Parameter response: the response that arrived or was confirmed, with the headers that were sent as its selecting
  ///   fields.
  func isAnswered(_ load: ActiveLoad, by response: CachedResponse) -> Bool {
    if load === first || load.request.headers == first.request.headers { return true }
    let matches = Vary.matches(response, load.request.headers)
    guard sentOthers(than: load) else {
      // They differ only in headers that do not affect the image. Vary may name such a header, but `*` does not refer
      // to them.
      return matches || Vary.selectingFields(of: response.headers, from: [:]) == nil
    }
    return matches && first.request.mayStore(status: response.status, headers: response.headers)
  }
}
