import HTTPTypes
import Testing

@testable import Loading

/// Origins that take requests and do not answer them.
struct SchedulerSilenceTests {
  /// The transfers of one origin, played to their end. One that hangs is given up after its time-out; another has its
  /// answer after a millisecond.
  private struct Play {
    var queue: Queue
    /// Whether a transfer of that name that starts so long after the beginning hangs.
    let hangs: (String, Duration) -> Bool
    private var places: [String: Queue.Place] = [:]
    private var later: [(name: String, priority: Priority, due: ContinuousClock.Instant)] = []
    private var running: [(name: String, due: ContinuousClock.Instant, hangs: Bool)] = []
    private let beginning: ContinuousClock.Instant
    private(set) var transfers = 0
    /// When each was answered, counted from the beginning, or after how many attempts it failed.
    private(set) var answered: [String: Duration] = [:]
    private(set) var failed: [String: Int] = [:]

    init(_ change: (inout SchedulerLimits) -> Void = { _ in }, hangs: @escaping (String, Duration) -> Bool) {
      queue = Queue(change)
      beginning = queue.now
      self.hangs = hangs
    }

    mutating func wait(for name: String, _ priority: Priority = .normal) {
      places[name] = queue.wait(for: name, priority)
    }

    mutating func wait(for name: String, _ priority: Priority, after delay: Duration) {
      later.append((name, priority, queue.now + delay))
    }

    var time: Duration { beginning.duration(to: queue.now) }

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
      #expect(queue.note(hangs ? .unresponsive : .answered, by: place.job) == nil, "it is nobody else's business")
      if !hangs {
        answered[name] = time
        _ = queue.scheduler.end(place.job)
      } else if queue.retry(place.job) == .final {
        failed[name] = queue.scheduler.job(place.job)!.attempt
        _ = queue.scheduler.end(place.job)
      }
    }
  }

  @Test(arguments: [QueueOrder.fifo, .lifo], [Priority.normal, .highest])
  func `a few that hang, first in line, are no attempt of the others`(order: QueueOrder, priority: Priority) {
    var play = Play({ $0.order = order }) { name, _ in name.hasPrefix("hangs") }
    if order == .fifo { for number in 0..<7 { play.wait(for: "hangs \(number)", priority) } }
    for number in 0..<300 { play.wait(for: "\(number)") }
    if order == .lifo { for number in 0..<7 { play.wait(for: "hangs \(number)", priority) } }
    play.run()
    #expect(play.answered.count == 300)
    #expect(play.failed.count == 7 && play.failed.values.allSatisfy { $0 == 3 })
    #expect(play.transfers == 300 + 21)
    // One by one they would have kept the others waiting for 225 s. The more urgent ones have their turns in between.
    #expect(play.answered.values.max()! < .seconds(priority == .normal ? 60 : 140))
  }

  @Test(arguments: [200, 1]) func `nobody fails untried, however few are answered`(good: Int) {
    var play = Play { name, _ in name.hasPrefix("hangs") }
    for number in 0..<200 { play.wait(for: "hangs \(number)", .high) }
    for number in 0..<good { play.wait(for: "\(number)", .lowest) }
    play.run()
    #expect(play.answered.count == good && play.failed.count == 200)
    // What comes after it has been given up is tried as well.
    for number in 0..<100 { play.wait(for: "hangs again \(number)") }
    for number in 0..<good { play.wait(for: "again \(number)") }
    play.run()
    #expect(play.answered.count == 2 * good && play.failed.count == 300)
  }

  @Test func `an urgent one waits for one time-out, whatever waits before it`() {
    var play = Play { name, _ in name.hasPrefix("hangs") }
    for number in 0..<500 { play.wait(for: "hangs \(number)", .lowest) }
    play.wait(for: "urgent", .highest, after: .seconds(20))
    play.run()
    #expect(play.answered["urgent"]! <= .seconds(46))
  }

  @Test func `of one that never answers all are tried once in the end, as many at a time as others have`() {
    var play = Play { _, _ in true }
    for number in 0..<1000 { play.wait(for: "\(number)") }
    play.run()
    #expect(play.failed.count == 1000)
    #expect(play.transfers < 1020)
    #expect(play.time < .seconds(45 * 60))
  }

  @Test func `when it answers again within minutes, nobody has waited in vain`() {
    var play = Play { _, start in start < .seconds(150) }
    for number in 0..<1000 { play.wait(for: "\(number)") }
    play.run()
    #expect(play.failed.isEmpty)
    #expect(play.time < .seconds(180))
  }

  @Test func `it has one slot until it answers`() {
    var (queue, places) = sixSilent(of: 20)
    #expect(queue.state()?.heldUntil == nil)
    #expect(queue.starts() == ["6"])
    #expect(queue.state()?.reason == .readmission)
    queue.end(places[6], .unresponsive)
    #expect(queue.starts() == ["7"])
    queue.end(places[7], .answered)
    #expect(queue.starts() == ["8", "9"])
  }

  @Test func `after the twelfth silence in a row it has all its slots, and each failure is final`() {
    var (queue, places) = sixSilent(of: 40)
    // The six were one.
    for _ in 2...11 {
      let place = start(&queue, places)
      #expect(queue.scheduler.activeCount == 1)
      queue.note(.unresponsive, by: place.job)
      #expect(queue.retry(place.job) != .final)
    }
    let last = start(&queue, places)
    queue.note(.unresponsive, by: last.job)
    #expect(queue.retry(last.job) == .final)
    _ = queue.scheduler.end(last.job)
    #expect(queue.starts().count == 6)
    let active = places.filter { queue.phase($0.job) == .active }
    queue.note(.unresponsive, by: active[0].job)
    #expect(queue.retry(active[0].job) == .final)
    // What fails otherwise is tried again.
    queue.note(.unreachable, by: active[1].job)
    #expect(queue.retry(active[1].job) != .final)
    queue.end(active[2], .answered)
    queue.note(.unresponsive, by: active[3].job)
    #expect(queue.retry(active[3].job) != .final)
  }

  @Test func `an answer lets the count start over`() {
    var (queue, places) = sixSilent(of: 60)
    for _ in 2...11 { queue.end(start(&queue, places), .unresponsive) }
    queue.end(start(&queue, places), .answered)
    #expect(queue.starts().count == 2)
    for place in places where queue.phase(place.job) == .active { queue.end(place, .unresponsive) }
    #expect(queue.starts().count == 1)
  }

  @Test func `a time-out tells nothing where the origin has answered since, or answers another`() {
    var queue = Queue()
    let places = (0..<40).map { queue.wait(for: "\($0)") }
    _ = queue.starts()
    queue.end(places[0], .answered)
    queue.end(places[1], .unresponsive)
    #expect(queue.starts() == ["6", "7"], "it has answered since that began")
    queue.note(.answered, by: places[2].job)
    _ = queue.scheduler.end(places[3].job)
    #expect(queue.starts() == ["8"])
    queue.end(places[8], .unresponsive)
    #expect(queue.starts() == ["9"], "a long download goes on")
    _ = queue.scheduler.end(places[2].job)
    #expect(queue.starts() == ["10"])
    queue.note(.unresponsive, by: places[10].job, answered: [places[4].job])
    _ = queue.scheduler.end(places[10].job)
    #expect(queue.starts() == ["11"])
    queue.end(places[11], .unresponsive)
    #expect(queue.starts().isEmpty)
  }

  @Test func `one that was not answered goes behind the others of its priority`() {
    for (order, first, others) in [(QueueOrder.fifo, "0", ["1", "2", "3"]), (.lifo, "3", ["2", "1", "0"])] {
      var queue = Queue {
        $0.maxPerOrigin = 1
        $0.order = order
      }
      let places = (0..<4).map { queue.wait(for: "\($0)") }
      #expect(queue.starts() == [first])
      queue.note(.answered, by: places[Int(first)!].job)
      queue.note(.unresponsive, by: places[Int(first)!].job)
      _ = queue.retry(places[Int(first)!].job)
      _ = queue.pass(.seconds(1))
      for name in others + [first] {
        #expect(queue.starts() == [name])
        queue.end(places[Int(name)!], .answered)
      }
    }
  }

  /// So many jobs, six of which have timed out together.
  private func sixSilent(of count: Int) -> (Queue, [Queue.Place]) {
    var queue = Queue()
    let places = (0..<count).map { queue.wait(for: "\($0)") }
    _ = queue.starts()
    for place in places[..<6] { queue.end(place, .unresponsive) }
    return (queue, places)
  }

  /// The one that starts next.
  private func start(_ queue: inout Queue, _ places: [Queue.Place]) -> Queue.Place {
    _ = queue.starts()
    return places.first { queue.phase($0.job) == .active }!
  }
}
