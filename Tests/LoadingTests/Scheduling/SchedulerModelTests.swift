import Foundation
import HTTPTypes
import Platform
import Testing

@testable import Loading

/// A model test: the scheduler and a naive one under the same random events. `SCHEDULER_SEED` repeats a failed run.
struct SchedulerModelTests {
  /// One long run, and two with other seeds.
  static let runs: [(seed: UInt64, events: Int)] =
    ProcessInfo.processInfo.environment["SCHEDULER_SEED"].flatMap(UInt64.init).map { [($0, 20_000)] }
    ?? [20_000, 5_000, 5_000].map { (.random(in: .min ... .max), $0) }

  @Test(arguments: runs) func `the scheduler agrees with a naive one under random events`(seed: UInt64, events: Int) {
    var run = ModelRun(seed: seed)
    for _ in 0..<events where run.difference == nil { run.step() }
    let isLong = events >= 20_000
    // The rarest events occur about six times in the long run, and less in one of many.
    while isLong, !run.hasSeenAll, run.difference == nil, run.events < 10 * events { run.step() }
    run.drain()
    print("SCHEDULER_SEED=\(seed): \(run.events) events, \(run.tally)")
    #expect(run.difference == nil, "SCHEDULER_SEED=\(seed): \(run.difference ?? "")")
    #expect(run.hasSeenAll || !isLong, "every kind of thing has happened: \(run.tally)")
  }
}

/// One run: the events, and the comparison.
private struct ModelRun: ~Copyable {
  private var real: Scheduler
  private var naive: NaiveScheduler
  private var chance: SeededChance
  private var jitter: SeededChance
  private var now = Instant.now
  private(set) var events = 0
  private var names = GenerationalIDPool<LoadID>()
  private(set) var subscribed: Set<LoadID> = []
  private var handedBack: Set<LoadID> = []
  /// How often each kind of event has occurred, to check that the run covers all.
  private(set) var tally: [String: Int] = [
    "starts": 0, "joins": 0, "retries": 0, "late": 0, "down": 0, "ended with it": 0, "turned away": 0,
    "due too late": 0,
    "remembered": 0, "quiet": 0, "answered before": 0, "put aside": 0, "held for permission": 0,
    "tried again early": 0, "held back": 0, "over HTTP/2": 0, "limited": 0, "paced": 0,
    "names found": 0, "names unanswered": 0, "beyond limits": 0, "too late": 0, "too slow": 0,
  ]
  /// Whether every kind of event has occurred, and not just by chance.
  var hasSeenAll: Bool { tally.values.allSatisfy { $0 > 4 } }
  /// The current mood of each origin. The last one rarely answers.
  private var moods = [Mood](repeating: .well, count: 6) + [.silent]
  /// The first difference between the two.
  private(set) var difference: String?
  /// Loads that have left, and one that never existed: their slots are reused.
  private var strangers = [LoadID(99)]
  /// Jobs whose responses have begun without the scheduler having been notified.
  private var answered: Set<JobID> = []
  /// Jobs whose request has not been sent yet.
  private var unsent: Set<JobID> = []
  /// The lookups that have not ended.
  private var lookUps: [(id: OriginID, origin: Origin)] = []
  /// Jobs that have ended, for late calls.
  private var stale: [JobID] = []

  init(seed: UInt64) {
    chance = SeededChance(state: seed)
    jitter = SeededChance(state: seed ^ 0xff)
    var limits = SchedulerLimits()
    (limits.maxConcurrent, limits.maxPerOrigin, limits.maxQueued, limits.maxFinishing) = (.fixed(8), .fixed(3), 40, 4)
    limits.maxUndecoded = 4
    limits.maxLookUps = 3
    real = Scheduler(limits: limits)
    naive = NaiveScheduler(limits: limits)
  }

  /// Half of the time few transfers end, so that slots are short.
  private var isSluggish: Bool { (events / 500).isMultiple(of: 2) }

  /// For a sixth of the time no origin can be reached.
  private var isOutage: Bool { (events / 150) % 6 == 5 }

  private enum Mood { case well, busy, dead, silent, broken }
  private mutating func mood() -> Mood {
    [.well, .well, .well, .well, .well, .well, .well, .busy, .dead, .silent, .broken][random(11)]
  }

  private mutating func count(_ what: String, _ times: Int = 1) { tally[what]! += times }
  private mutating func random(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &chance) }
  private mutating func priority() -> Priority { Priority.allCases[random(5)] }

  private mutating func load() -> LoadID {
    naive.subscribers.isEmpty || random(40) == 0
      ? strangers[random(strangers.count)] : naive.subscribers[random(naive.subscribers.count)].id
  }

  /// Returns a job, usually one in the phase for which the call is meant.
  private mutating func job(in phase: Scheduler.Phase) -> JobID? {
    if let old = stale.last, random(50) == 0 { return old }
    let fitting = random(30) == 0 ? naive.jobs : naive.jobs.filter { $0.phase == phase }
    return fitting.isEmpty ? nil : fitting[random(fitting.count)].id
  }

  private mutating func same<Value: Equatable>(_ what: String, _ left: Value, _ right: Value) {
    if left != right && difference == nil { difference = "event \(events): \(what): \(left), naively \(right)" }
  }

  private mutating func handBack(_ loads: [LoadID]) {
    for load in loads {
      if !handedBack.insert(load).inserted { same("handed back twice", Optional(load), nil) }
      names.giveBack(load)
      strangers.append(load)
    }
  }

  mutating func step() {
    events += 1
    // No two events are a whole number of milliseconds apart, so that timers are due in one order only.
    let milliseconds = random(10) == 0 ? random(20_000) : random(50)
    now = now.advanced(by: .milliseconds(milliseconds) + .nanoseconds(1))
    switch random(100) {
    case ..<22: subscribe()
    case ..<32: enqueue(in: .lookingUp)
    case ..<34: enqueue(in: [.awaitingPeer, .awaitingCache, .awaitingPermission][random(3)])
    case ..<42: leave(load())
    case ..<50: setPriority()
    case ..<65: takeStarts()
    case ..<85: isSluggish && random(5) > 0 ? findQuiet() : endTransfer()
    case ..<89: end(in: .storing)
    case ..<91: findQuiet()
    case 91: random(2) == 0 ? startBeyondLimits() : deferTransfer()
    case ..<94: end(in: [.active, .waiting, .lookingUp, .awaitingPeer, .awaitingCache, .awaitingPermission][random(6)])
    case ..<96: expire()
    case ..<97 where random(2) == 0: endLookUp(isAnswered: random(3) > 0)
    case 96: decode()
    case 97: random(3) == 0 ? empty() : detach()
    case 98: random(2) == 0 ? pause() : changeMood()
    default: changeLimits()
    }
    if random(3) == 0 { takeNames() }
    if random(100) == 0 { setCrawlDelay() }
    if random(8) == 0 { endLookUp(isAnswered: !isOutage && random(4) > 0) }
    compare()
  }

  // MARK: - Events

  private mutating func subscribe() {
    let id = names.take()
    let number = random(60)
    let key = Queue.key("\(number)", retries: number % 9)
    let origin = Queue.origin("h\(number % moods.count)")
    let priority = priority()
    let deadline = random(4) == 0 ? now.advanced(by: .milliseconds(random(300_000))) : nil
    let needsDecoder = random(4) > 0
    let made = real.subscribe(
      id, to: key, of: origin, priority: priority, needsDecoder: needsDecoder, deadline: deadline)
    var new = JobID(slot: -1, serial: 0)
    if case .created(let job) = made { new = job } else { count("joins") }
    same(
      "subscribe", made,
      naive.subscribe(
        id, to: key, of: origin, priority: priority, needsDecoder: needsDecoder, deadline: deadline, new: new))
    subscribed.insert(id)
  }

  private mutating func enqueue(in phase: Scheduler.Phase) {
    guard let id = job(in: phase) else { return }
    let isPermitted = random(5) > 0
    if !isPermitted { count("held for permission") }
    let admission = real.enqueue(id, isPermitted: isPermitted)
    same("enqueue", admission, naive.enqueue(id, isPermitted: isPermitted))
    if admission == .originDown {
      count("turned away")
      end(id)
    }
  }

  private mutating func takeNames() {
    let new = real.takeNamesToAsk()
    same("names to ask", new.map(\.origin), naive.takeNamesToAsk())
    lookUps += new
  }

  private mutating func endLookUp(isAnswered: Bool) {
    guard !lookUps.isEmpty else { return }
    let (id, origin) = lookUps.remove(at: random(lookUps.count))
    // The record may have been removed and created again.
    let isKnown = real.origins.byOrigin[origin] == id && real.origins[id]?.name == .asked
    if isAnswered {
      real.nameFound(id)
      if isKnown { naive.nameFound(origin) }
      return count("names found")
    }
    count("names unanswered")
    var naiveJitter = jitter
    let error = LoadError(.resolve, "no answer")
    let ended = real.nameUnanswered(id, error: error, now: now, random: &jitter)
    same("name unanswered", ended, isKnown ? naive.nameUnanswered(origin, now: now, random: &naiveJitter) : [])
    same("chance used by names", jitter, naiveJitter)
    for job in ended { end(job) }
  }

  private mutating func deferTransfer() {
    guard let id = job(in: random(4) == 0 ? .awaitingPeer : .active) else { return }
    let phase = random(2) == 0 ? Scheduler.Phase.awaitingPeer : .awaitingCache
    real.deferTransfer(of: id, as: phase)
    naive.deferTransfer(of: id, as: phase)
    count("put aside")
  }

  /// Lets a job start whatever the limits are, as the robots.txt that the transfer of another job waits for does.
  private mutating func startBeyondLimits() {
    guard let id = job(in: [.lookingUp, .waiting, .backingOff][random(3)]) else { return }
    real.startBeyondLimits(id)
    naive.startBeyondLimits(id)
  }

  private mutating func leave(_ id: LoadID) {
    let departure = real.unsubscribe(id)
    same("leave", departure, naive.unsubscribe(id))
    if departure != .unknown { handBack([id]) }
    if case .orphanedJob(let job) = departure { stale.append(job) }
    // Some transfers continue for the cache, and can be joined.
    if case .orphanedTransfer(let job) = departure, random(3) > 0 {
      real.detach(job)
      naive.detach(job)
    }
  }

  private mutating func setPriority() {
    let (id, priority) = (load(), priority())
    same("setPriority", real.setPriority(priority, of: id), naive.setPriority(priority, of: id))
  }

  private mutating func takeStarts() {
    for job in startTransfers() {
      if random(3) == 0 { beginAnswer(of: job) } else if random(4) == 0 { unsent.insert(job) }
    }
  }

  private mutating func startTransfers() -> [JobID] {
    let starts = real.takeStarts(at: now)
    same("takeStarts", starts, naive.takeStarts(at: now))
    count("starts", starts.count)
    if !real.isPaused, naive.hasFreePermit {
      for job in naive.jobs where job.phase == .waiting {
        same("a slot is idle though \(job.id) may start", isHeld(job), true)
      }
    }
    guard !starts.isEmpty else { return [] }
    let beyond = naive.jobs.filter { $0.phase == .active && $0.isBeyondLimits }
    let regular = starts.filter { naive.job($0)?.isBeyondLimits != true }
    count("beyond limits", starts.count - regular.count)
    let least = starts.compactMap { naive.job($0) }.filter { !$0.isBeyondLimits }.map(\.priority).min() ?? .highest
    for job in naive.jobs where job.phase == .waiting && job.priority > least {
      same("a more urgent one than those that start stays behind", isHeld(job), true)
    }
    for job in regular { same("a start for decoders that are behind", naive.waitsForDecoders(job), false) }
    same("a start while paused", real.isPaused, false)
    // A start beyond the limits tells nothing about them: the window may have shrunk below what is active.
    if !regular.isEmpty {
      same("over the window of all", naive.counted <= real.transfers.window.size + beyond.count, true)
      same("over twice the window of all", real.activeCount <= 2 * real.transfers.window.size + beyond.count, true)
    }
    for state in real.originStates() where starts.contains(where: { naive.job($0)?.origin == state.origin }) {
      same("a start at a suspended origin", state.heldUntil, nil)
      if beyond.contains(where: { $0.origin == state.origin }) { continue }
      same("over the origin's window", state.active <= state.window, true)
      if state.health == .probing { same("more than one probe", state.active, 1) }
    }
    return starts
  }

  /// Whether the job must wait: its origin may not start it, the decoders are behind, or lookups are pending after a
  /// pause.
  private mutating func isHeld(_ job: NaiveScheduler.Job) -> Bool {
    if naive.known(job.origin).nextStart != nil { count("paced") }
    return naive.isShut(job.origin) || naive.waitsForDecoders(job.id) || naive.awaitsLooks
  }

  private mutating func beginAnswer(of job: JobID) {
    if isOutage { return }
    answered.insert(job)
    guard random(2) == 0 else { return }
    record(.answered, by: job)
  }

  /// Finds the transfers that have become quiet.
  private mutating func findQuiet() {
    let before = naive
    let isAnswered = Dictionary(
      uniqueKeysWithValues: answered.map { ($0, true) } + unsent.subtracting(answered).map { ($0, false) })
    real.findQuiet(at: now) { id in isAnswered[id].map { $0 ? true : nil } ?? false }
    naive.findQuiet(at: now, answered: isAnswered)
    same("quiet", real.transfers.quietCount, naive.jobs.count { $0.phase == .active && $0.isQuiet })
    count(
      "quiet",
      naive.jobs.count { $0.phase == .active && $0.isQuiet } - before.jobs.count { $0.phase == .active && $0.isQuiet })
    count("answered before", naive.jobs.count { $0.isAnswered } - before.jobs.count { $0.isAnswered })
    if let next = naive.nextQuiet { same("woken for the next quiet one", real.nextTimer.map { $0 <= next }, true) }
    if random(3) == 0 { unsent = [] }
  }

  /// Records a signal in both schedulers, and ends the jobs that wait for an origin that turns out to be down.
  private mutating func record(_ signal: TransferSignal, by id: JobID) {
    let origin = naive.job(id)?.origin
    let isHTTP2 = signal == .answered && origin == Queue.origin("h1") && random(4) == 0
    var naiveJitter = jitter
    let releases = naive.releases
    let ended = real.record(signal, by: id, isHTTP2: isHTTP2, now: now, random: &jitter) { [answered] in
      answered.contains($0)
    }
    same(
      "note \(signal)", ended,
      naive.record(signal, by: id, isHTTP2: isHTTP2, now: now, random: &naiveJitter, answered: answered))
    same("chance used by note", jitter, naiveJitter)
    count("tried again early", naive.releases - releases)
    count("over HTTP/2", isHTTP2 ? 1 : 0)
    guard !ended.isEmpty, let origin else { return }
    count("down")
    count("ended with it", ended.count)
    for job in ended { end(job) }
    same(
      "one waits for an origin that is down", naive.jobs.contains { $0.origin == origin && $0.phase == .waiting }, false
    )
    // Others of its jobs are often due while it is down: by chance alone that takes several times as many events.
    if random(4) > 0 {
      now = now.advanced(by: .milliseconds(random(30_000)) + .nanoseconds(1))
      expire()
    }
  }

  /// The signal of a transfer at an origin of that mood: usually the typical one, sometimes another.
  private mutating func signal(at origin: Origin) -> TransferSignal {
    let usual = moods[Int(origin.host.dropFirst())!]
    if isOutage && usual != .silent { return random(10) == 0 ? .inconclusive : .unreachable }
    let mood = random(usual == .silent ? 64 : 8) == 0 ? mood() : usual
    switch mood {
    case .well: return random(10) == 0 ? .inconclusive : .answered
    case .busy: return .refused(retryAfter: random(2) == 0 ? nil : .seconds(random(140) - 5))
    case .dead: return random(4) == 0 ? .closed : .unreachable
    case .silent: return .unresponsive
    case .broken: return .broken
    }
  }

  private mutating func endTransfer() {
    guard let id = job(in: .active) else { return }
    endTransfer(of: id, signal(at: naive.job(id)?.origin ?? Queue.origin("h0")))
  }

  private mutating func endTransfer(of id: JobID, _ signal: TransferSignal) {
    record(signal, by: id)
    // Sometimes another transfer follows for the same job.
    if random(20) == 0 { return }
    answered.remove(id)
    if signal == .answered {
      real.finish(id)
      naive.finish(id)
    } else {
      retry(id, signal)
    }
  }

  private mutating func retry(_ id: JobID, _ signal: TransferSignal) {
    var retryAfter: Duration?
    if case .refused(let wait) = signal { retryAfter = wait }
    var naiveJitter = jitter
    let failure = real.retry(id, retryAfter: retryAfter, now: now, random: &jitter)
    same("retry", failure, naive.retry(id, retryAfter: retryAfter, now: now, random: &naiveJitter))
    same("chance used by retry", jitter, naiveJitter)
    if failure == .final { end(id) } else { count("retries") }
  }

  /// Changes the number of images that wait for a decoder.
  private mutating func decode() {
    if random(3) == 0 { real.undecoded = PriorityCounts() } else { real.undecoded[priority()] = random(4) }
    naive.undecoded = real.undecoded
    count("held back", naive.jobs.count { $0.phase == .waiting && naive.waitsForDecoders($0.id) })
  }

  private mutating func changeMood() { moods[random(moods.count - 1)] = mood() }

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
    let expired = real.expired(at: now)
    same("expired", expired, naive.expired(at: now))
    count("late", expired.loads.count)
    count("due too late", expired.jobs.count)
    for id in expired.loads { leave(id) }
    for id in expired.jobs { end(id) }
    let late = naive.tooLate(at: now)
    if !late.isEmpty { same("woken for those that are too late", real.nextTimer.map { $0 <= now }, true) }
    let tooLate = real.takeTooLate()
    same("too late", Set(tooLate.map(\.load)), late)
    same("too late once", tooLate.count, late.count)
    count("too late", tooLate.count)
    count("too slow", tooLate.count { $0.hold.isTooLong })
    // The host may be slow to end some.
    for (id, job, _) in tooLate { if random(8) > 0 { leave(id) } else { real.checkDeadlines(of: job) } }
  }

  private mutating func setCrawlDelay() {
    guard let id = job(in: .lookingUp) else { return }
    let delay = random(10) > 0 ? nil : Duration.seconds(random(250))
    real.setCrawlDelay(delay, forOriginOf: id)
    naive.setCrawlDelay(delay, forOriginOf: id)
  }

  /// Ends all jobs of an origin.
  private mutating func empty() {
    let origin = Queue.origin("h\(random(moods.count))")
    for job in naive.jobs where job.origin == origin { end(job.id) }
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
    switch random(11) {
    case 5:
      naive.reserved = random(2) == 0 ? 0 : random(30)
      real.reserved = PriorityCounts()
      real.reserved[priority()] = naive.reserved
    case 0: limits.maxConcurrent = random(4) == 0 ? .auto : .fixed(1 + random(12))
    case 1: limits.maxPerOrigin = random(2) == 0 ? .auto : .fixed(1 + random(5))
    case 2: limits.maxQueued = random(60)
    case 3: limits.maxFinishing = 1 + random(6)
    case 4: limits.maxUndecoded = 1 + random(8)
    case 6: limits.maxTransfers = 4 + random(12)
    case 7: limits.startInterval = random(3) == 0 ? .milliseconds(10 + random(2000)) : nil
    case 8: limits.maxConnectionsPerOrigin = random(2) == 0 ? 1 + random(4) : nil
    case 9: limits.maxLookUps = random(6)
    default: limits.order = random(2) == 0 ? .fifo : .lifo
    }
    real.limits = limits
    naive.limits = limits
  }

  // MARK: - Comparing

  private mutating func compare() {
    same("active", real.activeCount, naive.count(.active))
    same("finishing", real.jobs.storingCount, naive.count(.storing))
    same("backing off", real.jobs.backingOffCount, naive.backingOff)
    same("deferred", real.jobs.deferredCount, naive.deferred)
    same("waiting", real.waiting.total, naive.count(.waiting))
    same("quiet", real.transfers.quietCount, naive.jobs.count { $0.phase == .active && $0.isQuiet })
    same("window of all", real.transfers.window.size, naive.window.size)
    same("look-ups", real.origins.lookUpCount, naive.origins.count { $0.name == .asked })
    same("transfers and their jobs", real.transfers.list.allSatisfy { real.jobs[$0.job].phase == .active }, true)
    if events % 16 == 0 { compareEverything() }
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
    same("origins", Set(real.origins.byOrigin.keys), Set(naive.origins.map(\.origin)))
    for known in naive.origins {
      let state = naive.state(of: known.origin)
      same("state", states[known.origin], state)
      if state == nil { count("remembered") }
      if state?.health == .limited { count("limited") }
    }
    if let next = naive.nextTimer { same("woken in time", real.nextTimer.map { $0 <= next }, true) }
    same("timers bounded", real.timerCount <= 3 * (naive.subscribers.count + naive.jobs.count + 14) + 65, true)
    same("loads subscribed", names.count, naive.subscribers.count)
  }

  /// From here on every transfer succeeds: every job must get its turn, and nothing may be left.
  mutating func drain() {
    guard difference == nil else { return }
    compareEverything()
    real.limits.maxQueued = 1000
    naive.limits.maxQueued = 1000
    real.limits.startInterval = nil
    naive.limits.startInterval = nil
    real.isPaused = false
    naive.isPaused = false
    real.undecoded = PriorityCounts()
    naive.undecoded = PriorityCounts()
    moods = moods.map { _ in .well }
    var rounds = 0
    let most = 2 * naive.jobs.count + 10
    while !naive.jobs.isEmpty, difference == nil {
      rounds += 1
      if rounds > most { return same("a job starves", naive.jobs.map(\.phase), []) }
      for job in naive.jobs where job.phase == .lookingUp || job.phase.isDeferred {
        let admission = real.enqueue(job.id)
        same("enqueue", admission, naive.enqueue(job.id))
        if admission == .originDown { end(job.id) }
      }
      takeNames()
      while !lookUps.isEmpty { endLookUp(isAnswered: true) }
      now = now.advanced(by: .seconds(601) + .nanoseconds(1))
      expire()
      takeStarts()
      for job in naive.jobs where job.phase == .active { endTransfer(of: job.id, .answered) }
      for job in naive.jobs where job.phase == .storing { end(job.id) }
      compareEverything()
    }
    now = now.advanced(by: .seconds(3600))
    expire()
    same("jobs left", real.isEmpty, true)
    same("origins left", real.origins.byOrigin.count, 0)
    same("origins remembered", real.origins.rememberedCount, 0)
    same("waiting left", real.waiting, PriorityCounts())
    same(
      "slots leaked",
      [
        real.activeCount, real.jobs.storingCount, real.jobs.backingOffCount, real.jobs.deferredCount,
        real.transfers.quietCount, real.origins.lookUpCount,
      ], [0, 0, 0, 0, 0, 0])
    same("names leaked", [real.jobs.ids.count, real.origins.ids.count, names.count], [0, 0, 0])
    same("each load handed back once", handedBack, subscribed)
    same("timers left", real.nextTimer, nil)
    compareEverything()
  }
}
