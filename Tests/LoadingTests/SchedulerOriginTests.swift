import HTTPTypes
import Testing

@testable import Loading

/// What an origin may do after its transfers have gone badly.
struct SchedulerOriginTests {
  /// So many jobs of origin `a`, all but those over the limit started.
  private func queue(of count: Int, retries: Int = 2, _ change: (inout SchedulerLimits) -> Void = { _ in }) -> (
    Queue, [Queue.Place]
  ) {
    var queue = Queue(change)
    let places = (0..<count).map { queue.wait(for: "\($0)", retries: retries) }
    _ = queue.starts()
    return (queue, places)
  }

  /// A queue whose origin is unreachable: six have tried, and the circuit is open. More jobs wait.
  private func openCircuit(waiting: Int, retries: Int = 2) -> (Queue, [Queue.Place]) {
    var (queue, places) = queue(of: 6 + waiting, retries: retries)
    for place in places[..<6] { queue.end(place, .unreachable) }
    return (queue, Array(places[6...]))
  }

  /// Lets the hold pass, and starts what may be started then.
  private func passHold(_ queue: inout Queue) -> [String] {
    if let until = queue.state()?.heldUntil { _ = queue.pass(queue.now.duration(to: until)) }
    return queue.starts()
  }

  // MARK: - Refused

  @Test func `after Retry-After an origin is let in again one by one`() {
    var (queue, places) = queue(of: 40) { $0.maxPerOrigin = 4 }
    queue.end(places[0], .refused(retryAfter: .seconds(10)))
    for place in places[1..<4] { queue.end(place, .answered) }
    #expect(queue.starts().isEmpty)
    #expect(queue.state()?.reason == .retryAfter)
    #expect(passHold(&queue) == ["4"])
    #expect(queue.state()?.reason == .readmission)
    var next = 4
    for expected in [2, 3, 4, 4, 4] {
      queue.end(places[next], .answered)
      next += 1
      _ = queue.starts()
      #expect(queue.scheduler.activeCount == expected)
    }
    #expect(queue.state()?.reason == .perHostLimit)
  }

  @Test func `without Retry-After the hold doubles from half a second to half a minute, and half of it is chance`() {
    for (chance, part) in [(UInt64(1), 2), (UInt64.max, 1)] {
      var (queue, places) = queue(of: 20) { $0.maxPerOrigin = 1 }
      var generator = ConstantChance(value: chance)
      for (place, ceiling) in zip(places, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
        _ = queue.scheduler.note(.refused(retryAfter: nil), by: place.job, now: queue.now, random: &generator)
        #expect(queue.state()?.heldUntil == queue.now + .milliseconds(ceiling / part))
        #expect(queue.state()?.reason == .unavailable)
        _ = queue.scheduler.end(place.job)
        _ = passHold(&queue)
      }
    }
  }

  @Test func `an answer lets the doubling start over`() {
    var (queue, places) = queue(of: 9, retries: 0) { $0.maxPerOrigin = 1 }
    for place in places[..<5] {
      queue.end(place, .refused(retryAfter: nil))
      _ = passHold(&queue)
    }
    queue.end(places[5], .answered)
    _ = queue.starts()
    queue.end(places[6], .refused(retryAfter: nil))
    #expect(queue.state()!.heldUntil! <= queue.now + .milliseconds(500))
  }

  @Test func `a burst of refusals is one`() {
    var (queue, places) = queue(of: 7)
    for place in places[..<6] { queue.end(place, .refused(retryAfter: nil)) }
    #expect(queue.state()!.heldUntil! <= queue.now + .milliseconds(500))
    #expect(passHold(&queue) == ["6"])
    queue.end(places[6], .refused(retryAfter: nil))
    let second = queue.now
    #expect(queue.state()!.heldUntil! >= second + .milliseconds(500))
    #expect(queue.state()!.heldUntil! <= second + .milliseconds(1000))
  }

  @Test func `what had started before a hold opens no door by its answer`() {
    var (queue, places) = queue(of: 12)
    queue.end(places[0], .refused(retryAfter: .seconds(5)))
    for place in places[1..<4] { queue.end(place, .answered) }
    _ = queue.pass(.seconds(5))
    // Two of the first are still running.
    #expect(queue.starts().isEmpty)
    #expect(queue.state()?.reason == .readmission)
    for place in places[4..<6] { queue.end(place, .answered) }
    #expect(queue.starts() == ["6"])
  }

  @Test func `a late refusal with a longer Retry-After extends the hold, and one after it holds anew`() {
    var (queue, places) = queue(of: 12)
    queue.end(places[0], .refused(retryAfter: nil))
    queue.end(places[1], .refused(retryAfter: .seconds(7)))
    #expect(queue.state()?.heldUntil == queue.now + .seconds(7))
    #expect(queue.state()?.reason == .retryAfter)
    queue.end(places[2], .refused(retryAfter: .seconds(3)))
    #expect(queue.state()?.heldUntil == queue.now + .seconds(7))
    _ = queue.pass(.seconds(7))
    queue.end(places[3], .refused(retryAfter: .seconds(2)))
    #expect(queue.state()?.heldUntil == queue.now + .seconds(2))
    queue.end(places[4], .refused(retryAfter: nil))
    #expect(queue.state()?.heldUntil == queue.now + .seconds(2))
  }

  @Test func `nor while others may be about to come`() {
    var queue = Queue()
    for number in 0..<6 { queue.wait(for: "silent \(number)", at: "silent") }
    guard case .created(let other) = queue.subscribe("other", at: "other").subscription else {
      return #expect(Bool(false))
    }
    #expect(queue.starts() == ["silent 0"], "the other is being looked for in the cache")
    _ = queue.scheduler.enqueue(other)
    #expect(queue.starts() == ["other", "silent 1", "silent 2", "silent 3", "silent 4", "silent 5"])
  }

  @Test func `an origin that a redirect led to is held, though nobody asked it`() {
    var queue = Queue()
    queue.noteRefusal(at: "behind", retryAfter: .seconds(10))
    #expect(queue.state(of: "behind")?.heldUntil == queue.now + .seconds(10))
    queue.wait(for: "1", at: "behind")
    queue.wait(for: "2", at: "other")
    #expect(queue.starts() == ["2"])
    // Another one of the same crowd says nothing new, but may extend it.
    queue.noteRefusal(at: "behind", retryAfter: .seconds(20))
    #expect(queue.state(of: "behind")?.heldUntil == queue.now + .seconds(20))
    _ = queue.pass(.seconds(20))
    #expect(queue.starts() == ["1"])
  }

  @Test func `one that answers nothing but refusals is probed from the sixth on, for all that wait`() {
    var (queue, places) = queue(of: 20, retries: 0) { $0.maxPerOrigin = 1 }
    for place in places[..<5] {
      let failed = queue.end(place, .refused(retryAfter: nil))
      #expect(failed == nil)
      _ = passHold(&queue)
    }
    let failed = queue.end(places[5], .refused(retryAfter: nil))
    #expect(failed?.exhausted == places[6...].map(\.job))
  }

  // MARK: - Unknown

  @Test func `an origin that has not answered yet gets a second transfer only where no other origin wants one`() {
    var queue = Queue { $0.maxConcurrent = 4 }
    for number in 0..<6 { queue.wait(for: "silent \(number)", at: "silent") }
    let others = (0..<9).map { queue.wait(for: "other \($0)", at: "other") }
    #expect(queue.starts() == ["silent 0", "other 0", "silent 1", "other 1"], "of neither is known whether it answers")
    queue.end(others[0], .answered)
    #expect(queue.starts() == ["other 2"])
    for place in others[1...6] {
      queue.end(place, .answered)
      #expect(queue.starts().allSatisfy { $0.hasPrefix("other") })
    }
    queue.end(others[7], .answered)
    #expect(queue.starts() == ["silent 2"], "nobody else wants it")
  }

  // MARK: - Unreachable

  @Test func `the fifth failure to connect opens the circuit, and no answer between may be`() {
    var (queue, places) = queue(of: 20)
    for place in places[..<4] { queue.end(place, .unreachable) }
    queue.end(places[4], .answered)
    _ = queue.starts()
    for place in places[5..<9] { queue.end(place, .unreachable) }
    #expect(queue.state()?.heldUntil == nil)
    queue.end(places[9], .unreachable)
    #expect(queue.state()!.heldUntil! >= queue.now + .milliseconds(500))
    #expect(queue.state()!.heldUntil! <= queue.now + .seconds(1))
    #expect(queue.state()?.reason == .unreachable)
  }

  @Test func `a hold is followed by one probe, the most urgent job`() {
    var (queue, _) = openCircuit(waiting: 3)
    queue.wait(for: "urgent", .highest)
    #expect(passHold(&queue) == ["urgent"])
    #expect(queue.state()?.heldUntil == nil)
    #expect(queue.state()?.reason == .unreachable)
  }

  @Test func `an answer to the probe closes the circuit, and the others follow one by one`() {
    var (queue, waiting) = openCircuit(waiting: 10)
    #expect(passHold(&queue) == ["6"])
    #expect(queue.end(waiting[0], .answered) == nil)
    #expect(queue.starts() == ["7", "8"])
    #expect(queue.state()?.reason == .readmission)
    // One failure is none again.
    #expect(queue.end(waiting[1], .unreachable) == nil)
    #expect(queue.state()?.heldUntil == nil)
  }

  @Test func `a refusal is an answer, too: the circuit is closed and the origin held`() {
    var (queue, waiting) = openCircuit(waiting: 3)
    _ = passHold(&queue)
    #expect(queue.end(waiting[0], .refused(retryAfter: .seconds(20))) == nil)
    #expect(queue.state()?.reason == .retryAfter)
    _ = passHold(&queue)
    #expect(queue.end(waiting[1], .unreachable) == nil)
    #expect(queue.state()?.heldUntil == nil)
  }

  @Test func `a circuit opens for a second, doubling to half a minute`() {
    for (chance, part) in [(UInt64(1), 2), (UInt64.max, 1)] {
      var (queue, places) = queue(of: 20, retries: 20) { $0.maxPerOrigin = 1 }
      var generator = ConstantChance(value: chance)
      var holds: [Duration] = []
      for place in places[..<12] {
        _ = queue.scheduler.note(.unreachable, by: place.job, now: queue.now, random: &generator)
        _ = queue.scheduler.end(place.job)
        if let until = queue.state()?.heldUntil { holds.append(queue.now.duration(to: until)) }
        _ = passHold(&queue)
      }
      #expect(holds == [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000].map { .milliseconds($0 / part) })
    }
  }

  @Test func `a failed probe is an attempt of each that waits, and nobody has fewer than promised`() {
    var (queue, waiting) = openCircuit(waiting: 100)
    // The first two of a hundred are the probes; their own retries are another matter.
    for attempt in 2...3 {
      _ = passHold(&queue)
      let failed = queue.end(waiting.removeFirst(), .unreachable)
      #expect(failed?.exhausted == [])
      #expect(failed?.retrying == waiting.map(\.job))
      #expect(failed?.delay == queue.now.duration(to: queue.state()!.heldUntil!))
      #expect(waiting.allSatisfy { queue.scheduler.job($0.job)?.attempt == attempt })
    }
    _ = passHold(&queue)
    let failed = queue.end(waiting.removeFirst(), .unreachable)
    #expect(failed?.exhausted == waiting.map(\.job))
    #expect(failed?.retrying == [])
    #expect(waiting.allSatisfy { queue.scheduler.job($0.job)?.attempt == 3 })
  }

  @Test func `a failed probe tells of the waiting in the order of their urgency, and of nobody else`() {
    var (queue, waiting) = openCircuit(waiting: 2, retries: 0)
    let low = queue.wait(for: "low", .low)
    let high = queue.wait(for: "high", .high)
    queue.wait(for: "elsewhere", at: "b")
    let backingOff = queue.wait(for: "backing off", .highest)
    _ = passHold(&queue)
    _ = queue.retry(backingOff.job)
    let preparing = queue.subscribe("preparing")
    #expect(queue.starts() == ["high"])
    let failed = queue.end(high, .unreachable)
    #expect(failed?.exhausted == waiting.map(\.job))
    #expect(failed?.retrying == [low.job])
    #expect(queue.scheduler.job(backingOff.job)?.attempt == 2)
    #expect(queue.scheduler.job(queue.scheduler.job(of: preparing.load)!)?.attempt == 1)
  }

  @Test func `who would wait in vain for the next probe is exhausted by this one`() {
    var (queue, _) = openCircuit(waiting: 0)
    let probe = queue.wait(for: "probe")
    let hasty = queue.wait(for: "hasty", deadline: .seconds(1))
    let patient = queue.wait(for: "patient", deadline: .seconds(600))
    _ = passHold(&queue)
    let failed = queue.end(probe, .unreachable)
    #expect(failed?.exhausted == [hasty.job])
    #expect(failed?.retrying == [patient.job])
  }

  @Test func `once something answers after a time when nothing did, what could not be reached is tried at once`() {
    var queue = Queue()
    let places = ["a", "b"].flatMap { host in (0..<8).map { queue.wait(for: "\(host)\($0)", at: host, retries: 0) } }
    let other = queue.wait(for: "c", at: "c")
    _ = queue.starts()
    for place in places where queue.phase(place.job) == .active { queue.end(place, .unreachable) }
    #expect(queue.state(of: "a")?.reason == .unreachable && queue.state(of: "b")?.reason == .unreachable)
    #expect(queue.starts().isEmpty)
    queue.end(other, .answered)
    #expect(queue.starts() == ["a6", "b6"], "one of each, as a probe")
    // This time the other has been heard of, and it must be the origin's own fault.
    queue.end(places[6], .unreachable)
    let another = queue.wait(for: "c again", at: "c")
    #expect(queue.starts() == ["c again"])
    queue.end(another, .answered)
    #expect(queue.starts().isEmpty)
    #expect(queue.state(of: "a")?.reason == .unreachable)
  }

  @Test func `an answer of another does not end the hold of one that failed meanwhile`() {
    var queue = Queue()
    let places = (0..<8).map { queue.wait(for: "\($0)", at: "a") }
    let others = (0..<2).map { queue.wait(for: "other \($0)", at: "b") }
    _ = queue.starts()
    for place in places[..<3] { queue.end(place, .unreachable) }
    _ = queue.pass(.milliseconds(1))
    queue.end(others[0], .answered)
    for place in places[3..<6] { queue.end(place, .unreachable) }
    _ = queue.pass(.milliseconds(1))
    queue.end(others[1], .answered)
    #expect(queue.starts().isEmpty)
    #expect(queue.state()?.reason == .unreachable)
  }

  @Test func `failures of what started before the circuit opened are not those of a probe`() {
    var (queue, places) = queue(of: 8)
    for place in places[..<5] { #expect(queue.end(place, .unreachable) == nil) }
    let until = queue.state()?.heldUntil
    #expect(queue.end(places[5], .unreachable) == nil)
    #expect(queue.state()?.heldUntil == until)
    #expect(queue.scheduler.job(places[6].job)?.attempt == 1)
  }

  @Test func `a probe that its host cancels leaves its place to the next`() {
    var (queue, waiting) = openCircuit(waiting: 3)
    #expect(passHold(&queue) == ["6"])
    #expect(queue.scheduler.leave(waiting[0].load) == .transferAbandoned(waiting[0].job))
    #expect(queue.starts().isEmpty)
    #expect(queue.end(waiting[0], .inconclusive) == nil)
    #expect(queue.starts() == ["7"])
    #expect(queue.end(waiting[1], .unreachable)?.retrying == [waiting[2].job])
  }

  @Test(arguments: [Contact.inconclusive, .unresponsive])
  func `a probe that tells nothing is followed by another, and the circuit stays open`(contact: Contact) {
    var (queue, waiting) = openCircuit(waiting: 3)
    _ = passHold(&queue)
    #expect(queue.end(waiting[0], contact) == nil)
    #expect(queue.state()?.heldUntil == nil)
    #expect(queue.starts() == ["7"])
    #expect(queue.state()?.reason == .unreachable)
    #expect(queue.end(waiting[1], .unreachable) != nil)
  }

  @Test func `a dead origin costs the others nothing`() {
    var (queue, _) = openCircuit(waiting: 10_000)
    queue.scheduler.limits.maxConcurrent = 4
    for number in 0..<4 { queue.wait(for: "b\(number)", at: "b", .lowest) }
    #expect(queue.starts() == ["b0", "b1", "b2", "b3"])
  }

  // MARK: - Being remembered

  @Test func `how an origin was is remembered for a minute after its last job`() {
    var (queue, waiting) = openCircuit(waiting: 1)
    _ = passHold(&queue)
    queue.end(waiting[0], .unreachable)
    _ = passHold(&queue)
    #expect(queue.isSpotless, "and is not told of")
    _ = queue.pass(.seconds(59))
    // The next to come is a probe; those with it wait.
    let places = (0..<3).map { queue.wait(for: "next \($0)") }
    #expect(queue.starts() == ["next 0"])
    #expect(queue.end(places[0], .unreachable)?.retrying == [places[1].job, places[2].job])
    for place in places[1...] { _ = queue.scheduler.end(place.job) }
    _ = passHold(&queue)
    _ = queue.pass(.seconds(60))
    #expect(queue.scheduler.byOrigin.isEmpty)
    #expect(queue.scheduler.nextTimer == nil)
    for number in 0..<3 { queue.wait(for: "later \(number)") }
    #expect(queue.starts().count == 3)
  }

  @Test func `failures count across loads that come one after the other`() {
    var queue = Queue()
    for number in 0..<5 {
      #expect(queue.state()?.heldUntil == nil)
      let place = queue.wait(for: "\(number)")
      _ = queue.starts()
      queue.end(place, .unreachable)
    }
    queue.wait(for: "sixth")
    #expect(queue.starts().isEmpty)
    #expect(queue.state()?.reason == .unreachable)
  }

  @Test func `of thousands of bad origins without jobs not all are remembered`() {
    var queue = Queue()
    for number in 0..<3000 {
      let place = queue.wait(for: "\(number)", at: "\(number)")
      _ = queue.starts()
      queue.end(place, .unresponsive)
    }
    #expect(queue.scheduler.byOrigin.count == Scheduler.mostRemembered)
    #expect(queue.scheduler.rememberedCount == Scheduler.mostRemembered)
    _ = queue.pass(.seconds(60))
    #expect(queue.scheduler.byOrigin.isEmpty && queue.scheduler.rememberedCount == 0)
  }

  // MARK: - Why it waits

  @Test func `stats tell why an origin's jobs wait`() {
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

  @Test func `a job between two attempts waits, too`() {
    var queue = Queue()
    let place = queue.wait(for: "1")
    _ = queue.starts()
    _ = queue.retry(place.job)
    #expect(queue.state()?.waiting == 1)
    #expect(queue.state()?.reason == .retry)
    #expect(queue.scheduler.putOff.byPriority[.normal] == 1)
  }

  @Test func `the busiest hundred of ten thousand origins are told of, in order`() {
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

  // MARK: - Held back outside

  @Test func `what is held back outside counts as waiting`() {
    var queue = Queue { $0.maxQueued = 3 }
    queue.wait(for: "1")
    queue.scheduler.reserved[.lowest] = 2
    guard case .created(let job) = queue.subscribe("2").subscription else { return #expect(Bool(false)) }
    let isRefused = !queue.scheduler.enqueue(job)
    #expect(isRefused)
    queue.scheduler.reserved[.lowest] = 1
    let isTaken = queue.scheduler.enqueue(job)
    #expect(isTaken)
    #expect(queue.scheduler.waiting.total == 2)
  }
}
