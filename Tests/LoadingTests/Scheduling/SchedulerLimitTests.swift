import HTTPTypes
import Testing

@testable import Loading

/// The limits on running and queued jobs.
struct SchedulerLimitTests {
  @Test func `the global limit bounds the running transfers`() {
    var queue = Queue { $0.maxConcurrent = 3 }
    let places = (1...5).map { queue.wait(for: "\($0)", at: "\($0)") }
    #expect(queue.starts() == ["1", "2", "3"])
    #expect(queue.starts().isEmpty)
    #expect(queue.scheduler.activeCount == 3)
    _ = queue.scheduler.end(places[1].job)
    #expect(queue.starts() == ["4"])
  }

  @Test func `the limit of an origin bounds its running transfers`() {
    var queue = Queue { $0.maxPerOrigin = 2 }
    let places = (1...4).map { queue.wait(for: "a\($0)", at: "a") }
    queue.wait(for: "b1", at: "b")
    #expect(queue.starts() == ["a1", "b1", "a2"])
    queue.scheduler.finish(places[0].job)
    #expect(queue.starts() == ["a3"])
  }

  @Test func `two ports or two schemes of one host are two origins`() {
    var queue = Queue { $0.maxPerOrigin = 1 }
    queue.wait(for: "1", at: "a")
    let other = queue.scheduler.subscribe(
      LoadID(50), to: Queue.key("2"), of: .init(scheme: "http", host: "a", port: 8080), priority: .normal,
      needsDecoder: false, deadline: nil)
    guard case .created(let job) = other else { return #expect(Bool(false)) }
    _ = queue.scheduler.enqueue(job)
    #expect(queue.starts() == ["1", "2"])
  }

  @Test func `raised limits start more transfers at once, lowered ones let running transfers continue`() {
    var queue = Queue {
      $0.maxConcurrent = 4
      $0.maxPerOrigin = 1
    }
    let places = (1...6).map { queue.wait(for: "\($0)", at: "a") }
    #expect(queue.starts() == ["1"])
    queue.scheduler.limits.maxPerOrigin = 6
    #expect(queue.starts() == ["2", "3", "4"])
    queue.scheduler.limits.maxPerOrigin = 2
    #expect(queue.scheduler.activeCount == 4)
    for place in places[0...1] { _ = queue.scheduler.end(place.job) }
    #expect(queue.starts().isEmpty)
    _ = queue.scheduler.end(places[2].job)
    #expect(queue.starts() == ["5"])
    queue.scheduler.limits.maxConcurrent = 1
    #expect(queue.starts().isEmpty)
  }

  @Test func `a job beyond the limit of the queue is rejected, and nothing changes`() {
    var queue = Queue {
      $0.maxQueued = 2
      $0.maxConcurrent = 1
    }
    queue.wait(for: "1")
    queue.wait(for: "2")
    let (load, subscription) = queue.subscribe("3")
    guard case .created(let job) = subscription else { return #expect(Bool(false)) }
    var admission = queue.scheduler.enqueue(job)
    #expect(admission == .queueFull)
    #expect(queue.phase(job) == .lookingUp)
    #expect(queue.scheduler.waiting.total == 2)
    // It can be queued when there is space again.
    #expect(queue.starts() == ["1"])
    admission = queue.scheduler.enqueue(job)
    #expect(admission == .accepted)
    #expect(queue.scheduler.subscribers(of: job) == [load])
  }

  @Test func `a load that joins a job does not count as waiting`() {
    var queue = Queue { $0.maxQueued = 1 }
    let first = queue.wait(for: "1")
    #expect(queue.wait(for: "1").job == first.job)
    #expect(queue.scheduler.waiting.total == 1)
  }

  @Test func `a job that backs off counts toward the limit of the queue`() {
    var queue = Queue { ($0.maxQueued, $0.maxConcurrent) = (1, 1) }
    let first = queue.wait(for: "1")
    #expect(queue.starts() == ["1"])
    _ = queue.retry(first.job)
    queue.wait(for: "2")
    #expect(queue.starts() == ["2"], "what starts at once does not wait")
    guard case .created(let job) = queue.subscribe("3").subscription else { return #expect(Bool(false)) }
    let admission = queue.scheduler.enqueue(job)
    #expect(admission == .queueFull)
  }

  @Test func `with a queue of zero, as many jobs start as the limits permit`() {
    var queue = Queue { ($0.maxQueued, $0.maxConcurrent) = (0, 2) }
    for name in ["1", "2"] {
      queue.wait(for: name)
      #expect(queue.starts() == [name])
    }
    guard case .created(let job) = queue.subscribe("3").subscription else { return #expect(Bool(false)) }
    let admission = queue.scheduler.enqueue(job)
    #expect(admission == .queueFull)
  }

  @Test func `nothing starts while too many bodies are being stored`() {
    var queue = Queue { $0.maxFinishing = 1 }
    let first = queue.wait(for: "1")
    #expect(queue.starts() == ["1"])
    queue.wait(for: "2")
    queue.scheduler.finish(first.job)
    #expect(queue.scheduler.jobs.storingCount == 1)
    #expect(queue.starts().isEmpty)
    let outcome4 = queue.scheduler.end(first.job)
    #expect(outcome4 == [first.load])
    #expect(queue.starts() == ["2"])
  }

  @Test func `under decode backpressure no job starts that needs a decoder`() {
    var queue = Queue { $0.maxUndecoded = 3 }
    queue.scheduler.undecoded[.normal] = 2
    queue.scheduler.undecoded[.low] = 1
    queue.wait(for: "normal", at: "a", needsDecoder: true)
    queue.wait(for: "low", at: "b", .low, needsDecoder: true)
    queue.wait(for: "behind it", at: "b", .low)
    queue.wait(for: "low as it comes", at: "c", .low)
    queue.wait(for: "low for two", at: "d", .low, needsDecoder: true)
    queue.wait(for: "low for two", at: "d", .low)
    #expect(queue.starts() == ["normal", "behind it", "low as it comes", "low for two"])
    #expect(queue.state(of: "b")?.reason == .concurrencyLimit)
    queue.scheduler.undecoded[.normal] = 1
    #expect(queue.starts() == ["low"])
    #expect(queue.state(of: "b")?.reason == nil)
  }

  @Test func `a job held back by decode backpressure does not start at once`() {
    var queue = Queue { ($0.maxUndecoded, $0.maxQueued) = (1, 0) }
    queue.scheduler.undecoded[.highest] = 1
    guard case .created(let job) = queue.subscribe("1", needsDecoder: true).subscription else {
      return #expect(Bool(false))
    }
    var admission = queue.scheduler.enqueue(job)
    #expect(admission == .queueFull)
    queue.scheduler.undecoded = PriorityCounts()
    admission = queue.scheduler.enqueue(job)
    #expect(admission == .accepted)
  }

  @Test func `during a pause nothing starts, and running transfers continue`() {
    var queue = Queue()
    let first = queue.wait(for: "1")
    #expect(queue.starts() == ["1"])
    queue.scheduler.isPaused = true
    let second = queue.wait(for: "2")
    #expect(queue.starts().isEmpty)
    #expect(queue.phase(first.job) == .active)
    queue.scheduler.finish(first.job)
    let outcome5 = queue.scheduler.end(first.job)
    #expect(outcome5 == [first.load])
    #expect(queue.phase(second.job) == .waiting)
    queue.scheduler.isPaused = false
    #expect(queue.starts() == ["2"])
  }

  @Test func `after a pause the most urgent job starts, not the one whose lookup ends first`() {
    var queue = Queue { $0.maxConcurrent = 1 }
    queue.scheduler.isPaused = true
    let jobs = [("low", Priority.low), ("high", .high), ("gone", .highest)].compactMap { name, priority -> JobID? in
      guard case .created(let job) = queue.subscribe(name, priority).subscription else { return nil }
      return job
    }
    queue.scheduler.isPaused = false
    guard case .created(let later) = queue.subscribe("later", .highest).subscription else {
      return #expect(Bool(false))
    }
    for job in jobs.dropLast() {
      let admission = queue.scheduler.enqueue(job)
      #expect(admission == .accepted && queue.starts().isEmpty)
    }
    _ = queue.scheduler.end(jobs[2])
    #expect(queue.starts() == ["high"], "what comes after the pause is not waited for")
    let admission = queue.scheduler.enqueue(later)
    #expect(admission == .accepted)
  }

  @Test func `an origin's record is removed with its last job`() {
    var queue = Queue()
    let first = queue.wait(for: "1", at: "a")
    let second = queue.wait(for: "2", at: "a")
    queue.wait(for: "3", at: "b")
    _ = queue.starts()
    #expect(queue.scheduler.originStates().map(\.origin.host) == ["a", "b"])
    _ = queue.scheduler.end(first.job)
    _ = queue.scheduler.end(second.job)
    #expect(queue.scheduler.originStates().map(\.origin.host) == ["b"])
  }

  @Test func `origin states contain running and waiting jobs, the busiest first`() {
    var queue = Queue { $0.maxPerOrigin = 1 }
    queue.wait(for: "a", at: "a")
    for number in 1...3 { queue.wait(for: "b\(number)", at: "b") }
    _ = queue.starts()
    let states = queue.scheduler.originStates()
    #expect(states.map(\.origin.host) == ["b", "a"])
    #expect(states.map(\.active) == [1, 1])
    #expect(states.map(\.waiting) == [2, 0])
    #expect(states.map(\.heldUntil) == [nil, nil])
  }
}
