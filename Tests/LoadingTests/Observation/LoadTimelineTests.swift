import HTTPTransport
import Platform
import Testing

@testable import Loading

/// The phases of a load as intervals that follow each other.
struct LoadTimelineTests {
  private let accepted = Instant.now

  private func at(_ milliseconds: Int) -> Instant { accepted + .milliseconds(milliseconds) }

  /// The times of a transfer with all steps, from 30 ms to 100 ms: name 5 ms, a pause of 2 ms, connect 6 ms, TLS 7 ms,
  /// first byte after 20 ms, body 30 ms.
  private var complete: TransferTimes {
    var times = TransferTimes(startedAt: at(30), endedAt: at(100))
    (times.name, times.connect, times.tls) = (.milliseconds(5), .milliseconds(6), .milliseconds(7))
    (times.requestSentAt, times.firstByteAt) = (at(50), at(70))
    return times
  }

  /// The phases with their durations in milliseconds. Checks that they follow each other.
  private func phases(_ timeline: LoadTimeline) -> [String] {
    var (texts, end): ([String], Int64) = ([], 0)
    timeline.forEachInterval { phase, from, to in
      #expect(from == end && to >= from)
      end = to
      texts.append("\(phase) \(Double(to - from) / 1000)")
    }
    #expect(end == timeline.total)
    return texts
  }

  @Test func `a load that is transferred and decoded passes every phase`() {
    var timeline = LoadTimeline(acceptedAt: accepted)
    timeline.enter(.wait, at: at(3))
    timeline.attemptStarted(at: at(29))
    timeline.transferred(complete, hasBody: true)
    timeline.enter(.store, at: at(100))
    timeline.enter(.decodeWait, at: at(110))
    timeline.decoded(from: at(115), to: at(140))
    timeline.enter(.deliver, at: at(140))
    timeline.end(at: at(141))
    #expect(
      phases(timeline) == [
        "lookup 3.0", "wait 29.0", "name 5.0", "connect 6.0", "tls 7.0", "request 20.0", "body 30.0", "store 10.0",
        "decodeWait 5.0", "decode 25.0", "deliver 1.0",
      ])
    #expect(timeline.queued == 29_000)
    #expect(timeline.firstByte == 70_000)
    #expect(timeline.phase == .deliver)
  }

  @Test func `a hit has only a lookup and a delivery`() {
    var timeline = LoadTimeline(acceptedAt: accepted)
    timeline.enter(.deliver, at: at(2))
    timeline.end(at: at(5))
    #expect(phases(timeline) == ["lookup 2.0", "deliver 3.0"])
    #expect(timeline.queued == nil && timeline.firstByte == nil)
  }

  @Test(arguments: [
    (45, ["lookup 0.0", "tls 5.0", "request 20.0", "body 30.0", "store 5.0"]),
    (60, ["lookup 0.0", "request 10.0", "body 30.0", "store 5.0"]),
    (90, ["lookup 0.0", "body 10.0", "store 5.0"]),
    (103, ["lookup 0.0", "store 2.0"]),
  ]) func `a load that joins a transfer has the phases since then`(joined: Int, expected: [String]) {
    var timeline = LoadTimeline(acceptedAt: at(joined))
    timeline.attemptStarted(at: at(joined))
    timeline.transferred(complete, hasBody: true)
    timeline.enter(.store, at: at(100))
    timeline.end(at: at(105))
    #expect(phases(timeline) == expected)
    #expect(timeline.queued == 0)
  }

  @Test func `a name lookup during the wait is taken from it`() {
    var timeline = LoadTimeline(acceptedAt: accepted)
    timeline.enter(.wait, at: at(1))
    timeline.attemptStarted(at: at(21), name: .milliseconds(15))
    timeline.end(at: at(30))
    #expect(phases(timeline) == ["lookup 1.0", "wait 5.0", "name 15.0", "request 9.0"])
    #expect(timeline.queued == 21_000)
  }

  @Test func `a name lookup that began before the load takes no more than the wait`() {
    var timeline = LoadTimeline(acceptedAt: accepted)
    timeline.enter(.wait, at: at(1))
    timeline.attemptStarted(at: at(4), name: .milliseconds(15))
    timeline.end(at: at(5))
    #expect(phases(timeline) == ["lookup 1.0", "wait 0.0", "name 3.0", "request 1.0"])
  }

  @Test func `after a retry the first attempt counts as waiting`() {
    var timeline = LoadTimeline(acceptedAt: accepted)
    timeline.enter(.wait, at: at(1))
    timeline.attemptStarted(at: at(2))
    var failed = TransferTimes(startedAt: at(2), endedAt: at(12))
    failed.connect = .milliseconds(10)
    timeline.transferred(failed, hasBody: true)
    timeline.restart(at: at(13))
    timeline.attemptStarted(at: at(28))
    timeline.transferred(complete, hasBody: true)
    timeline.end(at: at(101))
    #expect(
      phases(timeline) == [
        "lookup 1.0", "wait 31.0", "name 5.0", "connect 6.0", "tls 7.0", "request 20.0", "body 31.0",
      ])
    #expect(timeline.queued == 2000)
  }

  @Test func `a failed load ends in the phase in which it failed`() {
    var timeline = LoadTimeline(acceptedAt: accepted)
    timeline.enter(.wait, at: at(1))
    timeline.attemptStarted(at: at(2))
    var failed = TransferTimes(startedAt: at(2), endedAt: at(12))
    (failed.connect, failed.tls) = (.milliseconds(4), .milliseconds(6))
    timeline.transferred(failed, hasBody: true)
    timeline.end(at: at(13))
    #expect(phases(timeline) == ["lookup 1.0", "wait 1.0", "connect 4.0", "tls 7.0"])
    #expect(timeline.phase == .tls)
  }

  @Test func `redirects count as request and a 304 has no body`() {
    var timeline = LoadTimeline(acceptedAt: accepted)
    timeline.enter(.wait, at: at(1))
    timeline.attemptStarted(at: at(2))
    var times = complete
    times.redirects = 1
    timeline.transferred(times, hasBody: false)
    timeline.end(at: at(100))
    #expect(
      phases(timeline) == ["lookup 1.0", "wait 3.0", "name 5.0", "connect 6.0", "tls 7.0", "request 78.0"])
  }

  @Test func `times before the current phase count as its start`() {
    var timeline = LoadTimeline(acceptedAt: accepted)
    timeline.enter(.deliver, at: at(-5))
    timeline.end(at: at(-9))
    #expect(phases(timeline) == ["lookup 0.0", "deliver 0.0"])
  }
}
