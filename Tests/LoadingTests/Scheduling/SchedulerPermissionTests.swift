import HTTPTypes
import Testing

@testable import Loading

/// Jobs whose permission is unknown, and the jobs that find it out.
struct SchedulerPermissionTests {
  private static func created(_ name: String, in queue: inout Queue) -> Queue.Place {
    let (load, subscription) = queue.subscribe(name)
    guard case .created(let job) = subscription else { fatalError("the first load makes a job") }
    return Queue.Place(load: load, job: job)
  }

  @Test func `a job without a permission counts as queued and does not start`() {
    var queue = Queue()
    queue.scheduler.limits.maxQueued = 1
    let held = Self.created("a", in: &queue)
    let withoutPermission = queue.scheduler.enqueue(held.job, isPermitted: false)
    #expect(withoutPermission == .accepted)
    #expect(queue.scheduler.freePlaces == 0)
    #expect(queue.starts().isEmpty)
    #expect(queue.state()?.reason == .robots)
    let outcome = queue.scheduler.enqueue(held.job)
    #expect(outcome == .accepted)
    #expect(queue.starts() == ["a"])
  }

  @Test func `permitted jobs keep their order`() {
    var queue = Queue()
    queue.scheduler.limits.maxConcurrent = .fixed(1)
    let places = ["a", "b", "c"].map { Self.created($0, in: &queue) }
    for place in places { _ = queue.scheduler.enqueue(place.job, isPermitted: false) }
    for place in places.reversed() { _ = queue.scheduler.enqueue(place.job) }
    #expect(queue.starts() == ["a"])
  }

  @Test func `a job that others wait for needs no place in the queue`() {
    var queue = Queue()
    queue.scheduler.limits.maxQueued = 1
    let held = Self.created("a", in: &queue)
    _ = queue.scheduler.enqueue(held.job, isPermitted: false)
    let robots = Self.created("robots.txt", in: &queue)
    let outcome = queue.scheduler.enqueue(robots.job, needsPlace: false)
    #expect(outcome == .accepted)
    #expect(queue.starts() == ["robots.txt"])
  }

  @Test func `a job that a running transfer waits for starts without a free permit`() {
    var queue = Queue()
    queue.scheduler.limits.maxConcurrent = .fixed(1)
    let running = Self.created("a", in: &queue)
    _ = queue.scheduler.enqueue(running.job)
    #expect(queue.starts() == ["a"])
    let robots = Self.created("robots.txt", in: &queue)
    queue.scheduler.startBeyondLimits(robots.job)
    #expect(queue.starts().isEmpty)
    _ = queue.scheduler.enqueue(robots.job, needsPlace: false)
    #expect(queue.starts() == ["robots.txt"])
    #expect(queue.starts().isEmpty)
    _ = queue.scheduler.end(robots.job)
    _ = queue.scheduler.end(running.job)
    #expect(queue.isSpotless)
  }
}
