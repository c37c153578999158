import Platform
import Testing

@testable import HTTPTransport

/// Detection of a connection that has been served for too long in one call.
@Suite struct ServiceTimeTests {
  private let flooding = UnsafeMutableRawPointer(bitPattern: 16)!
  private let neighbour = UnsafeMutableRawPointer(bitPattern: 32)!

  /// A thread whose time the test advances.
  private struct Thread {
    var serviceTime = ServiceTime()
    var now = Instant.now
    var processorTime = Duration.zero

    /// - Parameter share: the share of the time in which the thread has the processor.
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

  @Test func `a connection with endless records is ended`() throws {
    var thread = Thread()
    thread.serviceTime.beginCall()
    let milliseconds = (0..<1000).first { _ in thread.reads(flooding, after: 1) }
    #expect((100...150).contains(try #require(milliseconds)))
  }

  @Test func `the time of each call is measured separately`() {
    var thread = Thread()
    for _ in 0..<100 {
      thread.serviceTime.beginCall()
      for _ in 0..<50 { expectGoesOn(thread.reads(flooding, after: 1)) }
    }
  }

  @Test func `a thread without processor time ends no connection`() {
    var thread = Thread()
    thread.serviceTime.beginCall()
    for _ in 0..<10 { expectGoesOn(thread.reads(flooding, after: 1)) }
    expectGoesOn(thread.reads(flooding, after: 10_000, share: 0))
    for _ in 0..<10 { expectGoesOn(thread.reads(flooding, after: 1)) }
  }

  @Test func `the time of each connection is measured separately, even if a call alternates between them`() {
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
