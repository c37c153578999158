/// Merging of jobs that turn out to be equivalent.
extension Scheduler {
  /// Registers a joinable job under a second key. If another job has that key, nothing changes.
  ///
  /// - Returns: the other job, which the loads of this one can share.
  mutating func share(_ id: JobID, under key: TransferKey) -> JobID? {
    guard let job = jobs[id], job.isJoinable else { return nil }
    if let other = byKey[key] { return other == id.slot ? nil : jobs.id(at: other) }
    guard job.sharedKey == nil else { return nil }
    jobs[id.slot].sharedKey = key
    byKey[key] = id.slot
    return nil
  }

  /// Replaces the key of a job. If another job has the new key, nothing changes.
  ///
  /// - Returns: the other job, which the loads of this one can share.
  mutating func rename(_ id: JobID, to key: TransferKey) -> JobID? {
    guard let job = jobs[id], job.key != key else { return nil }
    if let other = byKey[key] { return other == id.slot ? nil : jobs.id(at: other) }
    jobs[id.slot].key = key
    if job.isJoinable {
      byKey[job.key] = nil
      byKey[key] = id.slot
    }
    return nil
  }

  /// Moves the subscribers of a job to another one, in their order, and ends the first.
  ///
  /// - Returns: the moved subscribers.
  mutating func merge(_ id: JobID, into other: JobID) -> [LoadID] {
    guard id != other, jobs.contains(id), jobs.contains(other) else { return [] }
    let moved = subscribers(of: id)
    for load in moved {
      guard let subscriber = subscribers[load] else { continue }
      drop(subscriber, load)
      subscribers[load.slot].job = other.slot
      add(subscribers[load.slot], load)
    }
    updateQueueClass(of: other.slot)
    _ = end(id)
    return moved
  }
}
