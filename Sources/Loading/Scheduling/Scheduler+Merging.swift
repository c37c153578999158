/// Jobs that turn out to be one.
extension Scheduler {
  /// Makes the job known under a second key, beside the one that it was created with, for as long as it can be joined.
  /// Where another job is known under that key, nothing changes.
  ///
  /// - Returns: the other job, which loads of this one can share.
  mutating func share(_ id: JobID, under key: TransferKey) -> JobID? {
    guard let job = jobs[id], job.isJoinable else { return nil }
    if let other = byKey[key] { return other == id.slot ? nil : jobs.id(at: other) }
    guard job.sharedKey == nil else { return nil }
    jobs[id.slot].sharedKey = key
    byKey[key] = id.slot
    return nil
  }

  /// Has the job be known under another key instead. Where another job is known under that, nothing changes.
  ///
  /// - Returns: the other job, which loads of this one can share.
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

  /// Has all who wait for a job wait for another one, in the order of their coming, and ends the first.
  ///
  /// - Returns: who they are.
  mutating func merge(_ id: JobID, into other: JobID) -> [LoadID] {
    guard id != other, jobs.contains(id), jobs.contains(other) else { return [] }
    let moved = subscribers(of: id)
    for load in moved {
      guard let subscriber = subscribers[load] else { continue }
      drop(subscriber, load)
      subscribers[load.slot].job = other.slot
      add(subscribers[load.slot], load)
    }
    updateLane(of: other.slot)
    _ = end(id)
    return moved
  }
}
