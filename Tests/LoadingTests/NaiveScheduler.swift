import HTTPTypes

@testable import Loading

/// The scheduler as one would write it without a thought of speed: arrays, searched from the front. What the real one
/// does is compared with it.
struct NaiveScheduler {
  typealias Instant = ContinuousClock.Instant

  struct Job {
    let id: JobID
    let key: JobKey
    let origin: Origin
    var phase = Scheduler.Phase.preparing
    /// When the next attempt is due, while it backs off.
    var due: Instant?
    var attempt = 1
    var priority = Priority.lowest
    var isJoinable = true
  }

  struct Subscriber {
    let id: LoadID
    let job: JobID
    var priority: Priority
    var deadline: Instant?
  }

  var limits: SchedulerLimits {
    didSet { seats.forEach { if let origin = $0 { refresh(origin) } } }
  }
  var isPaused = false
  private(set) var jobs: [Job] = []
  private(set) var subscribers: [Subscriber] = []
  /// The waiting jobs; of those of one origin and priority the first goes first.
  private var queue: [JobID] = []
  private(set) var held: [Origin: Instant] = [:]
  /// The known origins; a seat is taken by whoever comes after one left it. Only the order of turns depends on them.
  private var seats: [Origin?] = []
  private var freeSeats: [Int] = []
  private var turns: [[Origin]] = Array(repeating: [], count: Priority.allCases.count)

  init(limits: SchedulerLimits) { self.limits = limits }

  // MARK: - Looking

  func job(_ id: JobID) -> Job? { jobs.first { $0.id == id } }
  func loads(of id: JobID) -> [LoadID] { subscribers.filter { $0.job == id }.map(\.id) }
  func joinable(_ key: JobKey) -> JobID? { jobs.first { $0.key == key && $0.isJoinable }?.id }
  func count(_ phase: Scheduler.Phase) -> Int { jobs.count { $0.phase == phase } }
  var backingOff: Int { count(.backingOff) }
  var origins: [Origin] { seats.compactMap(\.self) }

  func states(of origin: Origin) -> OriginState {
    let own = jobs.filter { $0.origin == origin }
    return OriginState(
      origin: origin, active: own.count { $0.phase == .active }, waiting: own.count { $0.phase == .waiting },
      heldUntil: held[origin])
  }

  var nextTimer: Instant? {
    return (jobs.compactMap(\.due) + subscribers.compactMap(\.deadline) + held.values).min()
  }

  // MARK: - Subscribing

  /// - Parameter new: what the job is called if there has to be one.
  mutating func subscribe(
    _ id: LoadID, to key: JobKey, of origin: Origin, priority: Priority, deadline: Instant?, new: JobID
  ) -> Scheduler.Subscription {
    let subscription: Scheduler.Subscription
    let job: JobID
    if let existing = joinable(key) {
      job = existing
      let known = self.job(existing)!
      subscription = .joined(existing, attempt: known.phase == .active ? known.attempt : nil)
    } else {
      job = new
      subscription = .created(new)
      jobs.append(Job(id: new, key: key, origin: origin))
      if !seats.contains(origin) {
        if let seat = freeSeats.popLast() { seats[seat] = origin } else { seats.append(origin) }
      }
    }
    subscribers.append(Subscriber(id: id, job: job, priority: priority, deadline: deadline))
    updatePriority(of: job)
    return subscription
  }

  mutating func leave(_ id: LoadID) -> Scheduler.Departure {
    guard let index = subscribers.firstIndex(where: { $0.id == id }) else { return .unknown }
    let id = subscribers.remove(at: index).job
    guard loads(of: id).isEmpty else {
      updatePriority(of: id)
      return .jobStays
    }
    switch job(id)!.phase {
    case .finishing: return .jobStays
    case .active:
      detach(id)
      return .transferAbandoned(id)
    default:
      _ = end(id)
      return .jobAbandoned(id)
    }
  }

  mutating func setPriority(_ priority: Priority, of id: LoadID) -> Bool {
    guard let index = subscribers.firstIndex(where: { $0.id == id }), subscribers[index].priority != priority else {
      return false
    }
    subscribers[index].priority = priority
    updatePriority(of: subscribers[index].job)
    return true
  }

  // MARK: - A job's way

  mutating func enqueue(_ id: JobID) -> Bool {
    guard let job = job(id), job.phase == .preparing else { return true }
    guard count(.waiting) + backingOff < limits.maxQueued else { return false }
    change(id) { $0.phase = .waiting }
    queue.append(id)
    refresh(job.origin)
    return true
  }

  mutating func takeStarts() -> [JobID] {
    var starts: [JobID] = []
    while !isPaused, count(.active) < limits.maxConcurrent, count(.finishing) < limits.maxFinishing,
      let level = Priority.allCases.last(where: { !turns[$0.rawValue].isEmpty })
    {
      let origin = turns[level.rawValue].removeFirst()
      let waiting = queue.filter { job($0)!.origin == origin && job($0)!.priority == level }
      let id = limits.order == .fifo ? waiting.first! : waiting.last!
      queue.removeAll { $0 == id }
      change(id) { $0.phase = .active }
      refresh(origin)
      starts.append(id)
    }
    return starts
  }

  mutating func finish(_ id: JobID) {
    guard let job = job(id), job.phase == .active else { return }
    change(id) { $0.phase = .finishing }
    refresh(job.origin)
  }

  mutating func retry(
    _ id: JobID, retryAfter: Duration?, now: Instant, random: inout SeededChance
  ) -> Scheduler.Failure {
    guard let job = job(id), job.phase == .active else { return .final }
    if let retryAfter, retryAfter > .zero {
      let until = now.advanced(by: min(retryAfter, .seconds(120)))
      held[job.origin] = max(held[job.origin] ?? until, until)
      refresh(job.origin)
    }
    guard job.attempt <= job.key.retries, !loads(of: id).isEmpty else { return .final }
    let ceilings = [500, 1000, 2000, 4000, 8000, 16_000]
    let ceiling = job.attempt <= ceilings.count ? ceilings[job.attempt - 1] : 30_000
    var delay = Duration.milliseconds(Int.random(in: 0...ceiling, using: &random))
    if let retryAfter {
      if retryAfter > .seconds(120) { return .final }
      delay = max(delay, retryAfter)
    }
    let due = now.advanced(by: delay)
    guard subscribers.contains(where: { $0.job == id && ($0.deadline.map { $0 > due } ?? true) }) else { return .final }
    change(id) {
      $0.phase = .backingOff
      $0.due = due
      $0.attempt += 1
    }
    refresh(job.origin)
    return .retry(attempt: job.attempt + 1, delay: delay)
  }

  mutating func end(_ id: JobID) -> [LoadID] {
    guard let job = job(id) else { return [] }
    let waited = loads(of: id)
    subscribers.removeAll { $0.job == id }
    queue.removeAll { $0 == id }
    jobs.removeAll { $0.id == id }
    refresh(job.origin)
    forgetIfIdle(job.origin)
    return waited
  }

  mutating func detach(_ id: JobID) { change(id) { $0.isJoinable = false } }

  mutating func expired(at now: Instant) -> [LoadID] {
    var late: [LoadID] = []
    while let due = nextTimer, due <= now {
      if let index = subscribers.firstIndex(where: { $0.deadline == due }) {
        subscribers[index].deadline = nil
        late.append(subscribers[index].id)
      } else if let job = jobs.first(where: { $0.due == due }) {
        change(job.id) {
          $0.phase = .waiting
          $0.due = nil
        }
        queue.insert(job.id, at: limits.order == .fifo ? 0 : queue.count)
        refresh(job.origin)
      } else if let origin = held.first(where: { $0.value == due })?.key {
        held[origin] = nil
        refresh(origin)
        forgetIfIdle(origin)
      }
    }
    return late
  }

  // MARK: - Inside

  private mutating func change(_ id: JobID, _ body: (inout Job) -> Void) {
    if let index = jobs.firstIndex(where: { $0.id == id }) { body(&jobs[index]) }
  }

  private mutating func updatePriority(of id: JobID) {
    let old = job(id)!
    guard let new = subscribers.filter({ $0.job == id }).map(\.priority).max(), new != old.priority else { return }
    change(id) { $0.priority = new }
    guard old.phase == .waiting else { return }
    queue.removeAll { $0 == id }
    queue.insert(id, at: new < old.priority && limits.order == .fifo ? 0 : queue.count)
    refresh(old.origin)
  }

  private mutating func refresh(_ origin: Origin) {
    let own = jobs.filter { $0.origin == origin }
    let isOpen = held[origin] == nil && own.count { $0.phase == .active } < limits.maxPerOrigin
    for level in Priority.allCases {
      let belongs = isOpen && own.contains { $0.phase == .waiting && $0.priority == level }
      let isIn = turns[level.rawValue].contains(origin)
      if belongs && !isIn { turns[level.rawValue].append(origin) }
      if !belongs && isIn { turns[level.rawValue].removeAll { $0 == origin } }
    }
  }

  private mutating func forgetIfIdle(_ origin: Origin) {
    guard !jobs.contains(where: { $0.origin == origin }), held[origin] == nil,
      let seat = seats.firstIndex(of: origin)
    else { return }
    seats[seat] = nil
    freeSeats.append(seat)
  }
}
