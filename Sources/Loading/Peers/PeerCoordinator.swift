internal import HTTPTypes
internal import ImageStore
internal import Threads

/// One transfer for one image among all workers that share a cache directory.
///
/// A job takes the lease when its transfer is about to start, not while it waits, and keeps it until what came is
/// committed to the index. A job that finds it taken is put aside: it needs no slot, loses no attempt, and when the
/// other worker is done it is looked for in the cache again. What has to come from the server in any case, or is not
/// kept on disk, takes no lease.
///
/// Nobody waits for ever: not for a worker that has died or stopped, not again once a transfer came to nothing (the
/// answer could not be kept, or was none), and in all not longer than `PeerWaitList.patience`.
extension Loader {
  /// Notes how far others are, before the cache is looked into. The load that began the job decides whether it concerns
  /// them.
  func claim(_ record: JobRecord) {
    guard let board, record.first.request.store.contains(.disk), case .http = record.first.request.source else {
      return
    }
    if record.claim == nil {
      record.claim = board.claim(record.first.request.sharedHash(in: record.first.partition))
    } else {
      board.refresh(&record.claim!)
    }
  }

  /// Whether the transfer is this worker's to make. If not, the job is put aside.
  func mayBegin(_ job: JobID, at now: ContinuousClock.Instant) -> Bool {
    guard let record = jobs[job], record.lease == nil, record.claim != nil, record.mayKeep, let board else {
      return true
    }
    switch board.take(&record.claim!) {
    case .taken(let lease): record.lease = lease
    case .none: break
    case .news:
      scheduler.putAside(job)
      lookAgain(for: job)
      return false
    case .held:
      let since = record.elsewhereSince ?? now
      guard record.mayWaitElsewhere, now < since + PeerWaitList.patience else { return true }
      record.elsewhereSince = since
      scheduler.putAside(job)
      company.add(job, at: now)
      return false
    }
    return true
  }

  /// Goes on with those jobs whose wait for other workers is over.
  func lookAfterOthers(at now: ContinuousClock.Instant) {
    guard let due = company.nextLook, due <= now else { return }
    let over = company.waiting.filter { isOver($0, at: now) }
    company.remove(Set(over), at: now)
    for job in over where scheduler.job(job)?.phase == .elsewhere { lookAgain(for: job) }
    if let tier = storage.tier, company.takeSurvey(at: now) {
      storage.executor.run { tier.assumeIsolated { $0.lookAfterOthers() } }
    }
  }

  private func isOver(_ job: JobID, at now: ContinuousClock.Instant) -> Bool {
    guard let record = jobs[job], let claim = record.claim, let board else { return true }
    switch board.progress(of: claim) {
    case .over(let failed):
      if failed { record.mayWaitElsewhere = false }
      return true
    case .running(let worker):
      if company.hasStopped(worker, beats: board.beats(of: worker), at: now) {
        board.revoke(claim, from: worker)
        return true
      }
      return record.elsewhereSince.map { $0 + PeerWaitList.patience <= now } ?? true
    }
  }

  /// Shows the others a sign of life where they may wait for one. Returns when to be called again.
  func keepCompany(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    guard let board, board.hasLeases else { return company.nextLook }
    board.beat()
    heedOthers()
    let nextBeat = now + .seconds(1)
    return min(company.nextLook ?? nextBeat, nextBeat)
  }
}

extension LoadRequest {
  /// The same in every worker for what may be one answer: the image, who may see it, and the request headers, as long
  /// as nobody knows which of them matter.
  func sharedHash(in partition: String) -> UInt64 {
    var hash = StableHash()
    hash.combine(key)
    hash.combine(partition)
    for line in headers.lines {
      hash.combine(line.name)
      hash.combine(line.value)
    }
    return hash.value
  }
}
