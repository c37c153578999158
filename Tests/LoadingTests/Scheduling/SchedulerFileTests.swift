import Testing

@testable import Loading

/// The jobs that wait until their file of the host is read.
struct SchedulerFileTests {
  /// The same without regard to speed: the waiting jobs are an array, searched from the front.
  private struct Model {
    let order: QueueOrder
    /// The priorities of the loads by job.
    var loads: [JobID: [LoadID: Priority]] = [:]
    /// In the order in which they came to their priority. Lowered ones come first.
    var waiting: [JobID] = []
    var underWay: Set<LoadID> = []

    func priority(of job: JobID) -> Priority? { loads[job]?.values.max() }

    var next: JobID? {
      let highest = waiting.compactMap { priority(of: $0) }.max()
      let best = waiting.filter { priority(of: $0) == highest }
      return order == .fifo ? best.first : best.last
    }

    /// Changes the loads of a job, and moves it if its priority changes.
    mutating func change(_ job: JobID, _ load: LoadID, to new: Priority?) {
      let before = priority(of: job)
      loads[job, default: [:]][load] = new
      guard let index = waiting.firstIndex(of: job), before != priority(of: job) else { return }
      waiting.remove(at: index)
      guard let before, let after = priority(of: job) else { return }
      waiting.insert(job, at: after < before && order == .fifo ? 0 : waiting.count)
    }
  }

  @Test(arguments: [QueueOrder.fifo, .lifo])
  func `few are read, and the others follow by priority, whatever joins, leaves and changes`(order: QueueOrder) {
    var refused = 0
    for seed in 1...60 {
      var random = SeededChance(state: UInt64(seed))
      var queue = Queue {
        ($0.maxFiles, $0.maxQueued, $0.order) = (3, 12, order)
      }
      var model = Model(order: order)
      for _ in 0..<300 {
        let known = model.loads.flatMap { job, loads in loads.keys.map { (load: $0, job: job) } }
          .sorted { $0.load < $1.load }
        let priority = Priority.allCases.randomElement(using: &random) ?? .normal
        switch Int.random(in: 0..<10, using: &random) {
        case ..<5:
          let name = "\(Int.random(in: 0..<30, using: &random))"
          let (load, subscription) = queue.subscribe(name, priority, needsDecoder: Bool.random(using: &random))
          switch subscription {
          case .joined(let job, _): model.change(job, load, to: priority)
          case .created(let job):
            let isFull = model.underWay.count >= 3 && model.waiting.count >= 12
            let isQueued = queue.scheduler.enqueueFile(of: job)
            #expect(isQueued != isFull)
            guard isQueued else {
              refused += 1
              #expect(queue.scheduler.end(job) == [load])
              continue
            }
            model.loads[job] = [load: priority]
            model.waiting.append(job)
          }
        case ..<7:
          guard let (load, job) = known.randomElement(using: &random) else { continue }
          _ = queue.scheduler.setPriority(priority, of: load)
          model.change(job, load, to: priority)
        case 7:
          guard let (load, job) = known.randomElement(using: &random) else { continue }
          let isLast = model.loads[job]?.count == 1
          let outcome = queue.scheduler.unsubscribe(load)
          #expect(outcome == (isLast ? .orphanedJob(job) : .stillNeeded))
          queue.scheduler.fileEnded(load)
          model.change(job, load, to: nil)
          if isLast { model.loads[job] = nil }
          model.underWay.remove(load)
        case 8:
          guard let job = known.randomElement(using: &random)?.job else { continue }
          for load in queue.scheduler.end(job) {
            queue.scheduler.fileEnded(load)
            model.underWay.remove(load)
          }
          model.loads[job] = nil
          model.waiting.removeAll { $0 == job }
        // A job that has been read ends before its loads, which are decoded.
        default:
          guard let job = known.map(\.job).first(where: { !model.waiting.contains($0) }) else { continue }
          let loads = queue.scheduler.end(job)
          #expect(Set(loads) == model.loads[job].map { Set($0.keys) })
          model.loads[job] = nil
          guard Bool.random(using: &random) else { continue }
          for load in loads {
            queue.scheduler.fileEnded(load)
            model.underWay.remove(load)
          }
        }
        while let job = queue.scheduler.takeFile() {
          #expect(job == model.next)
          #expect(queue.phase(job) == .readingFile && model.underWay.count < 3)
          if let first = queue.scheduler.firstSubscriber(of: job) { model.underWay.insert(first) }
          model.waiting.removeAll { $0 == job }
        }
        #expect(model.underWay.count == 3 || model.waiting.isEmpty)
        #expect(queue.scheduler.filesUnderWay == model.underWay)
        for priority in Priority.allCases {
          #expect(
            queue.scheduler.files.counts[priority] == model.waiting.count { model.priority(of: $0) == priority })
        }
        // The loads that are decoded end some time.
        if let one = model.underWay.sorted().first, Int.random(in: 0..<4, using: &random) == 0,
          queue.scheduler.job(of: one) == nil
        {
          queue.scheduler.fileEnded(one)
          model.underWay.remove(one)
        }
      }
      for job in model.loads.keys { _ = queue.scheduler.end(job) }
      #expect(queue.isSpotless)
    }
    #expect(refused > 0)
  }

  private static func queue(of names: [String], maxFiles: Int = 1) -> (Queue, [String: Queue.Place]) {
    var queue = Queue { $0.maxFiles = maxFiles }
    var places: [String: Queue.Place] = [:]
    for name in names {
      let (load, subscription) = queue.subscribe(name)
      guard case .created(let job) = subscription, queue.scheduler.enqueueFile(of: job) else { continue }
      places[name] = Queue.Place(load: load, job: job)
    }
    return (queue, places)
  }

  @Test func `files that wait hold no transfer back after a pause`() {
    var (queue, _) = Self.queue(of: ["1", "2", "3"])
    #expect(queue.scheduler.takeFile() != nil)
    queue.scheduler.isPaused = true
    queue.scheduler.isPaused = false
    queue.wait(for: "image")
    #expect(queue.starts() == ["image"])
  }

  @Test func `a load whose file was lost takes the place of no other`() throws {
    var (queue, places) = Self.queue(of: ["1", "2"])
    let first = try #require(places["1"])
    #expect(queue.scheduler.takeFile() == first.job)
    _ = queue.scheduler.end(first.job)
    #expect(queue.scheduler.takeFile() == nil)
    // What was read for it is gone before it is decoded: it joins again.
    let again = queue.scheduler.subscribe(
      first.load, to: Queue.key("1"), of: Queue.origin("a"), priority: .normal, needsDecoder: true, deadline: nil)
    guard case .created(let job) = again else { throw LoadError(.internal, "it joins no other") }
    let isQueued = queue.scheduler.enqueueFile(of: job)
    #expect(isQueued)
    #expect(queue.scheduler.takeFile() == places["2"]?.job)
    #expect(queue.scheduler.takeFile() == nil)
  }

  @Test func `a deadline passes while a job waits for its file`() {
    var queue = Queue { $0.maxFiles = 0 }
    let (load, subscription) = queue.subscribe("1", deadline: .seconds(1))
    guard case .created(let job) = subscription else { return }
    let isQueued = queue.scheduler.enqueueFile(of: job)
    #expect(isQueued)
    #expect(queue.pass(.seconds(2)) == [load])
  }
}
