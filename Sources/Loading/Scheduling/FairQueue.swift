internal import Threads

/// The queued jobs in weighted round robin: by priority, then in turn by origin.
///
/// Within a priority the origins take turns, one job each, so that an origin with a thousand jobs does not delay
/// another. An origin that may not start a transfer leaves the round robin, and returns at its end. Under decode
/// backpressure only origins with jobs that need no decoder take turns, and of their jobs the one that has needed none
/// for longest goes first.
///
/// Every operation is O(1) unless its comment says otherwise. Jobs and origins are identified by their slots.
struct FairQueue {
  private static let levels = Priority.allCases.count

  /// A priority, and whether jobs need a decoder for all their subscribers.
  struct QueueClass: Equatable {
    var priority: Priority
    var needsDecoder: Bool

    fileprivate static let count = 2 * FairQueue.levels
    fileprivate var number: Int { 2 * priority.rawValue + (needsDecoder ? 1 : 0) }
  }

  /// The backpressure level: no job of this priority or a lower one starts if it needs a decoder.
  var decodeBackpressure: Priority?

  /// The number of queued jobs by priority, for all origins.
  private(set) var counts = PriorityCounts()
  private var jobLinks: [IndexLinkedList.Link] = []
  private var freeLinks: [IndexLinkedList.Link] = []
  /// The sequence numbers of the jobs, by which they are sorted within their origin and priority.
  private var sequences: [Int64] = []
  private var queueClasses: [QueueClass] = []
  /// Round-robin rings of eligible origins, one per queue class. The "needs decoder" ring contains every origin with a
  /// job of that priority and is the one in use normally. Under decode backpressure the "no decoder" ring is used,
  /// which contains only origins with such jobs.
  private var rings = [IndexLinkedList](repeating: IndexLinkedList(), count: QueueClass.count)
  private var ringLinks = [[IndexLinkedList.Link]](repeating: [], count: QueueClass.count)

  /// Whether an origin may start a job.
  private var eligible: [Bool] = []
  /// The queued jobs by origin and priority, sorted by sequence number; and those of them that need no decoder, in the
  /// order in which that became so, except that a job ahead of all others is put first.
  private var queues: [IndexLinkedList] = []
  private var freeQueues: [IndexLinkedList] = []
  /// Whether an origin is in a ring, by origin and queue class.
  private var isInRing: [Bool] = []

  /// Adds an origin without jobs, which may start jobs.
  mutating func admit(_ origin: Int32) {
    while eligible.count <= Int(origin) {
      eligible.append(true)
      queues.append(contentsOf: repeatElement(IndexLinkedList(), count: Self.levels))
      freeQueues.append(contentsOf: repeatElement(IndexLinkedList(), count: Self.levels))
      isInRing.append(contentsOf: repeatElement(false, count: QueueClass.count))
      for queueClass in ringLinks.indices { ringLinks[queueClass].reach(origin) }
    }
    eligible[Int(origin)] = true
  }

  mutating func setEligible(_ isEligible: Bool, _ origin: Int32) {
    guard eligible[Int(origin)] != isEligible else { return }
    eligible[Int(origin)] = isEligible
    for priority in Priority.allCases { refreshRings(of: origin, at: priority) }
  }

  // MARK: - Jobs

  /// - Parameter sequence: the sequence number, which must be unique. O(1) if it is the lowest or highest of its origin
  ///   and priority; otherwise O(n) in the jobs after it.
  mutating func add(_ job: Int32, of origin: Int32, in queueClass: QueueClass, sequence: Int64) {
    jobLinks.reach(job)
    freeLinks.reach(job)
    while sequences.count <= Int(job) {
      sequences.append(0)
      queueClasses.append(queueClass)
    }
    (sequences[Int(job)], queueClasses[Int(job)]) = (sequence, queueClass)
    link(job, of: origin)
    refreshRings(of: origin, at: queueClass.priority)
  }

  mutating func remove(_ job: Int32, of origin: Int32) {
    unlink(job, of: origin)
    refreshRings(of: origin, at: queueClasses[Int(job)].priority)
  }

  /// Moves a job to another queue class. Costs as much as `add` for a new priority; O(1) within a priority, where the
  /// job keeps its sequence number.
  mutating func move(_ job: Int32, of origin: Int32, to queueClass: QueueClass, sequence: Int64) {
    let old = queueClasses[Int(job)]
    if old.priority == queueClass.priority {
      if !old.needsDecoder { freeQueues[index(origin, queueClass.priority)].remove(job, in: &freeLinks) }
      queueClasses[Int(job)] = queueClass
      linkIfFree(job, of: origin)
    } else {
      unlink(job, of: origin)
      (sequences[Int(job)], queueClasses[Int(job)]) = (sequence, queueClass)
      link(job, of: origin)
      refreshRings(of: origin, at: old.priority)
    }
    refreshRings(of: origin, at: queueClass.priority)
  }

  private mutating func link(_ job: Int32, of origin: Int32) {
    let (sequence, priority) = (sequences[Int(job)], queueClasses[Int(job)].priority)
    let index = index(origin, priority)
    let queue = queues[index]
    if queue.isEmpty || sequences[Int(queue.last)] < sequence {
      queues[index].append(job, in: &jobLinks)
    } else if sequence < sequences[Int(queue.first)] {
      queues[index].prepend(job, in: &jobLinks)
    } else {
      var before = jobLinks[Int(queue.last)].previous
      while sequences[Int(before)] > sequence { before = jobLinks[Int(before)].previous }
      queues[index].insert(job, after: before, in: &jobLinks)
    }
    counts[priority] += 1
    linkIfFree(job, of: origin)
  }

  private mutating func linkIfFree(_ job: Int32, of origin: Int32) {
    let queueClass = queueClasses[Int(job)]
    guard !queueClass.needsDecoder else { return }
    let index = index(origin, queueClass.priority)
    let queue = freeQueues[index]
    if !queue.isEmpty, sequences[Int(job)] < sequences[Int(queue.first)] {
      freeQueues[index].prepend(job, in: &freeLinks)
    } else {
      freeQueues[index].append(job, in: &freeLinks)
    }
  }

  private mutating func unlink(_ job: Int32, of origin: Int32) {
    let queueClass = queueClasses[Int(job)]
    let index = index(origin, queueClass.priority)
    queues[index].remove(job, in: &jobLinks)
    if !queueClass.needsDecoder { freeQueues[index].remove(job, in: &freeLinks) }
    counts[queueClass.priority] -= 1
  }

  // MARK: - Round robin

  /// Dequeues the next job; nil if no eligible origin has one. The turn passes to the next origin.
  mutating func takeNext(_ order: QueueOrder) -> Int32? {
    guard let ring = rings.indices.last(where: { !rings[$0].isEmpty && isInUse($0) }),
      let priority = Priority(rawValue: ring / 2)
    else { return nil }
    let origin = rings[ring].first
    let queue = startable(of: origin, at: priority)
    let next = order == .fifo ? queue.first : queue.last
    remove(next, of: origin)
    for queueClass in [
      QueueClass(priority: priority, needsDecoder: false), QueueClass(priority: priority, needsDecoder: true),
    ]
    where isInRing[index(origin, queueClass)] {
      rings[queueClass.number].remove(origin, in: &ringLinks[queueClass.number])
      rings[queueClass.number].append(origin, in: &ringLinks[queueClass.number])
    }
    return next
  }

  /// The jobs of an origin and priority that decode backpressure does not hold back.
  private func startable(of origin: Int32, at priority: Priority) -> IndexLinkedList {
    (areDecodersBehind(at: priority) ? freeQueues : queues)[index(origin, priority)]
  }

  func waitsForDecoders(_ queueClass: QueueClass) -> Bool {
    queueClass.needsDecoder && areDecodersBehind(at: queueClass.priority)
  }

  private func areDecodersBehind(at priority: Priority) -> Bool { decodeBackpressure.map { priority <= $0 } ?? false }

  private func isInUse(_ ring: Int) -> Bool {
    guard let decodeBackpressure else { return !ring.isMultiple(of: 2) }
    return ring.isMultiple(of: 2) == (ring / 2 <= decodeBackpressure.rawValue)
  }

  // MARK: - Queries

  /// Whether an eligible origin has a job that decode backpressure does not hold back.
  var hasEligible: Bool { rings.indices.contains { !rings[$0].isEmpty && isInUse($0) } }

  func count(of origin: Int32) -> Int { Priority.allCases.reduce(0) { $0 + queues[index(origin, $1)].count } }

  /// Whether decode backpressure holds back all jobs of an origin.
  func waitsForDecoders(_ origin: Int32) -> Bool {
    Priority.allCases.allSatisfy { startable(of: origin, at: $0).isEmpty }
  }

  /// The queued jobs of an origin, most urgent first. O(n).
  func jobs(of origin: Int32) -> [Int32] {
    Priority.allCases.reversed().flatMap { queues[index(origin, $0)].elements(in: jobLinks) }
  }

  // MARK: - Rings

  private func index(_ origin: Int32, _ priority: Priority) -> Int { Int(origin) * Self.levels + priority.rawValue }
  private func index(_ origin: Int32, _ queueClass: QueueClass) -> Int {
    Int(origin) * QueueClass.count + queueClass.number
  }

  private mutating func refreshRings(of origin: Int32, at priority: Priority) {
    let (free, any) = (
      QueueClass(priority: priority, needsDecoder: false), QueueClass(priority: priority, needsDecoder: true)
    )
    refreshRing(of: origin, free, isWanted: !freeQueues[index(origin, priority)].isEmpty)
    refreshRing(of: origin, any, isWanted: !queues[index(origin, priority)].isEmpty)
  }

  private mutating func refreshRing(of origin: Int32, _ queueClass: QueueClass, isWanted: Bool) {
    let index = index(origin, queueClass)
    let belongs = isWanted && eligible[Int(origin)]
    guard belongs != isInRing[index] else { return }
    isInRing[index] = belongs
    if belongs {
      rings[queueClass.number].append(origin, in: &ringLinks[queueClass.number])
    } else {
      rings[queueClass.number].remove(origin, in: &ringLinks[queueClass.number])
    }
  }
}
