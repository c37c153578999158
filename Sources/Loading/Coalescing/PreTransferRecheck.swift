internal import HTTPCaching
internal import ImageStore

/// What has come while a job waited for its turn.
extension Loader {
  /// Looks once more before a job's first transfer: a response of its key may have come meanwhile, for loads with other
  /// headers. If it is still being stored and is an answer to this job too, its loads wait for that. If it is in
  /// memory, it serves them, or is asked about, or shows that another job asks about it.
  ///
  /// - Returns: whether there still is a transfer to start; if not, the job has ended.
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
    let known = remembered(record.first.request.key, record.first.partition, record.first.request.variant)
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
  /// Whether it is the same response, and was not validated since.
  fileprivate func isUnchanged(in other: StoredResponse) -> Bool {
    id == other.id && responseTime == other.responseTime && digest == other.digest
  }
}
