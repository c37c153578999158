internal import HTTPCaching
internal import HTTPTypes
internal import ImageStore
internal import Text

/// Loads that differ in headers which may make no difference.
///
/// While no response is known, each header may: such loads are jobs of their own. Once the cache has been looked into
/// and has a response for the key, stale or not fitting, its Vary tells which headers count. A job is known by those
/// from then on, and the loads of a later one that is known by the same wait for its transfer instead of causing
/// another. What comes has a Vary of its own, by which each load that sent, or would have sent, something else is
/// checked: if the answer is not for it, it starts anew by itself and waits for no answer again of which nobody knows
/// yet whom it is for. So each request that is sent answers at least the load that it was made for. Credentials are not
/// headers here; they always keep loads apart.
extension Loader {
  /// Has the job's loads wait for an earlier job, if one is known by the same.
  ///
  /// - Returns: whether they do; the job has ended then.
  func mergeIntoEquivalentJob(_ job: JobID, _ record: JobRecord) -> Bool {
    guard let key = scheduler.job(job)?.key,
      let fields = SelectingFields(of: record.first.request.headers, among: known(to: record, key).map(\.cached)),
      let earlier = scheduler.share(job, under: key.narrowedByVary(to: fields)),
      !scheduler.subscribers(of: job).contains(where: { loads[$0]?.isUnshared == true })
    else { return false }
    move(loadsOf: job, to: earlier)
    return true
  }

  /// Ends a job; its loads wait for another one.
  func move(loadsOf job: JobID, to other: JobID) {
    let moved = scheduler.merge(job, into: other)
    jobs[job] = nil
    let running = scheduler.job(other).flatMap { $0.phase == .active ? $0.attempt : nil }
    for id in moved {
      if let load = loads[id] { attach(load, in: other, attempt: running) }
    }
  }

  /// A load has come to a job that there was.
  ///
  /// - Parameter attempt: the one that is running.
  func attach(_ load: ActiveLoad, in job: JobID, attempt: Int?) {
    releasePlace(of: load)
    if let attempt { load.emit(.started(attempt: attempt)) }
    if load.request.events.contains(.preview) { jobs[job]?.download?.wantPreviews() }
  }

  /// What tells which headers count. A job that goes past the cache has not looked there, and need not for that.
  private func known(to record: JobRecord, _ key: TransferKey) -> [StoredResponse] {
    guard key.revalidation == .bypassed else { return record.candidates?.map(\.response) ?? [] }
    return memory.peek(at: key.key.text, partition: key.partition).map(\.response)
  }

  /// Loads a job's load by itself: what came was the answer to another request.
  func refetchUnshared(_ load: ActiveLoad) {
    load.isUnshared = true
    join(load)
  }
}

extension JobRecord {
  /// Whether an answer takes the place of what is stored although the server does not let it be kept: it shows that
  /// this is out of date (RFC 9111 section 4.3.3).
  func supersedes(_ response: StoredResponse) -> Bool {
    response.status == 200 && !first.request.mayStore(status: 200, headers: response.headers) && first.request.letsKeep
  }

  /// Whether a load has headers that could have brought another answer than those that were sent.
  func sentOthers(than load: ActiveLoad) -> Bool {
    load !== first && load.request.coalescingHeaders != first.request.coalescingHeaders
  }

  /// Whether the answer to what was sent may be that of a load, by its Vary. What may not be stored is used for nobody
  /// who would have asked in other words (RFC 9111 section 4).
  ///
  /// - Parameter response: what came or was confirmed, with the headers that were sent as its selecting ones.
  func isAnswered(_ load: ActiveLoad, by response: CachedResponse) -> Bool {
    if load === first || load.request.headers == first.request.headers { return true }
    let matches = Vary.matches(response, load.request.headers)
    guard sentOthers(than: load) else {
      // They differ in what says nothing of the image. A Vary may name that, but `*` does not mean it.
      return matches || Vary.selectingFields(of: response.headers, from: [:]) == nil
    }
    return matches && first.request.mayStore(status: response.status, headers: response.headers)
  }
}
