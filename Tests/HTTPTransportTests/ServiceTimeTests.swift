import Testing

@testable import HTTPTransport

/// When a connection has been served for too long in one call.
@Suite struct ServiceTimeTests {
  private let flooding = UnsafeMutableRawPointer(bitPattern: 16)!
  private let neighbour = UnsafeMutableRawPointer(bitPattern: 32)!

  /// A thread on which time passes at the test's word.
  private struct Thread {
    var serviceTime = ServiceTime()
    var now = ContinuousClock.now
    var processorTime = Duration.zero

    /// - Parameter share: how much of the time the thread has the processor.
    mutating func reads(
      _ connection: ServiceTime.Connection, after milliseconds: Int, share: Double = 1
    ) -> Bool {
      now += .milliseconds(milliseconds)
      processorTime += .milliseconds(milliseconds) * share
      let processorTime = processorTime
      return serviceTime.isTooLong(for: connection, now: now) { processorTime }
    }
  }

  private func expectGoesOn(_ isTooLong: Bool, _ location: SourceLocation = #_sourceLocation) {
    #expect(!isTooLong, sourceLocation: location)
  }

  @Test func `records without end are ended after a moment`() throws {
    var thread = Thread()
    thread.serviceTime.beginCall()
    let milliseconds = (0..<1000).first { _ in thread.reads(flooding, after: 1) }
    #expect((100...150).contains(try #require(milliseconds)))
  }

  @Test func `each call begins anew`() {
    var thread = Thread()
    for _ in 0..<100 {
      thread.serviceTime.beginCall()
      for _ in 0..<50 { expectGoesOn(thread.reads(flooding, after: 1)) }
    }
  }

  @Test func `a thread without processor ends nothing`() {
    var thread = Thread()
    thread.serviceTime.beginCall()
    for _ in 0..<10 { expectGoesOn(thread.reads(flooding, after: 1)) }
    expectGoesOn(thread.reads(flooding, after: 10_000, share: 0))
    for _ in 0..<10 { expectGoesOn(thread.reads(flooding, after: 1)) }
  }

  @Test func `the time of one connection is not another's, also where a call alternates`() {
    var thread = Thread()
    thread.serviceTime.beginCall()
    var isEnded = false
    for _ in 0..<500 where !isEnded {
      expectGoesOn(thread.reads(neighbour, after: 1))
      isEnded = thread.reads(flooding, after: 0)
      if !isEnded { isEnded = thread.reads(flooding, after: 1) }
    }
    #expect(isEnded)
    expectGoesOn(thread.reads(neighbour, after: 1))
  }
}
