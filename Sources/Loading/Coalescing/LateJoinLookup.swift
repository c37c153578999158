internal import HTTPCaching

/// Late join. A load that joins a job after the job's cache lookup finished may miss a response that another job or a
/// peer has stored since. It looks into the cache while it waits for the transfer. Each job has at most one such lookup
/// at a time, for all late loads that have come by then.
extension JobCoordinator {
  /// Whether the cache may have a response for a load that has joined a job.
  func isLate(_ load: ActiveLoad, with key: TransferKey, for job: JobID) -> Bool {
    guard cache.hasDiskTiers, jobs[job]?.candidates != nil,
      key.revalidation == .whenStale || load.request.cacheMode == .refresh
    else { return false }
    return switch scheduler.job(job)?.phase {
    case .waiting, .active, .backingOff, .awaitingPeer, .awaitingCache: true
    // The response being stored is the newest.
    case .lookingUp, .storing, nil: false
    }
  }

  func lookUp(late load: ActiveLoad, for job: JobID) {
    if lateLoads[job]?.append(load.id) != nil { return }
    lateLoads[job] = []
    lookUp([load.id], for: job, load.request.key, load.partition)
  }

  private func lookUp(_ ids: [LoadID], for job: JobID, _ key: String, _ partition: String) {
    let variants = Set(ids.compactMap { registry[$0]?.request.variant })
    cache.lookUp(key, partition, variants, isBypassed: false) { [weak self] found in
      guard let self else { return }
      for id in ids where self.scheduler.job(of: id) == job {
        // A load must not see what had been cleared before it was submitted.
        guard let load = self.registry[id], load.generation < found.firstClear ?? .max else { continue }
        if self.serveFromCache(load, from: found.candidates) {
          // The delivery is responsible for the load from here on.
          self.unsubscribe(load)
        } else {
          _ = self.mayTransfer(load, among: found.candidates)
        }
      }
      let next = self.lateLoads.removeValue(forKey: job) ?? []
      guard !next.isEmpty else { return }
      self.lateLoads[job] = []
      self.lookUp(next, for: job, key, partition)
    }
  }
}
