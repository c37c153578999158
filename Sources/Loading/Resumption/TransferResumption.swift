internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageStore

/// Resumption of interrupted transfers: by the next attempt of the job or, if the partial body may stay on disk, by a
/// later load in this process or another.
extension Loader {
  /// Keeps the partial body of an attempt for the next one, within the budget.
  func keep(_ partialBody: PartialBody?, for record: JobRecord) {
    guard let partialBody else { return }
    record.dropConditions()
    if partialBodies.insert(partialBody) {
      record.partialBody = partialBody
    } else {
      leave(partialBody, of: record)
    }
  }

  /// Removes the partial body from the record and the budget. The caller owns it from here on.
  func takePartialBody(of record: JobRecord) -> PartialBody? {
    guard let partialBody = record.partialBody else { return nil }
    record.partialBody = nil
    partialBodies.remove(partialBody)
    return partialBody
  }

  /// Removes a job that ends without a result. Its partial body is retained on disk for a later load if that is
  /// allowed, unless the error shows that it is useless.
  func forget(_ job: JobID, after error: LoadError? = nil) {
    guard let record = jobs.remove(job), let partialBody = takePartialBody(of: record) else { return }
    if error?.isRetryable ?? true {
      leave(partialBody, of: record)
    } else {
      storage.discard(partialBody.body)
    }
  }

  /// Retains a partial body for a later load, or discards it if it must not be stored. A newer job of the same key has
  /// looked for it too early, so it may look again.
  func leave(_ partialBody: PartialBody, of record: JobRecord) {
    let mayStay = record.mayKeep && record.first.request.mayStore(status: 200, headers: partialBody.response.headers)
    guard mayStay else { return storage.discard(partialBody.body) }
    storage.leave(partialBody.body)
    if let job = scheduler.job(for: record.first.jobKey) { jobs[job]?.mayResume = true }
  }

  /// Whether to look for a partial body of an earlier load, which is tried once per job. Jobs that bypass the cache
  /// start from the beginning, and a stored response is revalidated instead.
  func shouldResume(_ job: JobID, _ record: JobRecord) -> Bool {
    guard record.mayResume, record.partialBody == nil, record.revalidationTarget == nil,
      places(of: job).contains(.disk), let key = scheduler.job(job)?.key,
      key.revalidation == .whenStale || key.revalidation == .always
    else { return false }
    record.mayResume = false
    return true
  }

  /// Starts the job's transfer with the partial body of an earlier load, if there is one.
  func resumePartial(for job: JobID, _ record: JobRecord) {
    let identity = record.first.request.partialIdentity(in: record.first.partition)
    let (maxBytes, acceptsAnything) = (record.first.request.maxBytes, record.first.request.validation == .none)
    storage.perform({ [storage] in
      storage.resumePartial(identity, maxBytes: maxBytes, acceptsAnything: acceptsAnything)
    }) { [weak self] partialBody in
      guard let self else { return }
      guard let record = self.jobs[job], self.scheduler.job(job)?.subscribers.isEmpty == false else {
        if let partialBody { self.storage.leave(partialBody.body) }
        _ = self.scheduler.end(job)
        return self.forget(job)
      }
      if partialBody != nil { record.dropConditions() }
      self.send(job, record, goingOnFrom: partialBody)
    }
  }
}

extension JobRecord {
  /// Removes the conditions: the server has another response by now, so the stored one is not revalidated.
  func dropConditions() {
    revalidationTargetIndex = nil
    conditions.remove("if-none-match")
    conditions.remove("if-modified-since")
  }
}

extension LoadRequest {
  /// The identity of the partial bodies that the load may resume: same key, credentials and request headers.
  func partialIdentity(in partition: String) -> PartialRecord.Identity {
    let lines = headers.lines.sorted { ($0.name, $0.value) < ($1.name, $1.value) }.map { "\($0.name):\($0.value)\n" }
    return PartialRecord.Identity(
      key: key, partition: partition, request: SHA256.digest(of: Array(lines.joined().utf8)))
  }
}
