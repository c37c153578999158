internal import Platform
internal import Threads

/// Identifies a job.
struct JobID: SlotNumbered {
  let slot: Int32
  let serial: UInt64
}

/// The jobs of the scheduler, found by slot, by ID and, while they may be joined, by key.
struct JobTable: ~Copyable {
  private var records = SlotMap<JobID, Scheduler.Job>()
  private var pool = GenerationalIDPool<JobID>()
  /// The slots of the joinable jobs.
  private(set) var byKey: [TransferKey: Int32] = [:]
  /// The numbers of jobs by phase that are not in the queue.
  var lookingUpCount = 0
  var storingCount = 0
  var deferredCount = 0
  /// When the next attempts of those jobs are due that back off, by slot.
  var due: [Int32: Instant] = [:]
  /// The links of the lists of jobs by origin.
  private(set) var links: [IndexLinkedList.Link] = []
  /// The loads that wait too long and have not been returned yet. See Scheduler+Deadlines.
  var tooLate: [LoadID] = []

  var backingOffCount: Int { due.count }
  /// The serial of the job created last.
  var lastSerial: UInt64 { pool.lastSerial }
  var isEmpty: Bool { records.isEmpty }
  /// The IDs in the order of their slots.
  var ids: [JobID] { records.ids }

  subscript(id: JobID) -> Scheduler.Job? { records[id] }

  /// The job in a slot, which must be occupied.
  subscript(slot: Int32) -> Scheduler.Job {
    _read { yield records[slot] }
    _modify { yield &records[slot] }
  }

  func contains(_ id: JobID) -> Bool { records.contains(id) }

  func id(at slot: Int32) -> JobID { records.id(at: slot) }

  /// Inserts a job, which later loads of its key join, into the list of its origin.
  mutating func insert(_ job: Scheduler.Job, into list: inout IndexLinkedList) -> JobID {
    let id = pool.take()
    records.insert(job, at: id)
    links.reach(id.slot)
    list.append(id.slot, in: &links)
    byKey[job.key] = id.slot
    return id
  }

  /// Closes a job to further loads.
  mutating func detach(_ slot: Int32) {
    records[slot].isJoinable = false
    byKey[records[slot].key] = nil
  }

  /// Removes a detached job.
  mutating func remove(_ id: JobID, from list: inout IndexLinkedList) {
    list.remove(id.slot, in: &links)
    records.remove(id)
    pool.giveBack(id)
  }
}
