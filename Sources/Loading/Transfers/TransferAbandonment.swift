internal import HTTPTransport

/// What becomes of a transfer when nobody waits for it any more.
extension Loader {
  /// Aborts it, unless it is nearly complete and may be kept: then it goes on for the cache. Until its end it can be
  /// joined; it is never tried again for nobody, and nothing waits for it.
  func abandonTransfer(of job: JobID, leftBy load: ActiveLoad) {
    guard let record = jobs[job] else { return }
    record.departedStorePolicy.formUnion(load.request.placesOfOriginal(hasDisk: storage.tier != nil))
    guard isWorthFinishing(job, record), let cost = record.download?.progress.costOfBeginning else {
      orphanedTransfers[job] = nil
      return abortTransfer(of: job)
    }
    // What was to take less than that takes twice as long and more: it is not what it seemed.
    orphanedTransfers[job] = .now.advanced(by: cost * 2 + .seconds(1))
  }

  /// Ends those that have taken too long for nobody. Returns when the next is due.
  func abortOverdue(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    for (job, due) in orphanedTransfers where due <= now {
      orphanedTransfers[job] = nil
      if scheduler.job(job)?.hasSubscribers == false { abortTransfer(of: job) }
    }
    return orphanedTransfers.values.min()
  }

  /// The job keeps its place among the active until the connection is known to be closed.
  func abortTransfer(of job: JobID) {
    scheduler.detach(job)
    cancelTransfer(of: job)
  }

  /// `ended` is called when the connection is closed, or with an answer that was faster.
  func cancelTransfer(of job: JobID) {
    if let transfer = jobs[job]?.transfer { transport.cancel(transfer) }
  }

  private func isWorthFinishing(_ job: JobID, _ record: JobRecord) -> Bool {
    guard scheduler.job(job)?.isJoinable == true, !places(of: job).isEmpty, let progress = record.download?.progress,
      progress.isNearlyComplete(at: .now), let head = progress.head
    else { return false }
    return record.first.request.mayStore(status: head.status, headers: head.headers)
  }
}
