import HTTPTypes
import Platform
import Testing

@testable import Loading

/// Retries of failed transfers, and the timers.
struct SchedulerRetryTests {
  private func started(retries: Int = 2, deadline: Duration? = nil) -> (Queue, Queue.Place) {
    var queue = Queue()
    let place = queue.wait(for: "x", deadline: deadline, retries: retries)
    _ = queue.scheduler.takeStarts(at: queue.now)
    return (queue, place)
  }

  @Test(arguments: zip(1...9, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]))
  func `the n-th retry waits between zero and a maximum that doubles to half a minute`(n: Int, ceiling: Int) {
    for (chance, expected) in [(UInt64(1), 0), (UInt64.max, ceiling)] {
      var (queue, place) = started(retries: 20)
      var generator = ConstantChance(value: chance)
      var result = Scheduler.Failure.final
      for _ in 1...n {
        result = queue.scheduler.retry(place.job, retryAfter: nil, now: queue.now, random: &generator)
        _ = queue.pass(.seconds(60))
        _ = queue.starts()
      }
      #expect(result == .retry(attempt: n + 1, delay: .milliseconds(expected)))
    }
  }

  @Test func `delays are spread over the whole range`() {
    var delays: [Duration] = []
    for seed in 0..<200 {
      var (queue, place) = started()
      queue.random = SeededChance(state: UInt64(seed))
      guard case .retry(_, let delay) = queue.retry(place.job) else { return #expect(Bool(false)) }
      delays.append(delay)
    }
    for tenth in 0..<10 {
      #expect(delays.contains { $0 >= .milliseconds(tenth * 50) && $0 <= .milliseconds((tenth + 1) * 50) })
    }
  }

  @Test func `a job that backs off has no slot, and returns to the front of its level`() {
    var queue = Queue {
      $0.maxConcurrent = 1
    }
    let failing = queue.wait(for: "failing")
    let second = queue.wait(for: "2")
    queue.wait(for: "3")
    #expect(queue.starts() == ["failing"])
    guard case .retry(2, let delay) = queue.retry(failing.job) else { return #expect(Bool(false)) }
    #expect(queue.phase(failing.job) == .backingOff)
    #expect(queue.scheduler.nextTimer == queue.now.advanced(by: delay))
    #expect(queue.scheduler.jobs.backingOffCount == 1)
    #expect(queue.starts() == ["2"])
    #expect(queue.pass(delay) == [])
    #expect(queue.phase(failing.job) == .waiting)
    _ = queue.scheduler.end(second.job)
    #expect(queue.starts() == ["failing"])
    #expect(queue.scheduler.job(failing.job)?.attempt == 2)
  }

  @Test(arguments: [0, 1, 5]) func `the number of retries is limited`(retries: Int) {
    var (queue, place) = started(retries: retries)
    for attempt in 0..<retries {
      guard case .retry(attempt + 2, _) = queue.retry(place.job) else { return #expect(Bool(false)) }
      _ = queue.pass(.seconds(60))
      #expect(queue.starts() == ["x"])
    }
    #expect(queue.retry(place.job) == .final)
    #expect(queue.scheduler.end(place.job) == [place.load])
    #expect(queue.isSpotless)
  }

  // MARK: - Retry-After

  @Test func `Retry-After suspends the whole origin, and no other`() {
    var (queue, place) = started()
    queue.wait(for: "same", at: "a", .highest)
    queue.wait(for: "other", at: "b", .lowest)
    guard case .retry(2, let delay) = queue.retry(place.job, after: .seconds(10)) else { return #expect(Bool(false)) }
    #expect(delay >= .seconds(10))
    #expect(queue.scheduler.originStates().first { $0.origin.host == "a" }?.heldUntil == queue.now + .seconds(10))
    #expect(queue.starts() == ["other"])
    _ = queue.pass(.milliseconds(9_999))
    #expect(queue.starts().isEmpty)
    _ = queue.pass(.milliseconds(1))
    #expect(queue.starts().first == "same")
    #expect(queue.scheduler.originStates().first { $0.origin.host == "a" }?.heldUntil == nil)
  }

  @Test func `Retry-After suspends the origin even if the job is not retried`() {
    var (queue, place) = started(retries: 0)
    #expect(queue.retry(place.job, after: .seconds(10)) == .final)
    _ = queue.scheduler.end(place.job)
    queue.wait(for: "next")
    #expect(queue.starts().isEmpty)
    #expect(queue.scheduler.nextTimer == queue.now + .seconds(10))
    _ = queue.pass(.seconds(10))
    #expect(queue.starts() == ["next"])
  }

  @Test func `a longer suspension replaces a shorter one, a shorter one changes nothing`() {
    var queue = Queue()
    let places = (1...3).map { queue.wait(for: "\($0)") }
    _ = queue.starts()
    let start = queue.now
    for (place, seconds) in zip(places, [10, 20, 5]) { _ = queue.retry(place.job, after: .seconds(seconds)) }
    #expect(queue.scheduler.originStates().first?.heldUntil == start + .seconds(20))
    _ = queue.pass(.seconds(10))
    #expect(queue.starts().isEmpty)
    _ = queue.pass(.seconds(10))
    #expect(!queue.starts().isEmpty)
  }

  @Test func `a job is not retried if Retry-After exceeds two minutes, and the origin is suspended for two minutes`() {
    var (queue, place) = started()
    #expect(queue.retry(place.job, after: .seconds(121)) == .final)
    #expect(queue.scheduler.originStates().first?.heldUntil == queue.now + .seconds(120))
    (queue, place) = started()
    #expect(queue.retry(place.job, after: .seconds(120)) == .retry(attempt: 2, delay: .seconds(120)))
  }

  @Test(arguments: [Duration.zero, .seconds(-5)]) func `a Retry-After of zero suspends nothing`(wait: Duration) {
    var (queue, place) = started()
    guard case .retry(2, let delay) = queue.retry(place.job, after: wait) else { return #expect(Bool(false)) }
    #expect(delay >= .zero && delay <= .milliseconds(500))
    #expect(queue.scheduler.originStates().first?.heldUntil == nil)
  }

  @Test func `a suspended origin is kept without jobs until the suspension ends`() {
    var (queue, place) = started(retries: 0)
    _ = queue.retry(place.job, after: .seconds(10))
    _ = queue.scheduler.end(place.job)
    #expect(queue.scheduler.originStates().count == 1)
    _ = queue.pass(.seconds(10))
    #expect(queue.isSpotless)
  }

  // MARK: - Deadlines

  @Test func `no attempt is made that would start after all deadlines`() {
    var (queue, place) = started(deadline: .seconds(5))
    #expect(queue.retry(place.job, after: .seconds(5)) == .final)
    (queue, place) = started(deadline: .seconds(5))
    queue.wait(for: "x", deadline: .seconds(6))
    #expect(queue.retry(place.job, after: .seconds(5)) == .retry(attempt: 2, delay: .seconds(5)))
    (queue, place) = started(deadline: .seconds(5))
    queue.wait(for: "x")
    #expect(queue.retry(place.job, after: .seconds(90)) == .retry(attempt: 2, delay: .seconds(90)))
  }

  @Test func `expired loads are returned once, earliest deadline first, and stay until they unsubscribe`() {
    var queue = Queue()
    let late = queue.wait(for: "x", deadline: .seconds(2))
    let early = queue.wait(for: "x", deadline: .seconds(1))
    let gone = queue.wait(for: "x", deadline: .seconds(1))
    queue.wait(for: "x")
    _ = queue.scheduler.unsubscribe(gone.load)
    #expect(queue.scheduler.nextTimer == queue.now + .seconds(1))
    #expect(queue.pass(.milliseconds(999)) == [])
    #expect(queue.pass(.seconds(5)) == [early.load, late.load])
    #expect(queue.pass(.seconds(5)) == [])
    #expect(queue.scheduler.subscribers(of: late.job).contains(late.load))
    #expect(queue.scheduler.unsubscribe(late.load) == .stillNeeded)
  }

  @Test func `a retry timer of an ended job does nothing`() {
    var (queue, place) = started()
    _ = queue.retry(place.job)
    #expect(queue.scheduler.unsubscribe(place.load) == .orphanedJob(place.job))
    let next = queue.wait(for: "y")
    #expect(queue.pass(.seconds(60)) == [])
    #expect(queue.scheduler.waiting.total == 1)
    #expect(queue.starts() == ["y"])
    _ = queue.scheduler.end(next.job)
    #expect(queue.isSpotless)
  }

  @Test func `deadlines of loads that have ended do not pile up`() {
    var queue = Queue()
    for number in 0..<10_000 {
      let place = queue.wait(for: "\(number)", deadline: .seconds(3600))
      _ = queue.scheduler.end(place.job)
    }
    let waiting = queue.wait(for: "x", deadline: .seconds(5))
    #expect(queue.scheduler.timerCount < 100)
    #expect(queue.pass(.seconds(5)) == [waiting.load])
  }
}
