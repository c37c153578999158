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
  func leaseRequest(_ record: JobRecord) {
    guard let peerTable, record.first.request.store.contains(.disk), case .http = record.first.request.source else {
      return
    }
    if record.leaseRequest == nil {
      record.leaseRequest = peerTable.leaseRequest(record.first.request.sharedHash(in: record.first.partition))
    } else {
      peerTable.refresh(&record.leaseRequest!)
    }
  }

  /// Whether the transfer is this worker's to make. If not, the job is put aside.
  func acquireLease(_ job: JobID, at now: ContinuousClock.Instant) -> Bool {
    guard let record = jobs[job], record.lease == nil, record.leaseRequest != nil, record.mayKeep, let peerTable else {
      return true
    }
    switch peerTable.take(&record.leaseRequest!) {
    case .taken(let lease): record.lease = lease
    case .none: break
    case .cacheChanged:
      scheduler.deferToPeer(job)
      recheckCache(for: job)
      return false
    case .held:
      let since = record.peerWaitStart ?? now
      guard record.mayWaitForPeer, now < since + PeerWaitList.patience else { return true }
      record.peerWaitStart = since
      scheduler.deferToPeer(job)
      peerWaits.add(job, at: now)
      return false
    }
    return true
  }

  /// Goes on with those jobs whose wait for other workers is over.
  func pollPeerWaits(at now: ContinuousClock.Instant) {
    guard let due = peerWaits.nextLook, due <= now else { return }
    let over = peerWaits.waiting.filter { isOver($0, at: now) }
    peerWaits.remove(Set(over), at: now)
    for job in over where scheduler.job(job)?.phase == .awaitingPeer { recheckCache(for: job) }
    if let tier = storage.tier, peerWaits.takeSurvey(at: now) {
      storage.executor.run { tier.assumeIsolated { $0.pollPeerWaits() } }
    }
  }

  private func isOver(_ job: JobID, at now: ContinuousClock.Instant) -> Bool {
    guard let record = jobs[job], let leaseRequest = record.leaseRequest, let peerTable else { return true }
    switch peerTable.progress(of: leaseRequest) {
    case .over(let failed):
      if failed { record.mayWaitForPeer = false }
      return true
    case .running(let worker):
      if peerWaits.hasStopped(worker, beats: peerTable.beats(of: worker), at: now) {
        peerTable.revoke(leaseRequest, from: worker)
        return true
      }
      return record.peerWaitStart.map { $0 + PeerWaitList.patience <= now } ?? true
    }
  }

  /// Shows the others a sign of life where they may wait for one. Returns when to be called again.
  func sendHeartbeat(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    guard let peerTable, peerTable.hasLeases else { return peerWaits.nextLook }
    peerTable.heartbeat()
    applyPeerInvalidations()
    let nextBeat = now + .seconds(1)
    return min(peerWaits.nextLook ?? nextBeat, nextBeat)
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
