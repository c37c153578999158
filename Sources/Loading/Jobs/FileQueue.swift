internal import ImageCodec

/// The jobs whose source is a file of the host. Only a few files are read ahead of the decoders, since their content
/// waits in memory.
///
/// A pure value: a job begins when `add` or `next` returns it, and its place is free when a load of it ends.
struct FileQueue {
  private let maxUnderWay: Int
  private var underWay: Set<LoadID> = []
  private var waiting: [JobID] = []
  var waitingCount: Int { waiting.count }

  /// - Parameter maxUnderWay: the maximum number of files that are read, or wait for a decode, or are decoded.
  init(maxUnderWay: Int = max(8, 2 * Processors.count)) { self.maxUnderWay = maxUnderWay }

  /// Returns whether the job begins; otherwise it waits.
  ///
  /// - Parameter load: the first load of the job.
  mutating func add(_ job: JobID, of load: LoadID) -> Bool {
    if underWay.count < maxUnderWay {
      underWay.insert(load)
      return true
    }
    waiting.append(job)
    return false
  }

  /// Removes a load that has ended. Has no effect on any other.
  mutating func end(_ load: LoadID) { underWay.remove(load) }

  /// The next job that begins; nil if none waits or may begin. The first of those with the highest priority.
  ///
  /// - Parameter claim: the first load of a job and its priority; nil if it has ended, after which it is forgotten.
  mutating func next(claim: (JobID) -> (load: LoadID, priority: Priority)?) -> JobID? {
    guard underWay.count < maxUnderWay, !waiting.isEmpty else { return nil }
    waiting.removeAll { claim($0) == nil }
    guard let highest = waiting.compactMap({ claim($0)?.priority }).max(),
      let index = waiting.firstIndex(where: { claim($0)?.priority == highest }), let first = claim(waiting[index])
    else { return nil }
    underWay.insert(first.load)
    return waiting.remove(at: index)
  }
}
