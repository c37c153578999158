internal import HTTPCaching
internal import HTTPTypes
internal import ImageStore

/// Handles failed attempts of jobs.
extension Loader {
  /// Handles a failed attempt: schedules a retry, or gives up.
  func failed(_ job: JobID, _ record: JobRecord, _ error: LoadError) {
    record.lease = nil
    var error = error
    error.attempts = scheduler.job(job)?.attempt ?? 1
    if error.kind == .timeout { record.hasTimedOut = true }
    if error.isRetryable {
      let now = ContinuousClock.now
      switch scheduler.retry(job, retryAfter: error.retryAfter, now: now, random: &random) {
      case .retry(let attempt, let delay):
        for id in scheduler.subscribers(of: job) {
          loads[id]?.emit(.retrying(attempt: attempt, delay: delay, kind: error.kind))
        }
        return
      case .final: error.isOriginDown = scheduler.originFailure(of: job) != nil
      }
    }
    giveUp(job, record, error)
  }

  /// Ends a job without a further attempt. Loads that may have a stored response get it; the others fail.
  func giveUp(_ job: JobID, _ record: JobRecord, _ error: LoadError) {
    if let stored = record.candidates, !stored.isEmpty, error.isOfServer {
      for id in scheduler.subscribers(of: job) {
        guard let load = loads[id], let fallback = fallback(for: load, among: stored, after: error) else { continue }
        deliver(fallback, to: load, as: .stale)
        _ = scheduler.leave(id)
      }
    }
    fail(job, error)
  }

  /// The stored response that the load may get instead of the error (`stale-if-error`).
  private func fallback(for load: ActiveLoad, among stored: [Candidate], after error: LoadError) -> Candidate? {
    load.accepted(of: stored).first {
      policy.mayServeOnError(
        $0.response.cached, mode: load.request.cacheMode, requestHeaders: load.request.headers, failure: error.status,
        now: storage.now())
    }
  }

  /// Ends the job with an error for its loads.
  func fail(_ job: JobID, _ error: LoadError) {
    guard let record = jobs[job] else { return }
    forget(job, after: error)
    if error.isPermanent, record.mayKeep, Storing.isForWhole(requestHeaders: record.first.request.headers) {
      failures.remember(error, of: record.identity, maxBytes: record.first.request.maxBytes, now: .now)
    }
    for id in scheduler.end(job) {
      var own = error
      if loads[id]?.request.wantsResponse != true { own.response = nil }
      answer(id, .failure(own))
    }
  }
}
