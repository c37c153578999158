internal import Threads

/// The jobs whose source is a file of the host. Only a few files are read ahead of the decoders, since their content
/// waits in memory.
extension Scheduler {
  /// All files are one origin of `files`.
  static let hostFiles: Int32 = 0

  /// Queues a job after its cache lookup, behind those of its priority. Returns false, and changes nothing, if the queue
  /// is full. `takeFile` must follow.
  mutating func enqueueFile(of id: JobID) -> Bool {
    guard jobs[id]?.phase == .lookingUp else { return true }
    guard mayReadFile || files.counts.total < limits.maxQueued else { return false }
    endCacheLookup(id)
    jobs[id.slot].phase = .awaitingFile
    jobs[id.slot].sequence = nextSequence(.asItComes)
    files.add(id.slot, of: Self.hostFiles, in: jobs[id.slot].queueClass, sequence: jobs[id.slot].sequence)
    return true
  }

  private var mayReadFile: Bool { filesUnderWay.count < limits.maxFiles }

  /// Dequeues the next job whose file is to be read now. The place that it takes is that of its first load.
  mutating func takeFile() -> JobID? {
    guard mayReadFile, let slot = files.takeNext(limits.order) else { return nil }
    jobs[slot].phase = .readingFile
    filesUnderWay.insert(subscribers.id(at: jobs[slot].subscribers.first))
    return jobs.id(at: slot)
  }

  /// Frees the place of a load that has ended, or has lost what was read for it.
  mutating func fileEnded(_ load: LoadID) { filesUnderWay.remove(load) }
}
