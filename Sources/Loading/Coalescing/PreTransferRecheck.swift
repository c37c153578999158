internal import HTTPCaching
internal import ImageStore

/// The cache recheck before a job's first transfer.
extension Loader {
  /// Rechecks before the first transfer of a job whether a response for its key has arrived in the meantime, for loads
  /// with other headers. If such a response is being stored and answers this job too, the job is merged into that one.
  /// If it is in memory, it serves the loads, becomes the revalidation target, or reveals an equivalent job to merge
  /// into.
  ///
  /// - Returns: whether a transfer is still needed; if not, the job has ended.
  func needsTransferStill(_ job: JobID, _ record: JobRecord) -> Bool {
    guard let waiting = scheduler.job(job), waiting.attempt == 1, record.partialBody == nil,
      waiting.key.revalidation == .whenStale || waiting.key.revalidation == .always
    else { return true }
    if let other = jobsBeingStored[record.identity], let answered = scheduler.job(other), answered.isJoinable,
      answered.key.equalsButForHeaders(waiting.key), let otherRecord = jobs[other], let response = otherRecord.arrived,
      otherRecord.isAnswered(record.first, by: response)
    {
      _ = scheduler.merge(job, into: other)
      jobs[job] = nil
      return false
    }
    let known = lookUpMemory(record.first.request.key, record.first.partition, record.first.request.variant)
    let before = record.candidates ?? []
    let hasNews = known.contains { new in !before.contains { $0.response.isUnchanged(in: new.response) } }
    guard hasNews else { return true }
    record.candidates =
      known
      + before.filter { old in !known.contains { $0.response.varyingHeaders == old.response.varyingHeaders } }
    serve(job, from: record.candidates ?? [])
    guard let first = scheduler.firstSubscriber(of: job), let load = loads[first] else {
      _ = scheduler.end(job)
      forget(job)
      return false
    }
    if mergeIntoEquivalentJob(job, record) { return false }
    setConditions(of: record, for: load)
    return true
  }
}

extension StoredResponse {
  /// Whether the other response is the same one and has not been revalidated since.
  fileprivate func isUnchanged(in other: StoredResponse) -> Bool {
    id == other.id && responseTime == other.responseTime && digest == other.digest
  }
}
