/// The waiting jobs, and whose turn it is.
///
/// Within a priority the origins take turns, one job each, so that the one with a thousand jobs does not keep another
/// waiting. An origin that may start nothing is out of the turns until it is open again; it comes back as the last.
/// Every operation is O(1). Jobs and origins are named by their slots.
struct Backlog {
  private static let levels = Priority.allCases.count

  /// The waiting jobs of each priority, all origins.
  private(set) var counts = PriorityCounts()
  private var jobLinks: [Chain.Link] = []
  /// For each priority the origins that have a waiting job of it and may start one, in the order of their turns.
  private var rings = [Chain](repeating: Chain(), count: levels)
  private var ringLinks = [[Chain.Link]](repeating: [], count: levels)

  /// Whether each origin may start a job.
  private var isOpen: [Bool] = []
  /// The waiting jobs of each origin, and whether it is in the ring; `levels` elements an origin.
  private var queues: [Chain] = []
  private var isInRing: [Bool] = []

  /// Makes room for an origin. Nothing waits for it, and it may start jobs.
  mutating func admit(_ origin: Int32) {
    while isOpen.count <= Int(origin) {
      isOpen.append(true)
      queues.append(contentsOf: repeatElement(Chain(), count: Self.levels))
      isInRing.append(contentsOf: repeatElement(false, count: Self.levels))
      for level in rings.indices { ringLinks[level].reach(origin) }
    }
    isOpen[Int(origin)] = true
  }

  /// Lets the origin take its turns, or keeps it from them.
  mutating func setOpen(_ isOpen: Bool, for origin: Int32) {
    guard self.isOpen[Int(origin)] != isOpen else { return }
    self.isOpen[Int(origin)] = isOpen
    for priority in Priority.allCases { refreshRing(of: origin, at: priority) }
  }

  /// - Parameter atFront: whether it is the first of its origin and priority, rather than the last.
  mutating func add(_ job: Int32, of origin: Int32, at priority: Priority, atFront: Bool) {
    jobLinks.reach(job)
    if atFront {
      queues[index(origin, priority)].prepend(job, in: &jobLinks)
    } else {
      queues[index(origin, priority)].append(job, in: &jobLinks)
    }
    counts[priority] += 1
    refreshRing(of: origin, at: priority)
  }

  mutating func remove(_ job: Int32, of origin: Int32, at priority: Priority) {
    queues[index(origin, priority)].remove(job, in: &jobLinks)
    counts[priority] -= 1
    refreshRing(of: origin, at: priority)
  }

  /// Takes out the job whose turn it is, nil if no open origin has one. The next turn is another origin's.
  mutating func takeNext(_ order: QueueOrder) -> Int32? {
    guard let priority = Priority.allCases.last(where: { !rings[$0.rawValue].isEmpty }) else { return nil }
    let level = priority.rawValue
    let origin = rings[level].first
    let queue = queues[index(origin, priority)]
    let job = order == .fifo ? queue.first : queue.last
    remove(job, of: origin, at: priority)
    if isInRing[index(origin, priority)] {
      rings[level].remove(origin, in: &ringLinks[level])
      rings[level].append(origin, in: &ringLinks[level])
    }
    return job
  }

  func count(of origin: Int32) -> Int {
    Priority.allCases.reduce(0) { $0 + queues[index(origin, $1)].count }
  }

  /// The jobs that wait for an origin, the most urgent first. O(n).
  func jobs(of origin: Int32) -> [Int32] {
    Priority.allCases.reversed().flatMap { queues[index(origin, $0)].elements(in: jobLinks) }
  }

  private func index(_ origin: Int32, _ priority: Priority) -> Int { Int(origin) * Self.levels + priority.rawValue }

  private mutating func refreshRing(of origin: Int32, at priority: Priority) {
    let (index, level) = (index(origin, priority), priority.rawValue)
    let belongs = isOpen[Int(origin)] && !queues[index].isEmpty
    guard belongs != isInRing[index] else { return }
    isInRing[index] = belongs
    if belongs {
      rings[level].append(origin, in: &ringLinks[level])
    } else {
      rings[level].remove(origin, in: &ringLinks[level])
    }
  }
}
