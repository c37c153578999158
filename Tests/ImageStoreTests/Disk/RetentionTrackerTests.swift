import Testing

@testable import ImageStore

@Suite struct RetentionTrackerTests {
  private let now = 1000

  private func end(
    _ tracker: RetentionTracker, deliveredAt: Int = 0, peerDelivery: Int? = nil, hasPeers: Bool = false
  ) -> Int? {
    let record = FileRecord(id: 1, file: "1", allocated: 4096, usedAt: 0, deliveredAt: deliveredAt)
    return tracker.retentionEnd(of: record, peerDelivery: peerDelivery, hasPeers: hasPeers, now: now)
  }

  @Test func `a file that was never delivered may be deleted`() {
    #expect(end(RetentionTracker()) == nil)
  }

  @Test(arguments: [(1000, 1061), (941, 1002), (940, 1001), (939, nil), (1060, 1121), (1061, nil)])
  func `a delivery retains a file for 60 s and the rest of a second, unless it is in the future`(at: Int, until: Int?) {
    #expect(end(RetentionTracker(), deliveredAt: at) == until, "written to the index")
    #expect(end(RetentionTracker(), peerDelivery: at) == until, "by a peer")
    var tracker = RetentionTracker()
    tracker.record(1, .init(at: at))
    #expect(end(tracker) == until, "by this worker")
    _ = tracker.drain()
    #expect(end(tracker) == until, "by this worker, and its use is written")
    tracker.rowDeleted(1)
    #expect(end(tracker) == until, "by this worker, and the row is deleted")
  }

  @Test func `the latest delivery counts`() {
    var tracker = RetentionTracker()
    tracker.record(1, .init(at: 970))
    tracker.record(1, .init(at: 960))
    #expect(end(tracker, deliveredAt: 950) == 1031)
    #expect(end(tracker, deliveredAt: 980) == 1041)
    #expect(end(tracker, deliveredAt: 980, peerDelivery: 990) == 1051)
  }

  @Test func `with peers, a file is retained until they have flushed their deliveries`() {
    #expect(end(RetentionTracker(), deliveredAt: 939, hasPeers: true) == 1002)
    #expect(end(RetentionTracker(), deliveredAt: 937, hasPeers: true) == nil)
  }

  @Test func `a use without a path retains nothing`() {
    var tracker = RetentionTracker()
    tracker.record(1, .init(at: now, isDelivery: false))
    #expect(end(tracker) == nil)
    let written = tracker.drain()
    #expect(written.uses == [1: .init(at: now, isDelivery: false)])
  }

  @Test func `a file is retained until its last reader has gone`() {
    var tracker = RetentionTracker()
    tracker.addReader(of: 1)
    tracker.addReader(of: 1)
    #expect(end(tracker) == 1060)
    let isFreeAfterFirst = tracker.removeReader(of: 1)
    #expect(!isFreeAfterFirst && tracker.hasReaders(1))
    let isFreeAfterLast = tracker.removeReader(of: 1)
    #expect(isFreeAfterLast && !tracker.hasReaders(1))
    #expect(end(tracker) == nil)
  }

  @Test func `uses are added up until they are drained, except those of deleted rows`() {
    var tracker = RetentionTracker()
    tracker.record(1, .init(at: 0))
    tracker.record(2, .init(at: 10, times: 7))
    tracker.record(1, .init(at: 30))
    tracker.record(3, .init(at: 30))
    tracker.rowDeleted(3)
    let written = tracker.drain()
    #expect(written.uses == [1: .init(at: 30, times: 2), 2: .init(at: 10, times: 7)])
    #expect(tracker.unwritten.isEmpty)
  }

  @Test func `a delivery expires 60 s after the last one`() {
    var tracker = RetentionTracker()
    tracker.record(1, .init(at: 970))
    tracker.record(1, .init(at: 990))
    tracker.expire(now: 1050)
    #expect(end(tracker) == 1051)
    tracker.expire(now: 1051)
    #expect(end(tracker) == nil)
  }

  @Test func `a digest is reported as verified once until it is drained`() {
    var tracker = RetentionTracker()
    let first = (tracker.recordVerified(1), tracker.recordVerified(1))
    #expect(first == (true, false))
    let written = tracker.drain()
    #expect(written.verified == [1])
    let second = tracker.recordVerified(1)
    #expect(second)
  }
}
