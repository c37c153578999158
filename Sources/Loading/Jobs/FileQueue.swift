internal import ImageCodec
internal import Threads

/// The jobs whose source is a file of the host. Only a few files are read ahead of the decoders, since their content
/// waits in memory.
///
/// A pure value: a job begins when `add` or `next` returns it, and its place is free when a load of it ends.
struct FileQueue {
  /// The first load of a waiting job, and the priority of the job.
  struct Claim {
    var load: LoadID
    var priority: Priority
  }

  private struct Waiting {
    let number: Int
    let job: JobID
  }

  private let maxUnderWay: Int
  private var underWay: Set<LoadID> = []
  /// The waiting jobs by priority, in the order in which they came. Some may have ended.
  private var waiting = Priority.allCases.map { _ in FIFO<Waiting>() }
  private var added = 0
  /// `changes` when the waiting jobs were last sorted.
  private var sortedAt = 0
  /// The loads without a place that have ended since then. Each may have been that of a waiting job.
  private var ended = 0
  var waitingCount: Int { waiting.reduce(0) { $0 + $1.count } }

  /// - Parameter maxUnderWay: the maximum number of files that are read, or wait for a decode, or are decoded.
  init(maxUnderWay: Int = max(8, 2 * Processors.count)) { self.maxUnderWay = maxUnderWay }

  /// Returns whether the job begins; otherwise it waits.
  ///
  /// - Parameters:
  ///   - load: the first load of the job.
  ///   - priority: the priority of the job.
  mutating func add(_ job: JobID, of load: LoadID, at priority: Priority) -> Bool {
    if underWay.count < maxUnderWay {
      underWay.insert(load)
      return true
    }
    added += 1
    waiting[priority.rawValue].append(Waiting(number: added, job: job))
    return false
  }

  /// Frees the place of a load that has ended, if it has one.
  mutating func end(_ load: LoadID) { if underWay.remove(load) == nil { ended += 1 } }

  /// Forgets the waiting jobs that have ended, once they may be an eighth of all, so that this takes O(1) for each.
  mutating func forgetEnded(claim: (JobID) -> Claim?) { if ended > waitingCount / 8 { sort(claim) } }

  /// The next job that begins; nil if none waits or may begin. The first of those with the highest priority.
  ///
  /// - Complexity: O(1), and O(n log n) if `changes` is another than before.
  /// - Parameters:
  ///   - changes: how often priorities of jobs have changed.
  ///   - claim: the claim of a job; nil if it has ended, after which it is forgotten.
  mutating func next(changes: Int, claim: (JobID) -> Claim?) -> JobID? {
    guard underWay.count < maxUnderWay else { return nil }
    if changes != sortedAt {
      sort(claim)
      sortedAt = changes
    }
    for level in waiting.indices.reversed() {
      while let next = waiting[level].popFirst() {
        guard let first = claim(next.job) else { continue }
        underWay.insert(first.load)
        return next.job
      }
    }
    return nil
  }

  /// The numbers of waiting jobs by priority.
  ///
  /// - Complexity: O(n log n).
  mutating func counts(claim: (JobID) -> Claim?) -> PriorityCounts {
    sort(claim)
    var counts = PriorityCounts()
    for priority in Priority.allCases { counts[priority] = waiting[priority.rawValue].count }
    return counts
  }

  private mutating func sort(_ claim: (JobID) -> Claim?) {
    var all: [Waiting] = []
    for level in waiting.indices {
      while let next = waiting[level].popFirst() { all.append(next) }
    }
    all.sort { $0.number < $1.number }
    for next in all {
      if let first = claim(next.job) { waiting[first.priority.rawValue].append(next) }
    }
    ended = 0
  }
}
