internal import HTTPCaching
internal import Text

/// Loads that come when the job of their key has looked into the cache.
///
/// What it found then may no longer be what there is: another job, of the same image with other headers or another
/// mode, or another worker may have stored it since. So the loads that come later look for themselves, in a job that
/// only does that, for all that come meanwhile and want the same variant. Whom the cache does not serve then waits for
/// the transfer that was there before; if that has ended, the job that looked has one.
extension Loader {
  /// By which key a load joins a job, or begins one.
  func coalescingKey(_ load: ActiveLoad) -> TransferKey {
    let key = load.jobKey
    guard hasDiskTiers, load.mayBeServed, let job = joinable(key), missedLookUp(load, for: job) else { return key }
    let looking = key.looking(for: load.request.variant)
    _ = joinable(looking)
    return looking
  }

  /// Whether a job that looks, or has looked, does not do so for the load.
  private func missedLookUp(_ load: ActiveLoad, for job: JobID) -> Bool {
    guard let record = jobs[job] else { return false }
    guard record.candidates != nil else {
      return !record.first.request.variant.hasSameBytes(as: load.request.variant)
    }
    return switch scheduler.job(job)?.phase {
    case .waiting, .active, .backingOff, .awaitingPeer: true
    // What is being stored is what there will be.
    case .preparing, .finishing, nil: false
    }
  }

  /// The job of a key. One that is overtaken is left to those who wait for it.
  private func joinable(_ key: TransferKey) -> JobID? {
    guard let job = scheduler.job(for: key), let record = jobs[job] else { return nil }
    guard isSupersededByHostStore(record) else { return job }
    scheduler.detach(job)
    return nil
  }

  /// Has a job that waits look again, since one that went past what is fresh has stored an image of the same key.
  func recheckSiblingJob(of job: TransferKey) {
    guard job.revalidation != .whenStale, let other = scheduler.job(for: job.withoutForcedRevalidation) else { return }
    switch scheduler.job(other)?.phase {
    case .waiting, .backingOff: recheckCache(for: other)
    default: break
    }
  }
}

extension ActiveLoad {
  /// Whether there may be something in the cache that it takes.
  fileprivate var mayBeServed: Bool {
    switch request.cacheMode {
    case .default, .forceCache, .onlyIfCached, .refresh: !bypassesCache
    case .noCache, .reload, .noStore: false
    }
  }
}
