internal import HTTPCaching
internal import Text

/// Late join. A load that joins a job after the job's cache lookup finished may miss a response that another job or a
/// peer has stored since. Late loads therefore share a second, lookup-only job per variant. Loads that it cannot serve
/// are merged into the original job; if that has ended, the lookup-only job becomes a normal one.
extension Loader {
  /// The key under which a load joins a job, or creates one.
  func coalescingKey(_ load: ActiveLoad) -> TransferKey {
    let key = load.jobKey
    guard hasDiskTiers, load.mayBeServed, let job = joinable(key), missedLookUp(load, for: job) else { return key }
    let looking = key.looking(for: load.request.variant)
    _ = joinable(looking)
    return looking
  }

  /// Whether the cache lookup of the job has finished, or is for another variant than the load's.
  private func missedLookUp(_ load: ActiveLoad, for job: JobID) -> Bool {
    guard let record = jobs[job] else { return false }
    guard record.candidates != nil else {
      return !record.first.request.variant.hasSameBytes(as: load.request.variant)
    }
    return switch scheduler.job(job)?.phase {
    case .waiting, .active, .backingOff, .awaitingPeer: true
    // The response being stored is the newest.
    case .lookingUp, .storing, nil: false
    }
  }

  /// The job of a key, if it may be joined. A job superseded by a host store is detached: only its present loads wait
  /// for it.
  private func joinable(_ key: TransferKey) -> JobID? {
    guard let job = scheduler.job(for: key), let record = jobs[job] else { return nil }
    guard isSupersededByHostStore(record) else { return job }
    scheduler.detach(job)
    return nil
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

extension ActiveLoad {
  /// Whether the cache may have a response that the load accepts.
  fileprivate var mayBeServed: Bool {
    switch request.cacheMode {
    case .default, .forceCache, .onlyIfCached, .refresh: !bypassesCache
    case .noCache, .reload, .noStore: false
    }
  }
}
