import Testing

@testable import Loading

/// Jobs that wait for a peer's transfer, or for a response that this worker is storing.
struct SchedulerPeerWaitTests {
  @Test func `a job that waits for a peer releases its slot to the next`() {
    var queue = Queue { $0.maxConcurrent = 1 }
    let first = queue.wait(for: "first")
    _ = queue.wait(for: "second")
    #expect(queue.starts() == ["first"])
    queue.scheduler.deferTransfer(of: first.job, as: .awaitingPeer)
    #expect(queue.starts() == ["second"])
  }

  @Test func `after the wait the job returns to the front of the queue, even if it is full, and has lost no attempt`() {
    var queue = Queue {
      $0.maxConcurrent = 1
      $0.maxQueued = 2
    }
    let first = queue.wait(for: "first")
    #expect(queue.starts() == ["first"])
    queue.scheduler.deferTransfer(of: first.job, as: .awaitingPeer)
    _ = queue.wait(for: "second")
    #expect(queue.scheduler.freePlaces == 0)
    let admission = queue.scheduler.enqueue(first.job)
    #expect(admission == .accepted)
    #expect(queue.scheduler.job(first.job)?.attempt == 1)
    #expect(queue.starts() == ["first"])
  }

  @Test func `stats count the job as waiting for another worker`() {
    var queue = Queue()
    let place = queue.wait(for: "x")
    _ = queue.starts()
    queue.scheduler.deferTransfer(of: place.job, as: .awaitingPeer)
    #expect(queue.state()?.waiting == 1)
    #expect(queue.state()?.active == 0)
    #expect(queue.state()?.reason == .otherWorker)
    #expect(queue.scheduler.putOff.byPriority[.normal] == 1)
  }

  @Test func `a job that waits for a response which this worker stores does not count as waiting for another worker`() {
    var queue = Queue()
    let (own, peer) = (queue.wait(for: "own"), queue.wait(for: "peer"))
    _ = queue.starts()
    queue.scheduler.deferTransfer(of: own.job, as: .awaitingCache)
    #expect(queue.state()?.waiting == 1)
    #expect(queue.state()?.reason == .concurrencyLimit)
    queue.scheduler.deferTransfer(of: peer.job, as: .awaitingPeer)
    #expect(queue.state()?.reason == .otherWorker)
    _ = queue.scheduler.enqueue(peer.job)
    #expect(queue.starts() == ["peer"])
    #expect(queue.state()?.reason == .concurrencyLimit)
    #expect(queue.scheduler.putOff.byPriority[.normal] == 1)
  }
}
