import HTTPTypes
import Platform
import Testing

@testable import Loading

/// The transfers that an origin may have after failures. `OriginHealthTests` test the rules themselves.
struct SchedulerOriginTests {
  private static let lost = LoadError(.connect, "nobody listens")

  /// Queues jobs of origin `a` and starts as many as the limits permit.
  private func queue(of count: Int, retries: Int = 2, _ change: (inout SchedulerLimits) -> Void = { _ in }) -> (
    Queue, [Queue.Place]
  ) {
    var queue = Queue(change)
    let places = (0..<count).map { queue.wait(for: "\($0)", retries: retries) }
    _ = queue.starts()
    return (queue, places)
  }

  /// Advances past the suspension or the time of being down, and starts what may be started then.
  private func passSuspension(_ queue: inout Queue) -> [String] {
    if let until = queue.state()?.heldUntil { _ = queue.pass(queue.now.duration(to: until)) }
    return queue.starts()
  }

  /// A queue whose origin is down: a burst of six and two probes have failed. The last of the probes is active.
  ///
  /// - Returns: also the jobs that must end because of it.
  private func goDown(waiting: Int) -> (Queue, waiting: [Queue.Place], ended: [JobID]) {
    var (queue, places) = queue(of: 8 + waiting)
    for place in places[..<6] { queue.end(place, .unreachable) }
    for place in places[6..<7] {
      #expect(passSuspension(&queue) == ["6"])
      queue.end(place, .unreachable)
    }
    #expect(passSuspension(&queue) == ["7"])
    let ended = queue.record(.unreachable, by: places[7].job, error: Self.lost)
    return (queue, Array(places[8...]), ended)
  }

  // MARK: - Suspended

  @Test func `after Retry-After a probe goes first, and after its answer as many transfers as the window permits`() {
    var (queue, places) = queue(of: 40) { $0.maxPerOrigin = 4 }
    queue.end(places[0], .refused(retryAfter: .seconds(10)))
    for place in places[1..<4] { queue.end(place, .answered) }
    #expect(queue.starts().isEmpty)
    #expect(queue.state()?.health == .suspended && queue.state()?.reason == .retryAfter)
    #expect(passSuspension(&queue) == ["4"])
    #expect(queue.state()?.health == .probing && queue.state()?.reason == .retryAfter)
    queue.end(places[4], .answered)
    #expect(queue.starts() == ["5", "6"], "half of those that were refused")
    #expect(queue.state()?.health == .limited && queue.state()?.reason == .perHostLimit)
  }

  @Test func `an answer to a transfer that started before a suspension does not end it`() {
    var (queue, places) = queue(of: 12)
    queue.end(places[0], .refused(retryAfter: .seconds(5)))
    for place in places[1..<4] { queue.end(place, .answered) }
    _ = queue.pass(.seconds(5))
    // Two of the first transfers are still running.
    #expect(queue.starts().isEmpty)
    for place in places[4..<6] { queue.end(place, .answered) }
    #expect(queue.starts() == ["6"])
  }

  @Test func `an origin that a redirect led to is suspended even without jobs`() {
    var queue = Queue()
    queue.noteRefusal(at: "behind", retryAfter: .seconds(10))
    #expect(queue.state(of: "behind")?.heldUntil == queue.now + .seconds(10))
    queue.wait(for: "1", at: "behind")
    queue.wait(for: "2", at: "other")
    #expect(queue.starts() == ["2"])
    // Another refusal of the same burst is not new evidence, but may extend the suspension.
    queue.noteRefusal(at: "behind", retryAfter: .seconds(20))
    #expect(queue.state(of: "behind")?.heldUntil == queue.now + .seconds(20))
    _ = queue.pass(.seconds(20))
    #expect(queue.starts() == ["1"])
  }

  @Test func `a burst of refusals halves the window once`() {
    var (queue, places) = queue(of: 40) { $0.maxPerOrigin = 8 }
    for place in places[..<8] { queue.end(place, .refused(retryAfter: .zero)) }
    #expect(queue.starts().count == 4)
  }

  @Test func `a cancelled probe is replaced by the next job`() {
    var (queue, places) = queue(of: 9)
    for place in places[..<6] { queue.end(place, .unreachable) }
    #expect(passSuspension(&queue) == ["6"])
    #expect(queue.scheduler.unsubscribe(places[6].load) == .orphanedTransfer(places[6].job))
    #expect(queue.starts().isEmpty)
    queue.end(places[6], .inconclusive)
    #expect(queue.starts() == ["7"])
  }

  // MARK: - Down

  @Test
  func `after three failures without an answer all queued jobs of the origin end, most urgent first, and no others`() {
    var (queue, places) = queue(of: 10)
    let low = queue.wait(for: "low", .low)
    let high = queue.wait(for: "high", .high)
    queue.wait(for: "elsewhere", at: "b")
    for place in places[..<6] { queue.end(place, .unreachable) }
    #expect(passSuspension(&queue) == ["high", "elsewhere"])
    queue.end(high, .unreachable)
    let until = queue.state()!.heldUntil!
    let preparing = queue.subscribe("preparing", .highest)
    _ = queue.pass(queue.now.duration(to: until))
    #expect(queue.starts() == ["6"])
    let ended = queue.record(.unreachable, by: places[6].job, error: Self.lost)
    #expect(ended == places[7...].map(\.job) + [low.job])
    #expect(queue.state()?.health == .down && queue.state()?.heldUntil == queue.now + .seconds(30))
    #expect(queue.scheduler.job(of: preparing.load) != nil, "the cache may have it")
  }

  @Test func `a job for an origin that is down is rejected`() {
    var (queue, _, ended) = goDown(waiting: 2)
    for job in ended { _ = queue.scheduler.end(job) }
    guard case .created(let job) = queue.subscribe("new").subscription else { return #expect(Bool(false)) }
    #expect(queue.scheduler.enqueue(job) == .originDown)
    #expect(queue.scheduler.originFailure(of: job)?.kind == .connect)
    #expect(queue.scheduler.originFailure(of: job)?.message == "nobody listens")
  }

  @Test(arguments: [true, false])
  func `a job whose retry is due while the origin is down ends, unless the origin is released by now`(
    isReleased: Bool
  ) {
    var (queue, places) = queue(of: 9, retries: 5)
    for place in places[..<5] { queue.end(place, .unreachable) }
    let between = places[5].job
    var chance = SeededChance(state: 1)
    _ = queue.scheduler.retry(between, retryAfter: .seconds(20), now: queue.now, random: &chance)
    for name in ["6", "7"] {
      #expect(passSuspension(&queue) == [name])
      for job in queue.end(places[Int(name)!], .unreachable) { _ = queue.scheduler.end(job) }
    }
    #expect(queue.state()?.health == .down && queue.phase(between) == .backingOff)
    queue.now = queue.now.advanced(by: .seconds(isReleased ? 60 : 20))
    #expect(queue.scheduler.expired(at: queue.now) == .init(loads: [], jobs: isReleased ? [] : [between]))
    #expect(queue.starts() == (isReleased ? ["5"] : []))
  }

  @Test(arguments: [true, false])
  func `after half a minute a probe is sent: its answer restores the origin, its failure doubles the time`(
    isAnswered: Bool
  ) {
    let (downQueue, waiting, ended) = goDown(waiting: 2)
    var queue = downQueue
    #expect(ended == waiting.map(\.job))
    for id in queue.scheduler.allJobs { _ = queue.scheduler.end(id) }
    _ = queue.pass(.seconds(30))
    let places = (0..<8).map { queue.wait(for: "later \($0)") }
    #expect(queue.starts() == ["later 0"])
    if isAnswered {
      queue.end(places[0], .answered)
      #expect(queue.starts().count == 6)
      #expect(queue.state()?.health == .healthy)
    } else {
      #expect(queue.end(places[0], .unreachable) == places[1...].map(\.job))
      #expect(queue.state()?.heldUntil == queue.now + .seconds(60))
    }
  }

  @Test func `six refusals in a row show that an origin is down`() {
    var (queue, places) = queue(of: 20, retries: 0) { $0.maxPerOrigin = 1 }
    for place in places[..<5] {
      #expect(queue.end(place, .refused(retryAfter: nil)) == [])
      _ = passSuspension(&queue)
    }
    #expect(queue.end(places[5], .refused(retryAfter: nil)) == places[6...].map(\.job))
  }

  @Test func `an origin that is down does not affect the others`() {
    var (queue, _, ended) = goDown(waiting: 10_000)
    for job in ended { _ = queue.scheduler.end(job) }
    queue.scheduler.limits.maxConcurrent = 5
    for number in 0..<4 { queue.wait(for: "b\(number)", at: "b", .lowest) }
    #expect(queue.starts() == ["b0", "b1", "b2", "b3"])
  }

  // MARK: - Local outages

  @Test func `the first answer after a time without any releases the origins that failed in it`() {
    var queue = Queue()
    let places = ["a", "b"].flatMap { host in (0..<8).map { queue.wait(for: "\(host)\($0)", at: host, retries: 0) } }
    let other = queue.wait(for: "c", at: "c")
    _ = queue.starts()
    for place in places where queue.phase(place.job) == .active { queue.end(place, .unreachable) }
    #expect(queue.state(of: "a")?.reason == .unreachable && queue.state(of: "b")?.reason == .unreachable)
    #expect(queue.starts().isEmpty)
    queue.end(other, .answered)
    #expect(queue.starts() == ["a6", "b6"], "one of each, as a probe")
    // This time the other origin has answered, so the fault must be the origin's own.
    queue.end(places[6], .unreachable)
    let another = queue.wait(for: "c again", at: "c")
    #expect(queue.starts() == ["c again"])
    queue.end(another, .answered)
    #expect(queue.starts().isEmpty)
    #expect(queue.state(of: "a")?.reason == .unreachable)
  }

  @Test func `an answer of another origin does not end a suspension if there was no outage`() {
    var queue = Queue()
    let places = (0..<8).map { queue.wait(for: "\($0)", at: "a") }
    let others = (0..<2).map { queue.wait(for: "other \($0)", at: "b") }
    _ = queue.starts()
    queue.end(places[0], .unreachable)
    _ = queue.pass(.milliseconds(1))
    queue.end(others[0], .answered)
    #expect(queue.starts() == [], "five of the first round are still running")
    for place in places[1..<6] { queue.end(place, .unreachable) }
    #expect(queue.starts() == ["6"], "the first failed before another was heard of")
    queue.end(places[6], .unreachable)
    _ = queue.pass(.milliseconds(1))
    queue.end(others[1], .answered)
    #expect(queue.starts().isEmpty)
    #expect(queue.state()?.reason == .unreachable)
  }

  // MARK: - Retention

  @Test func `the state of an origin is kept for ten minutes after its last job`() {
    var (queue, places) = queue(of: 6)
    for place in places { queue.end(place, .unreachable) }
    _ = passSuspension(&queue)
    #expect(queue.isSpotless, "and is not told of")
    _ = queue.pass(.seconds(590))
    // The next job is a probe; the others wait.
    let next = (0..<3).map { queue.wait(for: "next \($0)") }
    #expect(queue.starts() == ["next 0"])
    queue.end(next[0], .unreachable)
    for place in next[1...] { _ = queue.scheduler.end(place.job) }
    _ = queue.pass(.seconds(600))
    #expect(queue.scheduler.origins.byOrigin.isEmpty)
    #expect(queue.scheduler.nextTimer == nil)
    for number in 0..<3 { queue.wait(for: "later \(number)") }
    #expect(queue.starts().count == 3)
  }

  @Test func `failures count across consecutive loads`() {
    var queue = Queue()
    for number in 0..<3 {
      #expect(queue.state()?.health != .down)
      let place = queue.wait(for: "\(number)")
      if queue.starts().isEmpty { #expect(passSuspension(&queue) == ["\(number)"]) }
      queue.end(place, .unreachable)
    }
    #expect(queue.state()?.health == .down)
  }

  @Test func `the number of origins kept without jobs is limited`() {
    var queue = Queue()
    for number in 0..<Scheduler.maxRemembered + 500 {
      let place = queue.wait(for: "\(number)", at: "\(number)")
      _ = queue.starts()
      queue.end(place, .unresponsive)
    }
    #expect(queue.scheduler.origins.byOrigin.count == Scheduler.maxRemembered)
    #expect(queue.scheduler.origins.rememberedCount == Scheduler.maxRemembered)
    _ = queue.pass(.seconds(600))
    #expect(queue.scheduler.origins.byOrigin.isEmpty && queue.scheduler.origins.rememberedCount == 0)
  }

  // MARK: - Windows

  @Test func `an origin's window opens while it answers, and over HTTP/2 at once`() {
    var queue = Queue()
    var places = (0..<100).map { queue.wait(for: "\($0)") }
    #expect(queue.starts().count == 6)
    for place in places[..<20] {
      _ = queue.pass(.milliseconds(10))
      queue.end(place, .answered)
      _ = queue.starts()
    }
    #expect(queue.scheduler.activeCount > 6)
    places = (0..<100).map { queue.wait(for: "b\($0)", at: "b") }
    _ = queue.starts()
    queue.record(.answered, by: places[0].job, isHTTP2: true)
    _ = queue.scheduler.end(places[0].job)
    _ = queue.starts()
    #expect(queue.state(of: "b")?.active == 16 && queue.state(of: "b")?.window == 16)
  }

  @Test func `connections are limited apart from transfers`() {
    var queue = Queue { $0.maxConnectionsPerOrigin = 2 }
    let places = (0..<100).map { queue.wait(for: "\($0)") }
    #expect(queue.starts().count == 2)
    queue.record(.answered, by: places[0].job, isHTTP2: true)
    #expect(queue.starts().count == 14)
    queue.scheduler.limits.maxPerOrigin = 3
    for place in places[..<13] { queue.end(place, .answered) }
    #expect(queue.starts().isEmpty)
    queue.end(places[13], .answered)
    #expect(queue.starts() == ["16"])
  }

  @Test func `with a rate the starts at one origin are spaced accordingly`() {
    var queue = Queue { $0.startInterval = .milliseconds(200) }
    for number in 0..<3 { queue.wait(for: "\(number)") }
    queue.wait(for: "other", at: "b")
    #expect(queue.starts() == ["0", "other"])
    #expect(queue.state()?.reason == .rate)
    #expect(queue.scheduler.nextTimer == queue.now + .milliseconds(200))
    _ = queue.pass(.milliseconds(199))
    #expect(queue.starts().isEmpty)
    _ = queue.pass(.milliseconds(1))
    #expect(queue.starts() == ["1"])
  }

  @Test func `the rate counts from the time at which a request was sent`() {
    var queue = Queue { $0.startInterval = .milliseconds(200) }
    let places = (0..<3).map { queue.wait(for: "\($0)") }
    #expect(queue.starts() == ["0"])
    let sent = queue.now.advanced(by: .milliseconds(150))
    _ = queue.pass(.milliseconds(160))
    queue.scheduler.requestSent(by: places[0].job, at: sent)
    _ = queue.pass(.milliseconds(189))
    #expect(queue.starts().isEmpty)
    _ = queue.pass(.milliseconds(1))
    #expect(queue.starts() == ["1"])
    queue.scheduler.requestSent(by: places[0].job, at: sent)
    _ = queue.pass(.milliseconds(200))
    #expect(queue.starts() == ["2"], "an older request changes nothing")
  }

  @Test func `the targets of redirects share the rate of their origin`() {
    var queue = Queue()
    let places = (0..<3).map { queue.wait(for: "\($0)") }
    #expect(queue.starts() == ["0", "1", "2"])
    let turns = places.map { queue.redirect($0, to: "b", crawlDelay: .seconds(20)) }
    #expect(turns == [.now, .later, .tooLate(.seconds(40))])
    queue.wait(for: "direct", at: "b")
    #expect(queue.starts().isEmpty)
    queue.now = queue.now.advanced(by: .seconds(20))
    #expect(queue.scheduler.expired(at: queue.now).redirects == [places[1].job])
    #expect(queue.starts().isEmpty)
    _ = queue.pass(.seconds(20))
    #expect(queue.starts() == ["direct"])
    _ = queue.scheduler.redirect(places[0].job, to: Queue.origin("b"), crawlDelay: .seconds(20), now: queue.now)
    _ = queue.scheduler.end(places[0].job)
    queue.now = queue.now.advanced(by: .seconds(20))
    #expect(queue.scheduler.expired(at: queue.now).redirects.isEmpty, "its job has ended")
  }

  // MARK: - Names

  @Test func `a name is looked up once for all jobs of the origin, and none starts before`() {
    var queue = Queue { $0.maxLookUps = 10 }
    for number in 0..<3 { queue.wait(for: "\(number)") }
    let asked = queue.scheduler.takeNamesToAsk()
    #expect(asked.map(\.origin.host) == ["a"] && queue.scheduler.takeNamesToAsk().isEmpty)
    #expect(queue.starts().isEmpty)
    #expect(queue.state()?.reason == .resolving)
    queue.scheduler.nameFound(asked[0].id)
    #expect(queue.starts() == ["0", "1", "2"])
    queue.wait(for: "3")
    #expect(queue.scheduler.takeNamesToAsk().isEmpty && queue.starts() == ["3"])
  }

  @Test func `beyond the limit of lookups the transfers look up names themselves`() {
    var queue = Queue { $0.maxLookUps = 1 }
    queue.wait(for: "1", at: "a")
    queue.wait(for: "2", at: "b")
    #expect(queue.scheduler.takeNamesToAsk().count == 1)
    #expect(queue.starts() == ["2"])
  }

  @Test func `three unanswered lookups show that an origin is down, and cost no load an attempt`() {
    var queue = Queue { $0.maxLookUps = 10 }
    let places = (0..<3).map { queue.wait(for: "\($0)") }
    let error = LoadError(.resolve, "no name server answered")
    for round in 1...3 {
      let asked = queue.scheduler.takeNamesToAsk()
      #expect(asked.count == 1)
      var chance = SeededChance(state: 1)
      let ended = queue.scheduler.nameUnanswered(asked[0].id, error: error, now: queue.now, random: &chance)
      #expect(ended == (round == 3 ? places.map(\.job) : []))
      if round < 3 { #expect(passSuspension(&queue).isEmpty) }
    }
    #expect(queue.state()?.health == .down)
    #expect(queue.scheduler.originFailure(of: places[0].job)?.kind == .resolve)
    #expect(places.allSatisfy { queue.scheduler.job($0.job)?.attempt == 1 })
  }

  // MARK: - Wait reasons

  @Test func `stats give the reason why an origin's jobs wait`() {
    var queue = Queue {
      $0.maxConcurrent = 3
      $0.maxPerOrigin = 2
    }
    let places = (0..<3).map { queue.wait(for: "a\($0)", at: "a") }
    #expect(queue.state()?.reason == nil, "it starts when it is asked for")
    #expect(queue.starts() == ["a0", "a1"])
    #expect(queue.state()?.reason == .perHostLimit)
    for number in 0..<2 { queue.wait(for: "b\(number)", at: "b") }
    #expect(queue.starts() == ["b0"])
    #expect(queue.state(of: "b")?.reason == .concurrencyLimit)
    queue.scheduler.isPaused = true
    #expect(queue.state()?.reason == .paused)
    #expect(queue.state(of: "b")?.reason == .paused)
    queue.scheduler.isPaused = false
    queue.scheduler.limits.maxFinishing = 1
    queue.scheduler.finish(places[0].job)
    queue.scheduler.limits.maxConcurrent = 10
    #expect(queue.state(of: "b")?.reason == .concurrencyLimit, "the disk is behind")
    queue.end(places[1], .refused(retryAfter: .seconds(5)))
    queue.scheduler.isPaused = true
    #expect(queue.state()?.reason == .retryAfter)
    _ = queue.scheduler.end(places[2].job)
    #expect(queue.state()?.reason == nil && queue.state()?.heldUntil != nil, "nothing waits")
  }

  @Test func `a job that backs off counts as waiting`() {
    var queue = Queue()
    let place = queue.wait(for: "1")
    _ = queue.starts()
    _ = queue.retry(place.job)
    #expect(queue.state()?.waiting == 1)
    #expect(queue.state()?.reason == .retry)
    #expect(queue.scheduler.putOff.byPriority[.normal] == 1)
  }

  @Test func `the hundred busiest of ten thousand origins are returned in order`() {
    var queue = Queue()
    for number in 0..<10_000 {
      queue.wait(for: "\(number)", at: "h\(number)")
      if number % 1000 == 7 { queue.wait(for: "more \(number)", at: "h\(number)") }
    }
    let states = queue.scheduler.originStates(atMost: 100)
    #expect(states == Array(queue.scheduler.originStates().prefix(100)))
    #expect(states.prefix(10).map(\.waiting) == Array(repeating: 2, count: 10))
    #expect(
      states.map(\.origin.host) == states.prefix(10).map(\.origin.host).sorted()
        + states.dropFirst(10).map(\.origin.host).sorted())
    #expect(queue.scheduler.originStates(atMost: 0).isEmpty)
  }

  // MARK: - Items held back

  @Test func `items held back outside the scheduler count as waiting`() {
    var queue = Queue { $0.maxQueued = 3 }
    queue.wait(for: "1")
    queue.scheduler.reserved[.lowest] = 2
    guard case .created(let job) = queue.subscribe("2").subscription else { return #expect(Bool(false)) }
    let refused = queue.scheduler.enqueue(job)
    #expect(refused == .queueFull)
    queue.scheduler.reserved[.lowest] = 1
    let taken = queue.scheduler.enqueue(job)
    #expect(taken == .accepted)
    #expect(queue.scheduler.waiting.total == 2)
  }
}
