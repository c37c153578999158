import Platform
import Testing

@testable import HTTPTransport

@Suite struct StallDetectorTests {
  let start = Instant.now

  func stuckAfter(_ watch: StallDetector) -> Duration {
    start.duration(to: watch.stuckAt(connectTimeout: .seconds(10), idleTimeout: .seconds(3)))
  }

  @Test func `each stage has its own limit, counted from the last progress`() {
    var watch = StallDetector(now: start)
    #expect(watch.stage == .resolving)
    #expect(watch.stuckAt(connectTimeout: .seconds(10), idleTimeout: .seconds(15)) == start + .seconds(10))
    watch.resolved(now: start + .seconds(1))
    #expect(watch.stage == .connecting)
    #expect(stuckAfter(watch) == .seconds(10))
    watch.requestSent(now: start + .seconds(1), unixTime: 100)
    #expect(watch.stage == .waiting)
    #expect(stuckAfter(watch) == .seconds(4))
    watch.received(now: start + .seconds(2))
    #expect(watch.stage == .receiving)
    #expect(stuckAfter(watch) == .seconds(5))
    watch.resumed(now: start + .seconds(20))
    #expect(stuckAfter(watch) == .seconds(23))
  }

  @Test func `more bytes on the wire are progress even if nothing was delivered`() {
    var watch = StallDetector(now: start)
    watch.received(now: start)
    watch.read(bytesOnWire: 5, minBytes: 1024, now: start + .seconds(1))
    #expect(stuckAfter(watch) == .seconds(4))
    watch.read(bytesOnWire: 5, minBytes: 1024, now: start + .seconds(2))
    #expect(stuckAfter(watch) == .seconds(4))
    watch.read(bytesOnWire: 6, minBytes: 1024, now: start + .seconds(3))
    #expect(stuckAfter(watch) == .seconds(6))
  }

  @Test func `a body is slow if half a minute brings too few bytes`() {
    var watch = StallDetector(now: start)
    watch.requestSent(now: start, unixTime: 100)
    #expect(watch.slowAt == nil, "the time to the first byte has a limit of its own")
    watch.received(now: start + .seconds(1))
    for second in 2...29 {
      watch.received(now: start + .seconds(second))
      watch.read(bytesOnWire: Int64(second), minBytes: 1024, now: start + .seconds(second))
    }
    #expect(watch.slowAt == start + .seconds(31))
    watch.read(bytesOnWire: 1024, minBytes: 1024, now: start + .seconds(30))
    #expect(watch.slowAt == start + .seconds(60))
    watch.resumed(now: start + .seconds(50))
    #expect(watch.slowAt == start + .seconds(80), "a pause does not count")
    watch.read(bytesOnWire: 2047, minBytes: 1024, now: start + .seconds(79))
    #expect(watch.slowAt == start + .seconds(80), "a byte is missing")
  }

  @Test func `the times of the request and of the first byte are recorded`() {
    var watch = StallDetector(now: start)
    watch.requestSent(now: start + .seconds(1), unixTime: 100)
    watch.received(now: start + .seconds(2))
    watch.received(now: start + .seconds(3))
    watch.headCompleted(unixTime: 102)
    #expect(watch.requestSentAt == start + .seconds(1))
    #expect(watch.firstByteAt == start + .seconds(2))
    #expect(watch.requestTime == 100)
    #expect(watch.responseTime == 102)
  }

  @Test func `a check is due at the earliest requested time, and must then be requested again`() {
    let clock = LoopClock()
    clock.now = start
    #expect(!clock.beginCheck())
    clock.check(by: start + .seconds(5))
    clock.check(by: nil)
    clock.check(by: start + .seconds(2))
    clock.check(by: start + .seconds(9))
    #expect(clock.nextCheck == start + .seconds(2))
    #expect(!clock.beginCheck())
    clock.now = start + .seconds(2)
    #expect(clock.beginCheck())
    #expect(clock.nextCheck == nil)
    #expect(!clock.beginCheck())
  }
}
