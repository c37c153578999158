internal import HTTPTransport
internal import Platform

/// The timelines of the loads that wait for a job.
extension JobCoordinator {
  /// Changes the timeline of each load of the job.
  func record(for job: JobID, _ change: (inout LoadTimeline) -> Void) {
    scheduler.forEachSubscriber(of: job) { id in
      if let load = registry[id] { change(&load.timeline) }
    }
  }

  /// The load has joined the job: the phases of the job are those of the load from now on.
  func recordJoin(_ load: ActiveLoad, _ job: JobID, at now: Instant) {
    // It has waited for another job before.
    if load.timeline.phase != .lookup { load.timeline.restart(at: now) }
    switch scheduler.job(job)?.phase {
    case .active:
      load.transfer = job.serial
      load.timeline.attemptStarted(at: now)
    case .storing:
      load.transfer = job.serial
      load.timeline.enter(.store, at: now)
    case .waiting, .backingOff, .awaitingPeer, .awaitingCache: load.timeline.enter(.wait, at: now)
    case .lookingUp, nil: break
    }
  }

  func recordAttempt(of job: JobID, at now: Instant, name: Duration?) {
    scheduler.forEachSubscriber(of: job) { id in
      guard let load = registry[id] else { return }
      load.transfer = job.serial
      load.timeline.attemptStarted(at: now, name: name)
    }
  }

  func recordTransfer(of job: JobID, _ outcome: Result<TransferSummary, TransferError>) {
    switch outcome {
    case .success(let summary):
      record(for: job) { $0.transferred(summary.times, hasBody: summary.head.status != 304) }
    case .failure(let error):
      guard let times = error.times else { return }
      record(for: job) { $0.transferred(times, hasBody: true) }
    }
  }
}
