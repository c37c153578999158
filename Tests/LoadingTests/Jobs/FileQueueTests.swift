import Testing

@testable import Loading

struct FileQueueTests {
  private struct Model {
    var underWay: Set<LoadID> = []
    var waiting: [LoadID] = []
  }

  /// A job of one load.
  private static func job(of load: LoadID) -> JobID { JobID(slot: load.slot, serial: load.serial) }
  private static func load(of job: JobID) -> LoadID { LoadID(slot: job.slot, serial: job.serial) }

  @Test func `few begin, and the others follow by priority and age`() {
    let ids = (0..<40).map { LoadID(Int32($0)) }
    for seed in 1...50 {
      var random = SeededChance(state: UInt64(seed))
      var queue = FileQueue(maxUnderWay: 3)
      var model = Model()
      var priorities: [LoadID: Priority] = [:]
      var changes = 0
      func claim(_ job: JobID) -> FileQueue.Claim? {
        let load = Self.load(of: job)
        return priorities[load].map { FileQueue.Claim(load: load, priority: $0) }
      }
      func begun(_ id: LoadID) {
        model.waiting.removeAll { $0 == id }
        model.underWay.insert(id)
      }
      for id in ids {
        let priority = Priority.allCases.randomElement(using: &random) ?? .normal
        priorities[id] = priority
        if queue.add(Self.job(of: id), of: id, at: priority) {
          #expect(model.underWay.count < 3)
          begun(id)
        } else {
          #expect(model.underWay.count == 3)
          model.waiting.append(id)
        }
        // A load ends, under way or waiting, or changes its priority.
        guard let other = priorities.keys.sorted().randomElement(using: &random) else { continue }
        if Bool.random(using: &random) {
          priorities[other] = nil
          queue.end(other)
          model.underWay.remove(other)
          model.waiting.removeAll { $0 == other }
        } else {
          changes += 1
          priorities[other] = Priority.allCases.randomElement(using: &random)
        }
        while let job = queue.next(changes: changes, claim: claim) {
          let next = Self.load(of: job)
          let highest = model.waiting.compactMap { priorities[$0] }.max()
          #expect(next == model.waiting.first { priorities[$0] == highest })
          begun(next)
        }
        #expect(model.underWay.count == 3 || model.waiting.isEmpty)
        #expect(queue.waitingCount >= model.waiting.count)
        queue.forgetEnded(claim: claim)
        #expect(queue.waitingCount <= model.waiting.count + queue.waitingCount / 8)
        let counts = queue.counts(claim: claim)
        for priority in Priority.allCases {
          #expect(counts[priority] == model.waiting.count { priorities[$0] == priority })
        }
      }
    }
  }

  @Test func `the first of a pass and an end decides`() {
    let (passed, closed) = (CommitPoint(), CommitPoint())
    #expect(passed.pass() && !passed.close() && passed.pass())
    #expect(closed.close() && !closed.pass() && closed.close())
  }
}
