internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageStore

/// What broken transfers leave: for the next attempt, and where it may stay on disk for a later load, in this process
/// or another.
extension Loader {
  /// Keeps what an attempt has left, while there is room for it.
  func keep(_ partialBody: PartialBody?, for record: JobRecord) {
    guard let partialBody else { return }
    record.dropConditions()
    if partialBodies.insert(partialBody) {
      record.partialBody = partialBody
    } else {
      leave(partialBody, of: record)
    }
  }

  /// What the next attempt goes on with. It is the caller's from here on.
  func takeBeginning(of record: JobRecord) -> PartialBody? {
    guard let partialBody = record.partialBody else { return nil }
    record.partialBody = nil
    partialBodies.remove(partialBody)
    return partialBody
  }

  /// Takes out a job that comes to nothing. What it kept stays on disk, if it may, unless the server said that it is of
  /// no use.
  func forget(_ job: JobID, after error: LoadError? = nil) {
    guard let record = jobs.remove(job), let partialBody = takeBeginning(of: record) else { return }
    if error?.isRetryable ?? true {
      leave(partialBody, of: record)
    } else {
      storage.discard(partialBody.body)
    }
  }

  /// Leaves a beginning to a load to come. One that has come already has looked for it too early.
  func leave(_ partialBody: PartialBody, of record: JobRecord) {
    let mayStay = record.mayKeep && record.first.request.mayStore(status: 200, headers: partialBody.response.headers)
    guard mayStay else { return storage.discard(partialBody.body) }
    storage.leave(partialBody.body)
    if let job = scheduler.job(for: record.first.jobKey) { jobs[job]?.mayResume = true }
  }

  /// Whether to go on with what an earlier load has left, which is tried once. Loads that go past the cache start anew,
  /// and what is stored is asked about first.
  func shouldResume(_ job: JobID, _ record: JobRecord) -> Bool {
    guard record.mayResume, record.partialBody == nil, record.revalidationTarget == nil,
      places(of: job).contains(.disk), let key = scheduler.job(job)?.key,
      key.revalidation == .whenStale || key.revalidation == .always
    else { return false }
    record.mayResume = false
    return true
  }

  /// Has the job's transfer go on with what an earlier load has left, if there is anything.
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
  /// The server has another response by now, so what is stored is not asked about any more.
  func dropConditions() {
    revalidationTargetIndex = nil
    conditions.remove("if-none-match")
    conditions.remove("if-modified-since")
  }
}

extension LoadRequest {
  /// Whose beginnings the load may go on with: those of the same key and credentials, asked for with the same headers.
  func partialIdentity(in partition: String) -> PartialRecord.Identity {
    let lines = headers.lines.sorted { ($0.name, $0.value) < ($1.name, $1.value) }.map { "\($0.name):\($0.value)\n" }
    return PartialRecord.Identity(
      key: key, partition: partition, request: SHA256.digest(of: Array(lines.joined().utf8)))
  }
}
