import HTTPTypes
import Testing

@testable import Loading

/// What becomes of transfers that are not answered while others wait for a slot.
struct SchedulerGivingWayTests {
  /// Four slots, all of them taken by an origin that has not answered.
  private func queue(_ priority: Priority = .normal) -> (Queue, [Queue.Place]) {
    var queue = Queue { $0.maxConcurrent = 4 }
    let places = (0..<6).map { queue.wait(for: "silent \($0)", at: "silent", priority) }
    #expect(queue.starts().count == 4)
    return (queue, places)
  }

  private func give(_ queue: inout Queue, _ places: Queue.Place...) {
    for place in places {
      let gaveWay = queue.scheduler.giveWay(place.job)
      #expect(gaveWay)
    }
  }

  @Test func `what is silent for a second gives way to others, the youngest first, and the oldest stays`() {
    var (queue, places) = queue()
    for number in 0..<9 { queue.wait(for: "other \(number)", at: "other \(number)") }
    #expect(queue.makeWay().isEmpty)
    #expect(queue.scheduler.nextTimer == queue.now + .seconds(1))
    _ = queue.pass(.seconds(1))
    #expect(queue.makeWay() == ["silent 3", "silent 2", "silent 1"])
    #expect(queue.makeWay().isEmpty, "once")
    #expect(queue.starts().isEmpty, "they hold their slots until they have ended")
    give(&queue, places[3], places[2])
    #expect(queue.starts() == ["other 0", "other 1"])
    give(&queue, places[1])
    #expect(queue.starts() == ["other 2"])
    #expect(queue.state(of: "silent")?.reason == .readmission)
    #expect(queue.state(of: "silent")?.waiting == 5)
    #expect(queue.scheduler.nextTimer == queue.now + .seconds(1), "the others have not answered either")
  }

  @Test func `what gave way goes first in its old order, and has lost no attempt`() {
    var (queue, places) = queue()
    for number in 0..<3 { queue.wait(for: "other \(number)", at: "other \(number)") }
    _ = queue.pass(.seconds(1))
    _ = queue.makeWay()
    give(&queue, places[3], places[2], places[1])
    for place in places[1...3] {
      #expect(queue.phase(place.job) == .waiting)
      #expect(queue.scheduler.job(place.job)?.attempt == 1)
    }
    queue.scheduler.limits.maxConcurrent = 32
    #expect(queue.starts() == ["other 0", "other 1", "other 2"])
    queue.end(places[0], .answered)
    #expect(queue.starts() == ["silent 1", "silent 2"])
    queue.end(places[1], .answered)
    #expect(queue.starts() == ["silent 3", "silent 4"])
  }

  @Test func `what has not been sent yet is not silent, and not answered either`() {
    var (queue, _) = queue()
    for number in 0..<9 { queue.wait(for: "other \(number)", at: "other \(number)") }
    _ = queue.pass(.seconds(1))
    #expect(queue.scheduler.makeWay(at: queue.now) { _ in nil }.isEmpty)
    #expect(queue.scheduler.nextTimer == queue.now + .seconds(1), "its time begins when it is sent")
    _ = queue.pass(.seconds(1))
    #expect(queue.makeWay() == ["silent 3", "silent 2", "silent 1"])
  }

  @Test func `nobody gives way more than others need`() {
    var (queue, places) = queue()
    _ = queue.pass(.seconds(60))
    #expect(queue.makeWay().isEmpty, "nobody else waits")
    #expect(queue.scheduler.nextTimer == nil)
    queue.wait(for: "other 0", at: "other")
    queue.wait(for: "other 1", at: "other")
    #expect(queue.makeWay() == ["silent 3"], "an origin that has not answered gets one slot, too")
    give(&queue, places[3])
    #expect(queue.starts() == ["other 0"])
    #expect(queue.makeWay().isEmpty)
    queue.note(.answered, by: queue.scheduler.job(for: Queue.key("other 0"))!)
    #expect(queue.makeWay() == ["silent 2"])
  }

  @Test func `nobody gives way where the limit is not what others wait for`() {
    var (queue, _) = queue()
    let stored = queue.wait(for: "stored", at: "other")
    queue.wait(for: "1", at: "other")
    queue.noteRefusal(at: "other", retryAfter: .seconds(100))
    _ = queue.pass(.seconds(2))
    #expect(queue.makeWay().isEmpty, "the other is held")
    _ = queue.pass(.seconds(100))
    queue.scheduler.isPaused = true
    #expect(queue.makeWay().isEmpty)
    queue.scheduler.isPaused = false
    queue.scheduler.limits.maxFinishing = 0
    #expect(queue.makeWay().isEmpty, "the disk is behind")
    queue.scheduler.limits.maxFinishing = 1
    queue.scheduler.limits.maxConcurrent = 5
    #expect(queue.makeWay().isEmpty, "there is a slot")
    queue.scheduler.limits.maxConcurrent = 4
    #expect(queue.makeWay() == ["silent 3"])
    _ = queue.scheduler.end(stored.job)
  }

  @Test func `no transfer gives way to a less urgent job`() {
    var (queue, _) = queue(.highest)
    _ = queue.pass(.seconds(1))
    for number in 0..<3 { queue.wait(for: "high \(number)", at: "high \(number)", .high) }
    #expect(queue.makeWay().isEmpty)
    queue.scheduler.limits.maxConcurrent = 2
    #expect(queue.makeWay().isEmpty, "not even when there are more than the limit")
    queue.wait(for: "highest", at: "other", .highest)
    #expect(queue.makeWay() == ["silent 3", "silent 2", "silent 1"], "as many as make room for one")
  }

  @Test func `the least urgent gives way first`() {
    var queue = Queue { $0.maxConcurrent = 4 }
    for priority in [Priority.highest, .low, .normal, .high] { queue.wait(for: "\(priority)", at: "a", priority) }
    #expect(queue.starts() == ["highest", "high", "normal", "low"])
    _ = queue.pass(.seconds(1))
    for number in 0..<3 { queue.wait(for: "\(number)", at: "\(number)", .high) }
    #expect(queue.makeWay() == ["low", "normal", "high"])
  }

  @Test func `what is being answered stays, however long it takes`() {
    var (queue, places) = queue()
    queue.note(.answered, by: places[0].job)
    _ = queue.pass(.seconds(10))
    for number in 0..<4 { queue.wait(for: "\(number)", at: "\(number)") }
    #expect(queue.makeWay(answered: ["silent 2"]) == ["silent 3"], "the oldest of the silent is the second now")
    #expect(queue.makeWay().isEmpty, "it is not asked for twice")
  }

  @Test func `with an origin that has answered there is more patience`() {
    var (queue, places) = queue()
    queue.end(places[0], .answered)
    #expect(queue.starts() == ["silent 4"])
    for number in 0..<4 { queue.wait(for: "\(number)", at: "\(number)") }
    _ = queue.pass(.milliseconds(4900))
    #expect(queue.makeWay().isEmpty)
    #expect(queue.scheduler.nextTimer == queue.now + .milliseconds(100))
    _ = queue.pass(.milliseconds(100))
    #expect(queue.makeWay() == ["silent 4", "silent 3", "silent 2"])
  }

  @Test func `a job gives way once`() {
    var (queue, places) = queue()
    let other = queue.wait(for: "other", at: "other")
    _ = queue.pass(.seconds(1))
    #expect(queue.makeWay() == ["silent 3"])
    give(&queue, places[3])
    #expect(queue.starts() == ["other"])
    for place in places[0...2] { queue.end(place, .answered) }
    queue.end(other, .answered)
    #expect(queue.starts() == ["silent 3", "silent 4", "silent 5"])
    queue.wait(for: "fill", at: "fill")
    #expect(queue.starts() == ["fill"])
    for number in 0..<4 { queue.wait(for: "\(number)", at: "\(number)") }
    _ = queue.pass(.seconds(10))
    #expect(queue.makeWay() == ["silent 5", "silent 4"], "the first one has, and is the probe besides")
  }

  @Test func `an answer that was faster than the abort counts`() {
    var (queue, places) = queue()
    for number in 0..<3 { queue.wait(for: "\(number)", at: "\(number)") }
    _ = queue.pass(.seconds(1))
    #expect(queue.makeWay() == ["silent 3", "silent 2", "silent 1"])
    queue.note(.answered, by: places[3].job)
    queue.scheduler.finish(places[3].job)
    let isToWait = queue.scheduler.giveWay(places[3].job)
    #expect(!isToWait)
    #expect(queue.phase(places[3].job) == .finishing)
    #expect(queue.scheduler.leave(places[2].load) == .transferAbandoned(places[2].job))
    let waitsForNobody = queue.scheduler.giveWay(places[2].job)
    #expect(!waitsForNobody)
    _ = queue.scheduler.end(places[2].job)
    #expect(queue.scheduler.givingWayCount == 1)
    #expect(queue.starts() == ["0", "1"])
  }

  @Test func `a probe goes on to its time-out, and the next takes its place`() {
    var (queue, places) = queue()
    for number in 0..<9 { queue.wait(for: "\(number)", at: "\(number)") }
    _ = queue.pass(.seconds(1))
    _ = queue.makeWay()
    give(&queue, places[3], places[2], places[1])
    #expect(queue.starts() == ["0", "1", "2"])
    _ = queue.pass(.seconds(30))
    #expect(queue.makeWay().isEmpty, "one slot each")
    queue.end(places[0], .unresponsive)
    queue.scheduler.limits.maxConcurrent = 32
    #expect(queue.starts().filter { $0.hasPrefix("silent") } == ["silent 1"])
  }
}
