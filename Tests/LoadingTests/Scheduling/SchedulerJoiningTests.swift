import HTTPTypes
import Testing

@testable import Loading

/// Joining of jobs, and their end when loads leave.
struct SchedulerJoiningTests {
  /// A job with one load in a given phase.
  private func job(in phase: Scheduler.Phase) -> (Queue, Queue.Place) {
    var queue = Queue()
    let (load, subscription) = queue.subscribe("x")
    guard case .created(let job) = subscription else { fatalError("the first load makes a job") }
    let place = Queue.Place(load: load, job: job)
    if phase == .lookingUp { return (queue, place) }
    if phase == .awaitingFile || phase == .readingFile {
      let isQueued = queue.scheduler.enqueueFile(of: job)
      #expect(isQueued)
      if phase == .readingFile { #expect(queue.scheduler.takeFile() == job) }
      return (queue, place)
    }
    _ = queue.scheduler.enqueue(job, isPermitted: phase != .awaitingPermission)
    if phase == .waiting || phase == .awaitingPermission { return (queue, place) }
    _ = queue.scheduler.takeStarts(at: queue.now)
    if phase == .storing { queue.scheduler.finish(job) }
    if phase == .backingOff { _ = queue.retry(job) }
    if phase == .awaitingPeer || phase == .awaitingCache { queue.scheduler.deferTransfer(of: job, as: phase) }
    return (queue, place)
  }

  private static let phases: [Scheduler.Phase] = [
    .lookingUp, .waiting, .active, .storing, .backingOff, .awaitingPeer, .awaitingCache, .awaitingPermission,
    .awaitingFile, .readingFile,
  ]

  @Test(arguments: phases) func `a load joins a job in every phase`(phase: Scheduler.Phase) {
    var (queue, place) = job(in: phase)
    let (load, subscription) = queue.subscribe("x")
    #expect(subscription == .joined(place.job, attempt: phase == .active ? 1 : nil))
    #expect(queue.scheduler.subscribers(of: place.job) == [place.load, load])
    #expect(queue.scheduler.job(of: load) == place.job)
  }

  @Test(arguments: phases) func `a job with a remaining load stays, in every phase`(phase: Scheduler.Phase) {
    var (queue, place) = job(in: phase)
    let other = queue.wait(for: "x")
    let before = queue.phase(place.job)
    let outcome1 = queue.scheduler.unsubscribe(place.load)
    #expect(outcome1 == .stillNeeded)
    #expect(queue.phase(place.job) == before)
    #expect(queue.scheduler.subscribers(of: place.job) == [other.load])
  }

  @Test(arguments: phases.filter { $0 != .active && $0 != .storing })
  func `a job without a transfer ends with its last load`(phase: Scheduler.Phase) {
    var (queue, place) = job(in: phase)
    let outcome2 = queue.scheduler.unsubscribe(place.load)
    #expect(outcome2 == .orphanedJob(place.job))
    #expect(queue.isSpotless)
    #expect(queue.starts().isEmpty)
  }

  @Test func `a job with a transfer keeps its slot after its last load has left, until its end`() {
    var (queue, place) = job(in: .active)
    queue.scheduler.limits.maxConcurrent = 1
    let outcome3 = queue.scheduler.unsubscribe(place.load)
    #expect(outcome3 == .orphanedTransfer(place.job))
    queue.scheduler.detach(place.job)
    let next = queue.wait(for: "x")
    #expect(next.job != place.job, "an abandoned job cannot be joined")
    #expect(queue.starts().isEmpty)
    let outcome4 = queue.scheduler.end(place.job)
    #expect(outcome4 == [])
    #expect(queue.starts() == ["x"])
  }

  @Test func `a transfer without loads can be joined and left again`() {
    var (queue, place) = job(in: .active)
    queue.scheduler.limits.maxConcurrent = 1
    _ = queue.scheduler.unsubscribe(place.load)
    let next = queue.wait(for: "x")
    #expect(next.job == place.job)
    #expect(queue.scheduler.subscribers(of: place.job) == [next.load])
    #expect(queue.scheduler.unsubscribe(next.load) == .orphanedTransfer(place.job))
    #expect(queue.scheduler.activeCount == 1)
    queue.scheduler.finish(place.job)
    #expect(queue.scheduler.activeCount == 0)
    #expect(queue.scheduler.end(place.job) == [])
    #expect(queue.isSpotless)
  }

  @Test func `an abandoned transfer is not retried`() {
    var (queue, place) = job(in: .active)
    _ = queue.scheduler.unsubscribe(place.load)
    #expect(queue.retry(place.job) == .final)
    let outcome5 = queue.scheduler.end(place.job)
    #expect(outcome5 == [])
    #expect(queue.isSpotless)
  }

  @Test func `a job that is being stored continues without loads, and can be joined`() {
    var (queue, place) = job(in: .storing)
    let outcome6 = queue.scheduler.unsubscribe(place.load)
    #expect(outcome6 == .stillNeeded)
    let late = queue.wait(for: "x")
    #expect(late.job == place.job)
    let outcome7 = queue.scheduler.end(place.job)
    #expect(outcome7 == [late.load])
    #expect(queue.isSpotless)
  }

  @Test(arguments: phases) func `the end of a job returns its loads in the order of subscription`(
    phase: Scheduler.Phase
  ) {
    var (queue, place) = job(in: phase)
    let others = [Priority.highest, .lowest, .normal].map { queue.wait(for: "x", $0).load }
    let outcome8 = queue.scheduler.end(place.job)
    #expect(outcome8 == [place.load] + others)
    #expect(queue.isSpotless)
    let outcome9 = queue.scheduler.end(place.job)
    #expect(outcome9 == [], "nobody is handed back twice")
    for load in [place.load] + others { #expect(queue.scheduler.unsubscribe(load) == .unknown) }
  }

  @Test(arguments: phases) func `a detached job cannot be joined`(phase: Scheduler.Phase) {
    var (queue, place) = job(in: phase)
    queue.scheduler.detach(place.job)
    #expect(queue.scheduler.job(for: Queue.key("x")) == nil)
    let next = queue.wait(for: "x")
    #expect(next.job != place.job)
    // Its end does not unregister the new one.
    let outcome10 = queue.scheduler.end(place.job)
    #expect(outcome10 == [place.load])
    #expect(queue.scheduler.job(for: Queue.key("x")) == next.job)
  }

  @Test func `loads with different keys do not share a job`() {
    var queue = Queue()
    let keys = [
      Queue.key("x"), Queue.key("y"), Queue.key("x", retries: 3), Queue.key("x", partition: "somebody"),
      Queue.key("x", headers: ["accept": "image/webp"]), Queue.key("x", revalidation: .bypassed),
      Queue.key("x", acceptsAnything: true), Queue.key("x", maxBytes: 1), Queue.key("x", timeoutMs: 1),
    ]
    var jobs: Set<JobID> = []
    for (number, key) in keys.enumerated() {
      let subscription = queue.scheduler.subscribe(
        LoadID(Int32(100 + number)), to: key, of: Queue.origin("a"), priority: .normal, needsDecoder: false,
        deadline: nil)
      guard case .created(let job) = subscription else { return #expect(Bool(false), "\(key) was joined") }
      jobs.insert(job)
    }
    #expect(jobs.count == keys.count)
    #expect(Set(queue.scheduler.allJobs) == jobs)
  }

  @Test func `keys that differ only in their headers are distinct`() {
    let hashes = (0..<100).map { Queue.key("x", headers: ["x-n": "\($0)"]).hashValue }
    #expect(Set(hashes).count > 90)
  }

  @Test(arguments: phases) func `a call for an ended job, or in the wrong phase, changes nothing`(
    phase: Scheduler.Phase
  ) {
    var (queue, place) = job(in: phase)
    let stale = place.job
    _ = queue.scheduler.end(stale)
    // The slot is reused by a job in another phase.
    let place2 = queue.wait(for: "y", at: "b")
    #expect(place2.job.slot == stale.slot)
    var admission = queue.scheduler.enqueue(stale)
    #expect(admission == .accepted)
    queue.scheduler.finish(stale)
    queue.scheduler.detach(stale)
    #expect(queue.retry(stale, after: .seconds(5)) == .final)
    let outcome12 = queue.scheduler.end(stale)
    #expect(outcome12 == [])
    #expect(queue.scheduler.subscribers(of: stale) == [])
    #expect(queue.scheduler.job(stale) == nil)
    // The right job, but in the wrong phase.
    admission = queue.scheduler.enqueue(place2.job)
    #expect(admission == .accepted)
    queue.scheduler.finish(place2.job)
    #expect(queue.retry(place2.job, after: .seconds(5)) == .final)
    #expect(queue.phase(place2.job) == .waiting)
    #expect(queue.scheduler.originStates().map(\.heldUntil) == [nil])
    #expect(queue.starts() == ["y"])
    let outcome14 = queue.scheduler.end(place2.job)
    #expect(outcome14 == [place2.load])
    #expect(queue.isSpotless)
  }
}
