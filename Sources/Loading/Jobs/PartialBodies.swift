internal import ImageStore

/// The partial bodies that jobs keep for their next attempt, within a budget, and those that are left to later loads.
@LoadingActor
final class PartialBodies {
  private let jobs: JobRegistry
  private let storage: DiskServices
  private var budget: PartialBodyBudget

  init(jobs: JobRegistry, storage: DiskServices, diskLimit: Int64) {
    (self.jobs, self.storage) = (jobs, storage)
    budget = PartialBodyBudget(diskLimit: diskLimit)
  }

  func setDiskLimit(_ limit: Int64) { budget.setDiskLimit(limit) }

  /// Keeps a partial body for the next attempt of a job, if the budget allows.
  func keep(_ partialBody: PartialBody, of job: Job) {
    if budget.insert(partialBody) { job.keep(partialBody) } else { retain(partialBody, of: job) }
  }

  /// Removes the partial body from the job and the budget. The caller owns it from here on.
  func take(from job: Job) -> PartialBody? {
    guard let partialBody = job.takePartialBody() else { return nil }
    budget.remove(partialBody)
    return partialBody
  }

  /// Retains a partial body for a later load, or discards it if it must not be stored. A newer job of the same key has
  /// looked for it too early, so it may look again.
  func retain(_ partialBody: PartialBody, of job: Job) {
    guard job.mayRetain(partialBody) else { return storage.discard(partialBody.body) }
    if case .bytes(let bytes) = partialBody.body {
      // A few bytes are worth a file only if a load is likely to follow.
      guard job.probe.isAnswered, job.request.store.contains(.disk) else { return }
      let identity = job.request.partialIdentity(in: job.first.partition)
      storage.retainForResume(
        bytes, as: PartialRecord(partialBody.response, identity: identity, url: job.request.requestURL))
    } else {
      storage.retainForResume(partialBody.body)
    }
    if let newer = jobs.scheduler.job(for: job.first.jobKey) {
      jobs[newer]?.partialBodyAvailable()
    }
  }
}
