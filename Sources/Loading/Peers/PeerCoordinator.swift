internal import HTTPTypes
internal import ImageStore
internal import Threads

/// Single flight across processes: one transfer for an image among all workers that share a cache directory.
///
/// A job acquires the lease when its transfer is about to start, not while it is queued, and holds it until the
/// response is committed to the index. A job that finds the lease held is deferred: it needs no slot and loses no
/// attempt, and looks into the cache again when the peer is done. A job that must transfer in any case, or whose
/// response is not cached on disk, takes no lease.
///
/// The wait is bounded. A job does not wait for a peer that has died or stalled, nor again after a peer's transfer
/// stored nothing (it failed, or the response must not be cached), nor longer than `PeerWaitList.patience` in all.
extension Loader {
  /// Creates or refreshes the job's lease request before its cache lookup, so that a peer's commit after the lookup is
  /// detected. The load that created the job decides whether the job takes part.
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

  /// Acquires the lease of the job, if it needs one. Returns false if a peer holds it or the cache has changed; the job
  /// is deferred then.
  func acquireLease(_ job: JobID, at now: ContinuousClock.Instant) -> Bool {
    guard let record = jobs[job], record.lease == nil, record.leaseRequest != nil, record.mayKeep, let peerTable else {
      return true
    }
    switch peerTable.acquire(&record.leaseRequest!) {
    case .acquired(let lease): record.lease = lease
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

  /// Resumes the jobs whose wait for a peer is over.
  func pollPeerWaits(at now: ContinuousClock.Instant) {
    guard let due = peerWaits.nextLook, due <= now else { return }
    let over = peerWaits.waiting.filter { isOver($0, at: now) }
    peerWaits.remove(Set(over), at: now)
    for job in over where scheduler.job(job)?.phase == .awaitingPeer { recheckCache(for: job) }
    if let tier = storage.tier, peerWaits.takeSurvey(at: now) {
      storage.executor.run { tier.assumeIsolated { $0.detectDeadPeersNow() } }
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

  /// Sends a heartbeat if peers may be waiting for a lease of this worker. Returns when to call again.
  func sendHeartbeat(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    guard let peerTable, peerTable.hasLeases else { return peerWaits.nextLook }
    peerTable.heartbeat()
    applyPeerInvalidations()
    let nextBeat = now + .seconds(1)
    return min(peerWaits.nextLook ?? nextBeat, nextBeat)
  }
}

extension LoadRequest {
  /// A hash that is equal in all workers for requests that one response may answer: key, partition and request headers.
  /// All headers count, since it is unknown at this point which of them matter.
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
