/// The waiting jobs, and whose turn it is.
///
/// Within a priority the origins take turns, one job each, so that the one with a thousand jobs does not keep another
/// waiting. An origin that may start nothing is out of the turns until it may again; it comes back as the last. So is,
/// at one priority, an origin that has been set aside.
/// Every operation is O(1), but for adding a job in the middle of others and for what says so. Jobs and origins are
/// named by their slots.
struct Backlog {
  /// Whether an origin takes its turns.
  enum Standing {
    /// It may start nothing.
    case shut
    /// Only where no open origin has a job of the priority.
    case last
    case open
  }

  private static let levels = Priority.allCases.count

  /// The waiting jobs of each priority, all origins.
  private(set) var counts = PriorityCounts()
  private var jobLinks: [Chain.Link] = []
  /// The places of the waiting jobs among those of their origin and priority, which are sorted by them.
  private var places: [Int64] = []
  /// The origins that have a waiting job and may start one, in the order of their turns: for each priority those that
  /// come last, and behind these the open ones.
  private var rings = [Chain](repeating: Chain(), count: 2 * levels)
  /// The origins that are set aside at each priority, in the order in which that was.
  private var aside = [Chain](repeating: Chain(), count: levels)
  /// An origin is in one of these chains at each priority.
  private var links = [[Chain.Link]](repeating: [], count: levels)

  private var standings: [Standing] = []
  /// The waiting jobs of each origin, and the ring that it is in, or that it is aside; `levels` elements an origin.
  private var queues: [Chain] = []
  private var ringNumbers: [Int8?] = []
  private static let isAside: Int8 = -1
  /// The job of each origin that goes first out of its turn.
  private var chosen: [(job: Int32, priority: Priority)?] = []

  /// Makes room for an origin. Nothing waits for it, and it may start jobs.
  mutating func admit(_ origin: Int32) {
    while standings.count <= Int(origin) {
      standings.append(.open)
      chosen.append(nil)
      queues.append(contentsOf: repeatElement(Chain(), count: Self.levels))
      ringNumbers.append(contentsOf: repeatElement(nil, count: Self.levels))
      for level in links.indices { links[level].reach(origin) }
    }
    standings[Int(origin)] = .open
    chosen[Int(origin)] = nil
  }

  mutating func setStanding(_ standing: Standing, of origin: Int32) {
    guard standings[Int(origin)] != standing else { return }
    standings[Int(origin)] = standing
    for priority in Priority.allCases { refreshRing(of: origin, at: priority) }
  }

  /// - Parameter place: no other job has it. O(1) for one before or behind all others of its origin and priority; else
  ///   as much as there are behind it.
  mutating func add(_ job: Int32, of origin: Int32, at priority: Priority, place: Int64) {
    jobLinks.reach(job)
    while places.count <= Int(job) { places.append(0) }
    places[Int(job)] = place
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
    refreshRing(of: origin, at: priority)
  }

  mutating func remove(_ job: Int32, of origin: Int32, at priority: Priority) {
    if chosen[Int(origin)]?.job == job { chosen[Int(origin)] = nil }
    queues[index(origin, priority)].remove(job, in: &jobLinks)
    counts[priority] -= 1
    refreshRing(of: origin, at: priority)
  }

  /// Has one of the waiting jobs of an origin be its next, whatever its place and priority. When it is the origin's
  /// turn follows from the others.
  mutating func choose(_ job: Int32, of origin: Int32, at priority: Priority) {
    chosen[Int(origin)] = (job, priority)
  }

  /// A job's turn to start, or its origin's to be set aside.
  struct Turn {
    let job: Int32
    fileprivate let jobPriority: Priority
    fileprivate let origin: Int32
    fileprivate let ring: Int
    /// Whose turn it is. The origin's next job may be of another.
    fileprivate var priority: Priority { Priority.allCases[ring / 2] }
  }

  /// Whose turn it is, nil if no origin that may start a job has one.
  ///
  /// - Parameter sparesLast: whether the origins that come last get no turn, because others may be about to come.
  func nextTurn(_ order: QueueOrder, sparesLast: Bool = false) -> Turn? {
    guard let ring = rings.indices.last(where: { !rings[$0].isEmpty && !(sparesLast && $0.isMultiple(of: 2)) }) else {
      return nil
    }
    let (origin, priority) = (rings[ring].first, Priority.allCases[ring / 2])
    let queue = queues[index(origin, priority)]
    let next = chosen[Int(origin)] ?? (order == .fifo ? queue.first : queue.last, priority)
    return Turn(job: next.job, jobPriority: next.priority, origin: origin, ring: ring)
  }

  /// The job whose turn it is, taken out.
  mutating func takeNext(_ order: QueueOrder) -> Int32? {
    guard let turn = nextTurn(order) else { return nil }
    take(turn)
    return turn.job
  }

  /// Takes the job out. The next turn is another origin's.
  mutating func take(_ turn: Turn) {
    remove(turn.job, of: turn.origin, at: turn.jobPriority)
    if ringNumbers[index(turn.origin, turn.priority)] == Int8(turn.ring) {
      rings[turn.ring].remove(turn.origin, in: &links[turn.ring / 2])
      rings[turn.ring].append(turn.origin, in: &links[turn.ring / 2])
    }
  }

  /// The origin gets no turn at this priority before `bringBack`, or before all of its jobs there have gone.
  mutating func setAside(_ turn: Turn) {
    let level = turn.ring / 2
    rings[turn.ring].remove(turn.origin, in: &links[level])
    aside[level].append(turn.origin, in: &links[level])
    ringNumbers[index(turn.origin, turn.priority)] = Self.isAside
  }

  /// All that are set aside get their turns again, behind the others.
  mutating func bringBack() {
    for priority in Priority.allCases {
      while !aside[priority.rawValue].isEmpty {
        let origin = aside[priority.rawValue].first
        putIntoRing(nil, origin, at: priority)
        refreshRing(of: origin, at: priority)
      }
    }
  }

  func isAside(_ origin: Int32) -> Bool {
    Priority.allCases.contains { ringNumbers[index(origin, $0)] == Self.isAside }
  }

  /// Whether an open origin has a waiting job.
  var hasOpen: Bool { rings.indices.contains { !$0.isMultiple(of: 2) && !rings[$0].isEmpty } }

  /// How many open origins have a job of the highest priority that one of them has, if it is `level` or above. One more
  /// is not counted: `origin`.
  func openOrigins(atLeast level: Priority, but origin: Int32) -> Int {
    for priority in Priority.allCases.reversed() where priority >= level {
      let ring = 2 * priority.rawValue + 1
      let count = rings[ring].count - (ringNumbers[index(origin, priority)] == Int8(ring) ? 1 : 0)
      if count > 0 { return count }
    }
    return 0
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
    let ring: Int8? =
      switch standings[Int(origin)] {
      case _ where queues[index].isEmpty: nil
      case _ where ringNumbers[index] == Self.isAside: Self.isAside
      case .shut: nil
      case .last: Int8(2 * level)
      case .open: Int8(2 * level + 1)
      }
    if ring != ringNumbers[index] { putIntoRing(ring, origin, at: priority) }
  }

  /// Takes the origin out of where it is at a priority.
  private mutating func putIntoRing(_ ring: Int8?, _ origin: Int32, at priority: Priority) {
    let (index, level) = (index(origin, priority), priority.rawValue)
    switch ringNumbers[index] {
    case nil: break
    case Self.isAside?: aside[level].remove(origin, in: &links[level])
    case let old?: rings[Int(old)].remove(origin, in: &links[level])
    }
    if let ring { rings[Int(ring)].append(origin, in: &links[level]) }
    ringNumbers[index] = ring
  }
}
