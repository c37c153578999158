internal import HTTPCaching
internal import ImageStore

/// The cache recheck of a queued job: a response that has been stored in the meantime may make its transfer needless.
extension Loader {
  /// Rechecks the memory tier before the first transfer of a job, for a response that a job with other headers has
  /// stored. It serves the loads, or becomes the revalidation target. If a response is just being stored, the job waits
  /// for that.
  ///
  /// - Returns: whether to start the transfer now; if not, the job waits or has ended.
  func needsTransferStill(_ job: JobID, _ record: JobRecord) -> Bool {
    guard let waiting = scheduler.job(job), waiting.attempt == 1, record.partialBody == nil,
      waiting.key.revalidation == .whenStale || waiting.key.revalidation == .always
    else { return true }
    if imagesBeingStored[record.identity] != nil {
      imagesBeingStored[record.identity]?.append(job)
      scheduler.deferToPeer(job)
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
    setConditions(of: record, for: load)
    return true
  }

  /// Resumes the jobs that waited until a response was stored.
  func storingEnded(_ image: CacheIdentity) {
    for job in imagesBeingStored.removeValue(forKey: image) ?? [] where scheduler.job(job)?.phase == .awaitingPeer {
      recheckCache(for: job)
    }
  }

  /// Repeats the cache lookup of the waiting job for the same image, after a job that forces revalidation has stored a
  /// response.
  func recheckSiblingJob(of job: TransferKey) {
    guard job.revalidation != .whenStale, let other = scheduler.job(for: job.withoutForcedRevalidation) else { return }
    switch scheduler.job(other)?.phase {
    case .waiting, .backingOff: recheckCache(for: other)
    default: break
    }
  }
}

extension StoredResponse {
  /// Whether the other response is the same one and has not been revalidated since.
  fileprivate func isUnchanged(in other: StoredResponse) -> Bool {
    id == other.id && responseTime == other.responseTime && digest == other.digest
  }
}
