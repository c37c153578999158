import Foundation
import HTTPTypes
import Testing

@testable import Loading

/// The scheduler and a naive one under the same random events. `SCHEDULER_SEED` repeats a run that failed.
struct SchedulerModelTests {
  static let seeds: [UInt64] =
    ProcessInfo.processInfo.environment["SCHEDULER_SEED"].flatMap(UInt64.init).map { [$0] }
    ?? (0..<4).map { _ in .random(in: .min ... .max) }

  @Test(arguments: seeds) func `it does what a naive one does, whatever happens`(seed: UInt64) {
    var run = ModelRun(seed: seed)
    for _ in 0..<30_000 where run.difference == nil { run.step() }
    run.windUp()
    #expect(run.difference == nil, "SCHEDULER_SEED=\(seed): \(run.difference ?? "")")
    #expect(run.subscribed.count > 1000 && run.started > 1000, "the events are worth the name")
  }
}

/// One run: the events, and what is compared.
private struct ModelRun: ~Copyable {
  private var real: Scheduler
  private var naive: NaiveScheduler
  private var chance: SeededChance
  private var jitter: SeededChance
  private var now = ContinuousClock.now
  private var events = 0
  private var serial: UInt64 = 0
  private(set) var subscribed: Set<LoadID> = []
  private var handedBack: Set<LoadID> = []
  private(set) var started = 0
  /// The first thing in which the two differ.
  private(set) var difference: String?
  /// Jobs that have ended, for calls that come too late.
  private var stale: [JobID] = []

  init(seed: UInt64) {
    chance = SeededChance(state: seed)
    jitter = SeededChance(state: seed ^ 0xff)
    var limits = SchedulerLimits()
    (limits.maxConcurrent, limits.maxPerOrigin, limits.maxQueued, limits.maxFinishing) = (8, 3, 40, 4)
    real = Scheduler(limits: limits)
    naive = NaiveScheduler(limits: limits)
  }

  private mutating func random(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &chance) }
  private mutating func priority() -> Priority { Priority.allCases[random(5)] }

  private mutating func load() -> LoadID {
    naive.subscribers.isEmpty || random(40) == 0
      ? LoadID(UInt64(random(Int(serial) + 2))) : naive.subscribers[random(naive.subscribers.count)].id
  }

  /// Mostly one in the phase that the call is for.
  private mutating func job(in phase: Scheduler.Phase) -> JobID? {
    if let old = stale.last, random(50) == 0 { return old }
    let fitting = random(30) == 0 ? naive.jobs : naive.jobs.filter { $0.phase == phase }
    return fitting.isEmpty ? nil : fitting[random(fitting.count)].id
  }

  private mutating func same<Value: Equatable>(_ what: String, _ left: Value, _ right: Value) {
    if left != right && difference == nil { difference = "event \(events): \(what): \(left), naively \(right)" }
  }

  private mutating func handBack(_ loads: [LoadID]) {
    for load in loads where !handedBack.insert(load).inserted {
      same("handed back twice", Optional(load), nil)
    }
  }

  mutating func step() {
    events += 1
    // No two events come at times a whole number of milliseconds apart: what is due is due in one order only.
    let milliseconds = random(20) == 0 ? random(20_000) : random(50)
    now = now.advanced(by: .milliseconds(milliseconds) + .nanoseconds(1))
    switch random(100) {
    case ..<26: subscribe()
    case ..<36: enqueue()
    case ..<42: leave(load())
    case ..<50: setPriority()
    case ..<65: takeStarts()
    case ..<76: finish()
    case ..<86: retry()
    case ..<92: end(in: .finishing)
    case ..<94: end(in: [.active, .waiting, .preparing][random(3)])
    case ..<97: expire()
    case 97: detach()
    case 98: pause()
    default: changeLimits()
    }
    compare()
  }

  // MARK: - Events

  private mutating func subscribe() {
    serial += 1
    let id = LoadID(serial)
    let number = random(60)
    let key = Queue.key("\(number)", retries: number % 9)
    let origin = Queue.origin("\(number % 7)")
    let priority = priority()
    let deadline = random(4) == 0 ? now.advanced(by: .milliseconds(random(60_000))) : nil
    let made = real.subscribe(id, to: key, of: origin, priority: priority, deadline: deadline)
    var new = JobID(slot: -1, serial: 0)
    if case .created(let job) = made { new = job }
    same(
      "subscribe", made,
      naive.subscribe(id, to: key, of: origin, priority: priority, deadline: deadline, new: new))
    subscribed.insert(id)
  }

  private mutating func enqueue() {
    guard let id = job(in: .preparing) else { return }
    same("enqueue", real.enqueue(id), naive.enqueue(id))
  }

  private mutating func leave(_ id: LoadID) {
    let departure = real.leave(id)
    same("leave", departure, naive.leave(id))
    if departure != .unknown { handBack([id]) }
    if case .jobAbandoned(let job) = departure { stale.append(job) }
  }

  private mutating func setPriority() {
    let (id, priority) = (load(), priority())
    same("setPriority", real.setPriority(priority, of: id), naive.setPriority(priority, of: id))
  }

  private mutating func takeStarts() {
    let starts = real.takeStarts()
    same("takeStarts", starts, naive.takeStarts())
    started += starts.count
    guard !starts.isEmpty else { return }
    same("a start while paused", real.isPaused, false)
    same("over the limit", real.activeCount <= real.limits.maxConcurrent, true)
    for state in real.originStates() where starts.contains(where: { naive.job($0)?.origin == state.origin }) {
      same("over the origin's limit", state.active <= real.limits.maxPerOrigin, true)
      same("a start at a held origin", state.heldUntil, nil)
    }
  }

  private mutating func finish() {
    guard let id = job(in: .active) else { return }
    real.finish(id)
    naive.finish(id)
  }

  private mutating func retry() {
    guard let id = job(in: .active) else { return }
    let retryAfter: Duration? = random(5) == 0 ? .seconds(random(140)) : nil
    var naiveJitter = jitter
    let failure = real.retry(id, retryAfter: retryAfter, now: now, random: &jitter)
    same("retry", failure, naive.retry(id, retryAfter: retryAfter, now: now, random: &naiveJitter))
    same("chance used", jitter, naiveJitter)
    if failure == .final { end(id) }
  }

  private mutating func end(in phase: Scheduler.Phase) {
    guard let id = job(in: phase) else { return }
    end(id)
  }

  private mutating func end(_ id: JobID) {
    let loads = real.end(id)
    same("end", loads, naive.end(id))
    handBack(loads)
    stale.append(id)
  }

  private mutating func expire() {
    let late = real.expired(at: now)
    same("expired", late, naive.expired(at: now))
    for id in late { leave(id) }
  }

  private mutating func detach() {
    guard let id = job(in: .active) else { return }
    real.detach(id)
    naive.detach(id)
  }

  private mutating func pause() {
    real.isPaused = random(4) == 0
    naive.isPaused = real.isPaused
  }

  private mutating func changeLimits() {
    var limits = real.limits
    switch random(5) {
    case 0: limits.maxConcurrent = 1 + random(12)
    case 1: limits.maxPerOrigin = 1 + random(5)
    case 2: limits.maxQueued = random(60)
    case 3: limits.maxFinishing = 1 + random(6)
    default: limits.order = random(2) == 0 ? .fifo : .lifo
    }
    real.limits = limits
    naive.limits = limits
  }

  // MARK: - Comparing

  private mutating func compare() {
    same("active", real.activeCount, naive.count(.active))
    same("finishing", real.finishingCount, naive.count(.finishing))
    same("backing off", real.backingOffCount, naive.backingOff)
    same("waiting", real.waiting.total, naive.count(.waiting))
    if events % 8 == 0 { compareEverything() }
  }

  private mutating func compareEverything() {
    for priority in Priority.allCases {
      let waiting = naive.jobs.count { $0.phase == .waiting && $0.priority == priority }
      same("waiting \(priority)", real.waiting[priority], waiting)
    }
    same("number of jobs", real.allJobs.count, naive.jobs.count)
    for job in naive.jobs {
      let own = real.job(job.id)
      same("phase", own?.phase, job.phase)
      same("attempt", own?.attempt, job.attempt)
      same("priority", own?.priority, job.priority)
      same("key", own?.key, job.key)
      same("subscribers", real.subscribers(of: job.id), naive.loads(of: job.id))
      same("joinable", real.job(for: job.key), naive.joinable(job.key))
    }
    let states = Dictionary(uniqueKeysWithValues: real.originStates().map { ($0.origin, $0) })
    same("origins", Set(states.keys), Set(naive.origins))
    for origin in naive.origins { same("state", states[origin], naive.states(of: origin)) }
    if let next = naive.nextTimer { same("woken in time", real.nextTimer.map { $0 <= next }, true) }
    same("timers bounded", real.timerCount <= 3 * (naive.subscribers.count + naive.jobs.count + 7) + 65, true)
  }

  /// Ends all there is: then nothing may be left.
  mutating func windUp() {
    guard difference == nil else { return }
    compareEverything()
    for job in naive.jobs.shuffled(using: &chance) { end(job.id) }
    now = now.advanced(by: .seconds(3600))
    expire()
    same("jobs left", real.isEmpty, true)
    same("origins left", real.originStates(), [])
    same("waiting left", real.waiting, PriorityCounts())
    same("others left", [real.activeCount, real.finishingCount, real.backingOffCount], [0, 0, 0])
    same("handed back", handedBack, subscribed)
    same("timers left", real.nextTimer, nil)
    compareEverything()
  }
}
