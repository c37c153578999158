import Testing

@testable import Loading

/// The order in which queued jobs start.
struct SchedulerOrderTests {
  @Test func `jobs start in order of priority, whatever the order of submission`() {
    var queue = Queue { $0.maxPerOrigin = 5 }
    for priority in [Priority.normal, .highest, .lowest, .high, .low] { queue.wait(for: priority.name, priority) }
    #expect(queue.starts() == ["highest", "high", "normal", "low", "lowest"])
  }

  @Test func `a more urgent job of a busy origin goes before a less urgent one of an idle origin`() {
    var queue = Queue { $0.maxConcurrent = 2 }
    queue.wait(for: "a1", at: "a", .high)
    queue.wait(for: "a2", at: "a", .high)
    queue.wait(for: "b", at: "b", .normal)
    #expect(queue.starts() == ["a1", "a2"])
  }

  @Test(arguments: [(QueueOrder.fifo, ["1", "2", "3"]), (.lifo, ["3", "2", "1"])])
  func `jobs of one priority start in the configured order`(order: QueueOrder, expected: [String]) {
    var queue = Queue { $0.order = order }
    for name in ["1", "2", "3"] { queue.wait(for: name) }
    #expect(queue.starts() == expected)
  }

  @Test func `the order can be changed while jobs wait`() {
    var queue = Queue { $0.maxConcurrent = 1 }
    for name in ["1", "2", "3"] { queue.wait(for: name) }
    #expect(queue.starts() == ["1"])
    queue.scheduler.limits.order = .lifo
    queue.scheduler.limits.maxConcurrent = 3
    #expect(queue.starts() == ["3", "2"])
  }

  // MARK: - Promotion

  @Test func `a job has the highest priority of its loads`() {
    var queue = Queue()
    let first = queue.wait(for: "x", .low)
    queue.wait(for: "y", .normal)
    queue.wait(for: "x", .highest)
    #expect(queue.scheduler.job(first.job)?.priority == .highest)
    #expect(queue.starts() == ["x", "y"])
  }

  @Test func `a less urgent load that joins changes nothing`() {
    var queue = Queue()
    let first = queue.wait(for: "x", .high)
    queue.wait(for: "x", .lowest)
    #expect(queue.scheduler.job(first.job)?.priority == .high)
  }

  @Test func `when the most urgent load leaves, the job has the highest remaining priority`() {
    var queue = Queue()
    let first = queue.wait(for: "x", .low)
    let urgent = queue.wait(for: "x", .highest)
    queue.wait(for: "y", .normal)
    let outcome1 = queue.scheduler.unsubscribe(urgent.load)
    #expect(outcome1 == .stillNeeded)
    #expect(queue.scheduler.job(first.job)?.priority == .low)
    #expect(queue.starts() == ["y", "x"])
  }

  @Test func `two loads of one priority are counted separately`() {
    var queue = Queue()
    let first = queue.wait(for: "x", .high)
    let second = queue.wait(for: "x", .high)
    queue.wait(for: "x", .low)
    let outcome2 = queue.scheduler.unsubscribe(first.load)
    #expect(outcome2 == .stillNeeded)
    #expect(queue.scheduler.job(first.job)?.priority == .high)
    let outcome3 = queue.scheduler.setPriority(.normal, of: second.load)
    #expect(outcome3)
    #expect(queue.scheduler.job(first.job)?.priority == .normal)
  }

  @Test func `a raised job goes behind those that had the priority before`() {
    var queue = Queue()
    let raised = queue.wait(for: "raised", .low)
    queue.wait(for: "1", .high)
    queue.wait(for: "2", .high)
    let outcome4 = queue.scheduler.setPriority(.high, of: raised.load)
    #expect(outcome4)
    queue.wait(for: "3", .high)
    #expect(queue.starts() == ["1", "2", "raised", "3"])
  }

  @Test func `a lowered job goes ahead of those that had the priority before`() {
    var queue = Queue()
    queue.wait(for: "1", .low)
    let lowered = queue.wait(for: "lowered", .high)
    queue.wait(for: "2", .low)
    let outcome5 = queue.scheduler.setPriority(.low, of: lowered.load)
    #expect(outcome5)
    #expect(queue.starts() == ["lowered", "1", "2"])
  }

  @Test func `with lifo a raised job is the newest of its level`() {
    var queue = Queue { $0.order = .lifo }
    let raised = queue.wait(for: "raised", .low)
    queue.wait(for: "1", .high)
    let outcome6 = queue.scheduler.setPriority(.high, of: raised.load)
    #expect(outcome6)
    #expect(queue.starts() == ["raised", "1"])
  }

  @Test func `setting the same priority, or that of an unknown load, changes nothing`() {
    var queue = Queue()
    let place = queue.wait(for: "x", .high)
    let outcome7 = queue.scheduler.setPriority(.high, of: place.load)
    #expect(!outcome7)
    let outcome8 = queue.scheduler.setPriority(.low, of: LoadID(99))
    #expect(!outcome8)
  }

  @Test func `a priority set in any phase applies when the job is queued again`() {
    var queue = Queue { $0.maxPerOrigin = 1 }
    let (load, subscription) = queue.subscribe("x", .low)
    guard case .created(let job) = subscription else { return #expect(Bool(false)) }
    let outcome9 = queue.scheduler.setPriority(.normal, of: load)
    #expect(outcome9)
    let admission = queue.scheduler.enqueue(job)
    #expect(admission == .accepted)
    #expect(queue.scheduler.waiting[.normal] == 1)
    _ = queue.starts()
    let outcome11 = queue.scheduler.setPriority(.high, of: load)
    #expect(outcome11)
    _ = queue.retry(job)
    let outcome12 = queue.scheduler.setPriority(.highest, of: load)
    #expect(outcome12)
    _ = queue.pass(.seconds(1))
    #expect(queue.scheduler.waiting[.highest] == 1)
    #expect(queue.scheduler.waiting.total == 1)
  }

  // MARK: - Round robin

  @Test func `origins take turns within a priority`() {
    var queue = Queue { $0.maxConcurrent = 100 }
    for number in 1...3 { queue.wait(for: "a\(number)", at: "a") }
    for number in 1...2 { queue.wait(for: "b\(number)", at: "b") }
    queue.wait(for: "c1", at: "c")
    #expect(queue.starts() == ["a1", "b1", "c1", "a2", "b2", "a3"])
  }

  @Test func `the round robin continues where it stopped`() {
    var queue = Queue { $0.maxConcurrent = 2 }
    for number in 1...3 {
      for host in ["a", "b", "c"] { queue.wait(for: "\(host)\(number)", at: host) }
    }
    #expect(queue.starts() == ["a1", "b1"])
    queue.scheduler.limits.maxConcurrent = 4
    #expect(queue.starts() == ["c1", "a2"])
  }

  @Test func `an origin with a thousand queued jobs does not delay the turn of another`() {
    var queue = Queue { $0.maxConcurrent = 1 }
    let first = queue.wait(for: "a", at: "a")
    for number in 1...1000 { queue.wait(for: "a\(number)", at: "a") }
    queue.wait(for: "b", at: "b")
    #expect(queue.starts() == ["a"])
    _ = queue.scheduler.end(first.job)
    #expect(queue.starts() == ["b"])
  }
}
