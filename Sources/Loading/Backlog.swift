/// The waiting jobs, and whose turn it is.
///
/// Within a priority the origins take turns, one job each, so that the one with a thousand jobs does not keep another
/// waiting. An origin that may start nothing is out of the turns until it may again; it comes back as the last. While
/// the decoders are behind, the origins that have jobs without need of one take turns among themselves.
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

  /// Jobs of a priority that are for a decoder alone, or that are not.
  struct Lane: Equatable {
    var priority: Priority
    var needsDecoder: Bool

    fileprivate static let count = 2 * Priority.allCases.count
    fileprivate var number: Int { 2 * priority.rawValue + (needsDecoder ? 1 : 0) }
  }

  /// No job that needs a decoder gets a turn of this priority or a lower one.
  var decodersBehind: Priority?

  /// The waiting jobs of each priority, all origins.
  private(set) var counts = PriorityCounts()
  private var jobLinks: [Chain.Link] = []
  /// The places of the waiting jobs among those of their origin and priority, which are sorted by them.
  private var places: [Int64] = []
  /// The origins that may start a job, in the order of their turns. A lane has two rings: of the origins that come last,
  /// and behind these of the open ones. Those of a lane that needs a decoder have all that have a job of its priority,
  /// and are in use unless the decoders are behind; those of the other have who has a job in it.
  private var rings = [Chain](repeating: Chain(), count: 2 * Lane.count)
  private var ringLinks = [[Chain.Link]](repeating: [], count: Lane.count)

  private var standings: [Standing] = []
  /// The waiting jobs of each origin, and the ring that it is in; an element for each lane of each origin.
  private var queues: [Chain] = []
  private var ringNumbers: [Int8?] = []
  /// The job of each origin that goes first out of its turn.
  private var chosen: [(job: Int32, lane: Lane)?] = []

  /// Makes room for an origin. Nothing waits for it, and it may start jobs.
  mutating func admit(_ origin: Int32) {
    while standings.count <= Int(origin) {
      standings.append(.open)
      chosen.append(nil)
      queues.append(contentsOf: repeatElement(Chain(), count: Lane.count))
      ringNumbers.append(contentsOf: repeatElement(nil, count: Lane.count))
      for lane in ringLinks.indices { ringLinks[lane].reach(origin) }
    }
    standings[Int(origin)] = .open
    chosen[Int(origin)] = nil
  }

  mutating func setStanding(_ standing: Standing, of origin: Int32) {
    guard standings[Int(origin)] != standing else { return }
    standings[Int(origin)] = standing
    for priority in Priority.allCases { refreshRings(of: origin, at: priority) }
  }

  // MARK: - Jobs

  /// - Parameter place: no other job has it. O(1) for one before or behind all others of its origin and lane; else as
  ///   much as there are behind it.
  mutating func add(_ job: Int32, of origin: Int32, in lane: Lane, place: Int64) {
    link(job, of: origin, in: lane, place)
    refreshRings(of: origin, at: lane.priority)
  }

  mutating func remove(_ job: Int32, of origin: Int32, in lane: Lane) {
    if chosen[Int(origin)]?.job == job { chosen[Int(origin)] = nil }
    unlink(job, of: origin, in: lane)
    refreshRings(of: origin, at: lane.priority)
  }

  /// As costly as `add`.
  mutating func move(_ job: Int32, of origin: Int32, from old: Lane, to new: Lane, place: Int64) {
    if chosen[Int(origin)]?.job == job { chosen[Int(origin)] = (job, new) }
    unlink(job, of: origin, in: old)
    link(job, of: origin, in: new, place)
    refreshRings(of: origin, at: old.priority)
    refreshRings(of: origin, at: new.priority)
  }

  /// Has one of the waiting jobs of an origin be its next, whatever its place and priority. When it is the origin's
  /// turn follows from the others. One that the decoders hold back lets them go first.
  mutating func choose(_ job: Int32, of origin: Int32, in lane: Lane) { chosen[Int(origin)] = (job, lane) }

  private mutating func link(_ job: Int32, of origin: Int32, in lane: Lane, _ place: Int64) {
    jobLinks.reach(job)
    while places.count <= Int(job) { places.append(0) }
    places[Int(job)] = place
    let index = index(origin, lane)
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
    counts[lane.priority] += 1
  }

  private mutating func unlink(_ job: Int32, of origin: Int32, in lane: Lane) {
    queues[index(origin, lane)].remove(job, in: &jobLinks)
    counts[lane.priority] -= 1
  }

  // MARK: - Turns

  /// Takes out the job whose turn it is, nil if no origin that may start one has one. The next turn is another
  /// origin's.
  ///
  /// - Parameter sparesLast: whether the origins that come last get no turn, because others may be about to come.
  mutating func takeNext(_ order: QueueOrder, sparesLast: Bool = false) -> Int32? {
    let ring = rings.indices.last { !rings[$0].isEmpty && isInUse($0) && !(sparesLast && $0.isMultiple(of: 2)) }
    guard let ring, let priority = Priority(rawValue: ring / 4) else { return nil }
    let origin = rings[ring].first
    guard let next = freeChoice(of: origin) ?? first(of: origin, at: priority, order) else { return nil }
    remove(next.job, of: origin, in: next.lane)
    for lane in [Lane(priority: priority, needsDecoder: false), Lane(priority: priority, needsDecoder: true)] {
      guard let ring = ringNumbers[index(origin, lane)] else { continue }
      rings[Int(ring)].remove(origin, in: &ringLinks[lane.number])
      rings[Int(ring)].append(origin, in: &ringLinks[lane.number])
    }
    return next.job
  }

  private func freeChoice(of origin: Int32) -> (job: Int32, lane: Lane)? {
    chosen[Int(origin)].flatMap { waitsForDecoders($0.lane) ? nil : $0 }
  }

  /// Of the jobs of a priority that the decoders do not hold back, the one whose place is the first by the order.
  private func first(of origin: Int32, at priority: Priority, _ order: QueueOrder) -> (job: Int32, lane: Lane)? {
    var best: (job: Int32, lane: Lane)?
    for needsDecoder in [false, true] {
      let lane = Lane(priority: priority, needsDecoder: needsDecoder)
      let queue = queues[index(origin, lane)]
      guard !queue.isEmpty, !waitsForDecoders(lane) else { continue }
      let job = order == .fifo ? queue.first : queue.last
      guard let other = best else {
        best = (job, lane)
        continue
      }
      if (places[Int(job)] < places[Int(other.job)]) == (order == .fifo) { best = (job, lane) }
    }
    return best
  }

  func waitsForDecoders(_ lane: Lane) -> Bool { lane.needsDecoder && areDecodersBehind(at: lane.priority) }

  private func areDecodersBehind(at priority: Priority) -> Bool { decodersBehind.map { priority <= $0 } ?? false }

  private func isInUse(_ ring: Int) -> Bool {
    guard let decodersBehind else { return !(ring / 2).isMultiple(of: 2) }
    return (ring / 2).isMultiple(of: 2) == (ring / 4 <= decodersBehind.rawValue)
  }

  // MARK: - Looking

  /// Whether an open origin has a waiting job that the decoders do not hold back.
  var hasOpen: Bool { rings.indices.contains { !$0.isMultiple(of: 2) && !rings[$0].isEmpty && isInUse($0) } }

  /// How many open origins have such a job of the highest priority that one of them has, if it is `level` or above. One
  /// more is not counted: `origin`.
  func openOrigins(atLeast level: Priority, but origin: Int32) -> Int {
    for priority in Priority.allCases.reversed() where priority >= level {
      let lane = Lane(priority: priority, needsDecoder: !areDecodersBehind(at: priority))
      let ring = 2 * lane.number + 1
      let count = rings[ring].count - (ringNumbers[index(origin, lane)] == Int8(ring) ? 1 : 0)
      if count > 0 { return count }
    }
    return 0
  }

  func count(of origin: Int32) -> Int { lanes(of: origin).reduce(0) { $0 + queues[$1].count } }

  /// Whether the decoders hold back all that wait for an origin.
  func waitsForDecoders(_ origin: Int32) -> Bool {
    Priority.allCases.allSatisfy { first(of: origin, at: $0, .fifo) == nil }
  }

  /// The jobs that wait for an origin, the most urgent first, and of one priority by their places. O(n).
  func jobs(of origin: Int32) -> [Int32] {
    Priority.allCases.reversed().flatMap { priority in
      // Two runs that are sorted: these are merged.
      [false, true].flatMap { needsDecoder in
        queues[index(origin, Lane(priority: priority, needsDecoder: needsDecoder))].elements(in: jobLinks)
      }
      .sorted { places[Int($0)] < places[Int($1)] }
    }
  }

  // MARK: - Rings

  private func index(_ origin: Int32, _ lane: Lane) -> Int { Int(origin) * Lane.count + lane.number }

  private func lanes(of origin: Int32) -> Range<Int> {
    (Int(origin) * Lane.count)..<((Int(origin) + 1) * Lane.count)
  }

  private mutating func refreshRings(of origin: Int32, at priority: Priority) {
    let (free, any) = (Lane(priority: priority, needsDecoder: false), Lane(priority: priority, needsDecoder: true))
    let hasFree = !queues[index(origin, free)].isEmpty
    refreshRing(of: origin, free, isWanted: hasFree)
    refreshRing(of: origin, any, isWanted: hasFree || !queues[index(origin, any)].isEmpty)
  }

  private mutating func refreshRing(of origin: Int32, _ lane: Lane, isWanted: Bool) {
    let ring: Int8? =
      switch standings[Int(origin)] {
      case _ where !isWanted: nil
      case .shut: nil
      case .last: Int8(2 * lane.number)
      case .open: Int8(2 * lane.number + 1)
      }
    let index = index(origin, lane)
    guard ring != ringNumbers[index] else { return }
    if let old = ringNumbers[index] { rings[Int(old)].remove(origin, in: &ringLinks[lane.number]) }
    if let ring { rings[Int(ring)].append(origin, in: &ringLinks[lane.number]) }
    ringNumbers[index] = ring
  }
}
