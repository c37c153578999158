internal import HTTPTransport

/// Abandonment of transfers that no load needs any more.
extension Loader {
  /// Aborts the transfer, unless it is nearly complete and may be cached: then it continues for the cache. Until it
  /// ends, loads may join it; without a subscriber it is not retried.
  func abandonTransfer(of job: JobID, leftBy load: ActiveLoad) {
    guard let record = jobs[job] else { return }
    record.departedStorePolicy.formUnion(load.request.placesOfOriginal(hasDisk: storage.tier != nil))
    guard isWorthFinishing(job, record), let cost = record.download?.progress.costOfBeginning else {
      orphanedTransfers[job] = nil
      return abortTransfer(of: job)
    }
    // The rest should take less time than `cost`. If it takes over twice that, the estimate was wrong.
    orphanedTransfers[job] = .now.advanced(by: cost * 2 + .seconds(1))
  }

  /// Aborts orphaned transfers that have exceeded their time limit. Returns when the next one is due.
  func abortOverdue(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    for (job, due) in orphanedTransfers where due <= now {
      orphanedTransfers[job] = nil
      if scheduler.job(job)?.hasSubscribers == false { abortTransfer(of: job) }
    }
    return orphanedTransfers.values.min()
  }

  /// Aborts the transfer. The job stays active until the connection is known to be closed.
  func abortTransfer(of job: JobID) {
    scheduler.detach(job)
    cancelTransfer(of: job)
  }

  /// Cancels the transfer. `ended` is called when the connection is closed, or with a response that came first.
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
