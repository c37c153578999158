import HTTPTypes
import Platform
import Testing

@testable import Loading

/// Loads that end before their deadline, because their jobs cannot start until then.
struct SchedulerDeadlineTests {
  private static let refusal: LoadError = {
    var error = LoadError(.http, "the server answered 503")
    error.status = 503
    return error
  }()

  /// A queue whose origin `a` is suspended for ten seconds.
  private func suspended() -> Queue {
    var queue = Queue()
    let first = queue.wait(for: "first")
    _ = queue.starts()
    queue.record(.refused(retryAfter: .seconds(10)), by: first.job, error: Self.refusal)
    _ = queue.scheduler.end(first.job)
    return queue
  }

  @Test(arguments: [(10_000, true), (10_001, false), (nil, false)] as [(Int?, Bool)])
  func `a load that comes while its origin is suspended must be able to wait`(deadline: Int?, isTooLate: Bool) {
    var queue = suspended()
    let place = queue.wait(for: "x", deadline: deadline.map { .milliseconds($0) })
    #expect(queue.tooLate() == (isTooLate ? [place.load] : []))
    #expect(queue.scheduler.originFailure(of: place.job)?.status == 503)
    #expect(queue.scheduler.originFailure(of: place.job)?.retryAfter == .seconds(10))
    #expect(queue.scheduler.originFailure(of: place.job)?.isOriginDown == false)
  }

  @Test func `so must a load that joins a job, and the others of the job stay`() {
    var queue = suspended()
    queue.wait(for: "x", deadline: .seconds(60))
    let hasty = queue.wait(for: "x", deadline: .seconds(9))
    #expect(queue.scheduler.nextTimer == queue.now)
    #expect(queue.tooLate() == [hasty.load])
    #expect(queue.scheduler.unsubscribe(hasty.load) == .stillNeeded)
    #expect(queue.tooLate() == [])
  }

  @Test
  func `a suspension ends the queued loads that cannot wait, whether their jobs wait, back off or lack permission`() {
    var queue = Queue { $0.maxPerOrigin = 2 }
    let (refused, failing) = (queue.wait(for: "refused"), queue.wait(for: "failing", deadline: .seconds(50)))
    _ = queue.starts()
    _ = queue.retry(failing.job)
    let hasty = queue.wait(for: "hasty", deadline: .seconds(60))
    let patient = queue.wait(for: "patient", deadline: .seconds(61))
    let unpermitted = queue.subscribe("unpermitted", deadline: .seconds(1))
    if case .created(let job) = unpermitted.subscription { _ = queue.scheduler.enqueue(job, isPermitted: false) }
    queue.wait(for: "elsewhere", at: "b", deadline: .seconds(1))
    let unlooked = queue.subscribe("looking up", deadline: .seconds(1))
    #expect(queue.tooLate() == [])
    queue.record(.refused(retryAfter: .seconds(60)), by: refused.job, error: Self.refusal)
    #expect(queue.tooLate() == [failing.load, hasty.load, unpermitted.load])
    for load in [failing.load, hasty.load, unpermitted.load] { _ = queue.scheduler.unsubscribe(load) }
    queue.record(.refused(retryAfter: .seconds(61)), by: refused.job, error: Self.refusal)
    #expect(queue.tooLate() == [patient.load], "it has become longer")
    #expect(queue.scheduler.job(of: unlooked.load) != nil, "the cache may have it")
  }

  @Test func `a load ends if the retry is due after its deadline, and the others of its job wait for it`() {
    var queue = Queue()
    let place = queue.wait(for: "x")
    let hasty = queue.wait(for: "x", deadline: .seconds(2))
    _ = queue.starts()
    var chance = SeededChance(state: 1)
    _ = queue.scheduler.retry(place.job, retryAfter: .seconds(3), now: queue.now, random: &chance)
    let late = queue.wait(for: "x", deadline: .seconds(1))
    #expect(queue.tooLate() == [hasty.load, late.load])
  }

  @Test func `there is no retry if no load can wait for the end of the suspension`() {
    var queue = Queue()
    let place = queue.wait(for: "x", deadline: .seconds(50))
    let other = queue.wait(for: "y")
    _ = queue.starts()
    queue.record(.refused(retryAfter: .seconds(60)), by: other.job, error: Self.refusal)
    #expect(queue.retry(place.job) == .final)
  }

  @Test func `a load ends if its origin's rate allows no request before its deadline`() {
    var queue = Queue { $0.startInterval = .seconds(5) }
    queue.wait(for: "first")
    let hasty = queue.wait(for: "hasty", deadline: .seconds(5))
    queue.wait(for: "patient", deadline: .seconds(6))
    #expect(queue.tooLate() == [], "either may be the first")
    _ = queue.starts()
    #expect(queue.tooLate() == [hasty.load])
  }

  @Test func `a Crawl-delay of more than two minutes ends all loads that wait for it`() {
    var queue = Queue()
    let first = queue.wait(for: "first")
    let second = queue.wait(for: "second")
    for (delay, ended) in [(Duration.seconds(120), []), (.seconds(121), [second.load])] {
      queue.scheduler.setCrawlDelay(delay, forOriginOf: first.job)
      _ = queue.starts()
      queue.scheduler.requestSent(by: first.job, at: queue.now)
      #expect(queue.tooLate() == ended)
    }
    let third = queue.wait(for: "third")
    #expect(queue.tooLate() == [third.load])
  }

  @Test func `a load that need not wait after all stays`() {
    var queue = suspended()
    queue.wait(for: "x", deadline: .seconds(5))
    queue.now = queue.now.advanced(by: .seconds(10))
    _ = queue.scheduler.expired(at: queue.now)
    #expect(queue.scheduler.takeTooLate().isEmpty)
    #expect(queue.starts() == ["x"])
  }
}
