/// The waiting jobs, and whose turn it is.
///
/// Within a priority the origins take turns, one job each, so that the one with a thousand jobs does not keep another
/// waiting. An origin that may start nothing is out of the turns until it may again; it comes back as the last. While
/// the decoders are behind, the origins that have jobs without need of one take turns among themselves, and of an
/// origin's jobs those go first that have been without need for longest.
/// Every operation is O(1), but for adding a job in the middle of others and for what says so. Jobs and origins are
/// named by their slots.
struct FairQueue {
  private static let levels = Priority.allCases.count

  /// Jobs of a priority that are for a decoder alone, or that are not.
  struct QueueClass: Equatable {
    var priority: Priority
    var needsDecoder: Bool

    fileprivate static let count = 2 * FairQueue.levels
    fileprivate var number: Int { 2 * priority.rawValue + (needsDecoder ? 1 : 0) }
  }

  /// No job that needs a decoder gets a turn of this priority or a lower one.
  var decodeBackpressure: Priority?

  /// The waiting jobs of each priority, all origins.
  private(set) var counts = PriorityCounts()
  private var jobLinks: [IndexLinkedList.Link] = []
  private var freeLinks: [IndexLinkedList.Link] = []
  /// The places of the waiting jobs among those of their origin and priority, which are sorted by them.
  private var places: [Int64] = []
  private var lanes: [QueueClass] = []
  /// The origins that may start a job, in the order of their turns; a ring for each lane. That of a lane that needs a
  /// decoder has all that have a job of its priority, and is in use unless the decoders are behind; that of the other
  /// has who has a job in it.
  private var rings = [IndexLinkedList](repeating: IndexLinkedList(), count: QueueClass.count)
  private var ringLinks = [[IndexLinkedList.Link]](repeating: [], count: QueueClass.count)

  /// Whether an origin takes its turns.
  private var eligible: [Bool] = []
  /// The waiting jobs; and those of them that need no decoder, in the order in which they came to be so, but for one
  /// that is before all others. An element for each priority of each origin.
  private var queues: [IndexLinkedList] = []
  private var freeQueues: [IndexLinkedList] = []
  /// Whether an origin is in a ring; an element for each lane of each origin.
  private var isInRing: [Bool] = []

  /// Makes room for an origin. Nothing waits for it, and it may start jobs.
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

  /// - Parameter place: no other job has it. O(1) for one before or behind all others of its origin and priority; else
  ///   as much as there are behind it.
  mutating func add(_ job: Int32, of origin: Int32, in queueClass: QueueClass, place: Int64) {
    jobLinks.reach(job)
    freeLinks.reach(job)
    while places.count <= Int(job) {
      places.append(0)
      lanes.append(queueClass)
    }
    (places[Int(job)], lanes[Int(job)]) = (place, queueClass)
    link(job, of: origin)
    refreshRings(of: origin, at: queueClass.priority)
  }

  mutating func remove(_ job: Int32, of origin: Int32) {
    unlink(job, of: origin)
    refreshRings(of: origin, at: lanes[Int(job)].priority)
  }

  /// As costly as `add` for a new priority; O(1) for the other lane of the same one, where the job keeps its place.
  mutating func move(_ job: Int32, of origin: Int32, to queueClass: QueueClass, place: Int64) {
    let old = lanes[Int(job)]
    if old.priority == queueClass.priority {
      if !old.needsDecoder { freeQueues[index(origin, queueClass.priority)].remove(job, in: &freeLinks) }
      lanes[Int(job)] = queueClass
      linkIfFree(job, of: origin)
    } else {
      unlink(job, of: origin)
      (places[Int(job)], lanes[Int(job)]) = (place, queueClass)
      link(job, of: origin)
      refreshRings(of: origin, at: old.priority)
    }
    refreshRings(of: origin, at: queueClass.priority)
  }

  private mutating func link(_ job: Int32, of origin: Int32) {
    let (place, priority) = (places[Int(job)], lanes[Int(job)].priority)
    let index = index(origin, priority)
    let queue = queues[index]
    if queue.isEmpty || places[Int(queue.last)] < place {
      queues[index].append(job, in: &jobLinks)
    } else if place < places[Int(queue.first)] {
      queues[index].prepend(job, in: &jobLinks)
    } else {
      var before = jobLinks[Int(queue.last)].previous
      while places[Int(before)] > place { before = jobLinks[Int(before)].previous }
      queues[index].insert(job, after: before, in: &jobLinks)
    }
    counts[priority] += 1
    linkIfFree(job, of: origin)
  }

  private mutating func linkIfFree(_ job: Int32, of origin: Int32) {
    let queueClass = lanes[Int(job)]
    guard !queueClass.needsDecoder else { return }
    let index = index(origin, queueClass.priority)
    let queue = freeQueues[index]
    if !queue.isEmpty, places[Int(job)] < places[Int(queue.first)] {
      freeQueues[index].prepend(job, in: &freeLinks)
    } else {
      freeQueues[index].append(job, in: &freeLinks)
    }
  }

  private mutating func unlink(_ job: Int32, of origin: Int32) {
    let queueClass = lanes[Int(job)]
    let index = index(origin, queueClass.priority)
    queues[index].remove(job, in: &jobLinks)
    if !queueClass.needsDecoder { freeQueues[index].remove(job, in: &freeLinks) }
    counts[queueClass.priority] -= 1
  }

  // MARK: - Turns

  /// Takes out the job whose turn it is, nil if no origin that may start one has one. The next turn is another
  /// origin's.
  mutating func takeNext(_ order: QueueOrder) -> Int32? {
    guard let ring = rings.indices.last(where: { !rings[$0].isEmpty && isInUse($0) }),
      let priority = Priority(rawValue: ring / 2)
    else { return nil }
    let origin = rings[ring].first
    let queue = freeToGo(of: origin, at: priority)
    let next = order == .fifo ? queue.first : queue.last
    remove(next, of: origin)
    for queueClass in [QueueClass(priority: priority, needsDecoder: false), QueueClass(priority: priority, needsDecoder: true)]
    where isInRing[index(origin, queueClass)] {
      rings[queueClass.number].remove(origin, in: &ringLinks[queueClass.number])
      rings[queueClass.number].append(origin, in: &ringLinks[queueClass.number])
    }
    return next
  }

  /// The jobs of a priority that the decoders do not hold back.
  private func freeToGo(of origin: Int32, at priority: Priority) -> IndexLinkedList {
    (areDecodersBehind(at: priority) ? freeQueues : queues)[index(origin, priority)]
  }

  func waitsForDecoders(_ queueClass: QueueClass) -> Bool { queueClass.needsDecoder && areDecodersBehind(at: queueClass.priority) }

  private func areDecodersBehind(at priority: Priority) -> Bool { decodeBackpressure.map { priority <= $0 } ?? false }

  private func isInUse(_ ring: Int) -> Bool {
    guard let decodeBackpressure else { return !ring.isMultiple(of: 2) }
    return ring.isMultiple(of: 2) == (ring / 2 <= decodeBackpressure.rawValue)
  }

  // MARK: - Looking

  /// Whether an origin that may start one has a job that the decoders do not hold back.
  var hasEligible: Bool { rings.indices.contains { !rings[$0].isEmpty && isInUse($0) } }

  func count(of origin: Int32) -> Int { Priority.allCases.reduce(0) { $0 + queues[index(origin, $1)].count } }

  /// Whether the decoders hold back all that wait for an origin.
  func waitsForDecoders(_ origin: Int32) -> Bool {
    Priority.allCases.allSatisfy { freeToGo(of: origin, at: $0).isEmpty }
  }

  /// The jobs that wait for an origin, the most urgent first. O(n).
  func jobs(of origin: Int32) -> [Int32] {
    Priority.allCases.reversed().flatMap { queues[index(origin, $0)].elements(in: jobLinks) }
  }

  // MARK: - Rings

  private func index(_ origin: Int32, _ priority: Priority) -> Int { Int(origin) * Self.levels + priority.rawValue }
  private func index(_ origin: Int32, _ queueClass: QueueClass) -> Int { Int(origin) * QueueClass.count + queueClass.number }

  private mutating func refreshRings(of origin: Int32, at priority: Priority) {
    let (free, any) = (QueueClass(priority: priority, needsDecoder: false), QueueClass(priority: priority, needsDecoder: true))
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
