import HTTPTypes
import Platform
import Testing
import Text

@testable import Loading

/// Origins that accept requests and do not answer them.
struct QuietTransferTests {
  /// A simulation of the transfers of one origin. A hanging transfer ends with its timeout; another is answered after a
  /// millisecond.
  private struct Play {
    var queue: Queue
    /// Whether a transfer with that name hangs if it starts at that time.
    let hangs: (String, Duration) -> Bool
    private var places: [String: Queue.Place] = [:]
    private var later: [(name: String, priority: Priority, due: Instant)] = []
    private var running: [(name: String, due: Instant, hangs: Bool)] = []
    private let partialBody: Instant
    private(set) var transfers = 0
    /// The time of each answer, from the start, or the number of failed attempts.
    private(set) var answered: [String: Duration] = [:]
    private(set) var failed: [String: Int] = [:]

    init(_ change: (inout SchedulerLimits) -> Void = { _ in }, hangs: @escaping (String, Duration) -> Bool) {
      queue = Queue(change)
      partialBody = queue.now
      self.hangs = hangs
    }

    mutating func wait(for name: String, _ priority: Priority = .normal) {
      places[name] = queue.wait(for: name, priority)
    }

    mutating func wait(for name: String, _ priority: Priority, after delay: Duration) {
      later.append((name, priority, queue.now + delay))
    }

    var time: Duration { partialBody.duration(to: queue.now) }

    mutating func run() {
      while !queue.scheduler.isEmpty {
        for name in queue.starts() {
          transfers += 1
          let hangs = hangs(name, time)
          running.append((name, queue.now + (hangs ? .seconds(15) : .milliseconds(1)), hangs))
        }
        let dues = running.map(\.due) + later.map(\.due) + [queue.scheduler.nextTimer].compactMap(\.self)
        guard let next = dues.min() else {
          return #expect(Bool(false), "nothing runs, and jobs wait")
        }
        _ = queue.pass(max(.zero, queue.now.duration(to: next)))
        if let index = later.firstIndex(where: { $0.due <= queue.now }) {
          let (name, priority, _) = later.remove(at: index)
          wait(for: name, priority)
        }
        guard let index = running.firstIndex(where: { $0.due <= queue.now }) else { continue }
        let (name, _, hangs) = running.remove(at: index)
        end(name, hangs)
      }
    }

    private mutating func end(_ name: String, _ hangs: Bool) {
      let place = places[name]!
      for job in queue.record(hangs ? .unresponsive : .answered, by: place.job) {
        let ended = queue.scheduler.job(job)!
        failed[ended.key.key.text] = ended.attempt - 1
        _ = queue.scheduler.end(job)
      }
      if !hangs {
        answered[name] = time
        _ = queue.scheduler.end(place.job)
      } else if queue.retry(place.job) == .final {
        failed[name] = queue.scheduler.job(place.job)!.attempt
        _ = queue.scheduler.end(place.job)
      }
    }
  }

  @Test(arguments: [QueueOrder.fifo, .lifo])
  func `a few hanging transfers at the front cost the others no attempt`(order: QueueOrder) {
    var play = Play({ $0.order = order }) { name, _ in name.hasPrefix("hangs") }
    if order == .fifo { for number in 0..<7 { play.wait(for: "hangs \(number)") } }
    for number in 0..<300 { play.wait(for: "\(number)") }
    if order == .lifo { for number in 0..<7 { play.wait(for: "hangs \(number)") } }
    play.run()
    #expect(play.answered.count == 300)
    #expect(play.failed.count == 7)
    // One after the other they would have delayed the others by 225 s.
    #expect(play.answered.values.max()! < .seconds(60))
  }

  @Test func `a thousand loads of an origin that never answers end after three timeouts`() {
    var play = Play { _, _ in true }
    for number in 0..<1000 { play.wait(for: "\(number)") }
    play.run()
    #expect(play.failed.count == 1000)
    #expect(play.transfers == 6 + 1 + 1)
    #expect(play.time == .seconds(45))
  }

  @Test func `an answer resets the count of timeouts`() {
    // After the first six, one in three of its transfers is answered.
    var play = Play { name, _ in Int(name)! % 3 != 2 }
    for number in 0..<60 { play.wait(for: "\(number)") }
    play.run()
    #expect(play.answered.count == 20)
  }

  @Test func `a timeout is no evidence if the origin has answered since, or is answering another transfer`() {
    var queue = Queue { $0.maxPerOrigin = 6 }
    let places = (0..<40).map { queue.wait(for: "\($0)") }
    _ = queue.starts()
    queue.end(places[0], .answered)
    queue.end(places[1], .unresponsive)
    #expect(queue.starts() == ["6", "7"], "it has answered since that began")
    queue.record(.answered, by: places[2].job)
    _ = queue.scheduler.end(places[3].job)
    #expect(queue.starts() == ["8"])
    queue.end(places[8], .unresponsive)
    #expect(queue.starts() == ["9"], "a long download goes on")
    _ = queue.scheduler.end(places[2].job)
    #expect(queue.starts() == ["10"])
    queue.record(.unresponsive, by: places[10].job, answered: [places[4].job])
    _ = queue.scheduler.end(places[10].job)
    #expect(queue.starts() == ["11"])
    queue.end(places[11], .unresponsive)
    #expect(queue.state()?.health == .suspended)
    #expect(queue.starts().isEmpty)
  }

  @Test func `a job whose transfer timed out goes behind the others of its priority`() {
    for (order, first, others) in [(QueueOrder.fifo, "0", ["1", "2", "3"]), (.lifo, "3", ["2", "1", "0"])] {
      var queue = Queue {
        $0.maxPerOrigin = 1
        $0.order = order
      }
      let places = (0..<4).map { queue.wait(for: "\($0)") }
      #expect(queue.starts() == [first])
      queue.record(.answered, by: places[Int(first)!].job)
      queue.record(.unresponsive, by: places[Int(first)!].job)
      _ = queue.retry(places[Int(first)!].job)
      _ = queue.pass(.seconds(1))
      for name in others + [first] {
        #expect(queue.starts() == [name])
        queue.end(places[Int(name)!], .answered)
      }
    }
  }

  // MARK: - Quiet transfers

  @Test func `transfers without an answer for a second stop counting, up to the size of the window`() {
    var queue = Queue { ($0.maxConcurrent, $0.maxPerOrigin) = (4, 4) }
    for number in 0..<8 { queue.wait(for: "silent \(number)", at: "silent") }
    for number in 0..<8 { queue.wait(for: "other \(number)", at: "other \(number)") }
    #expect(queue.starts() == ["silent 0", "other 0", "other 1", "other 2"])
    _ = queue.pass(.milliseconds(999))
    queue.findQuiet()
    #expect(queue.starts().isEmpty)
    #expect(queue.scheduler.nextTimer == queue.now + .milliseconds(1))
    _ = queue.pass(.milliseconds(1))
    queue.findQuiet(answered: ["other 0"], unsent: ["other 1"])
    #expect(queue.scheduler.transfers.quietCount == 2)
    #expect(queue.starts().count == 2)
    _ = queue.pass(.seconds(1))
    queue.findQuiet()
    #expect(queue.scheduler.activeCount == 6 && queue.scheduler.transfers.quietCount == 5)
    #expect(queue.starts().count == 2, "not more than twice the window")
    #expect(queue.starts().isEmpty)
  }

  @Test func `a quiet transfer that is answered counts when it ends`() {
    var queue = Queue { $0.maxConcurrent = 1 }
    let (first, second) = (queue.wait(for: "1"), queue.wait(for: "2"))
    #expect(queue.starts() == ["1"])
    _ = queue.pass(.seconds(1))
    queue.findQuiet()
    #expect(queue.starts() == ["2"])
    queue.end(first, .answered)
    queue.end(second, .answered)
    #expect(queue.scheduler.transfers.quietCount == 0 && queue.isSpotless)
  }
}
