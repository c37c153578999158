import Testing

@testable import Loading

/// When a worker is taken for stopped by those who wait for it.
struct SignsOfLifeTests {
  private let start = ContinuousClock.now
  private static let worker: UInt64 = 7

  /// Looks every tenth of a second until it is taken for stopped.
  ///
  /// - Returns: after how long; nil if that did not happen within the time.
  private func stopped(
    _ company: inout PeerWaitList, from begin: Duration, within time: Duration, beats: (Duration) -> UInt64
  ) -> Duration? {
    var now = begin
    while now - begin <= time {
      if company.hasStopped(Self.worker, beats: beats(now), at: start + now) { return now - begin }
      now += .milliseconds(100)
    }
    return nil
  }

  @Test func `one that shows none is taken for stopped after three seconds`() {
    var company = PeerWaitList()
    #expect(stopped(&company, from: .zero, within: .seconds(10)) { _ in 1 } == PeerWaitList.silence)
  }

  @Test func `one that beats each second is not`() {
    var company = PeerWaitList()
    #expect(stopped(&company, from: .zero, within: .seconds(10)) { UInt64($0.components.seconds) } == nil)
  }

  @Test func `a time in which nobody looked is nobody's silence`() {
    var company = PeerWaitList()
    #expect(stopped(&company, from: .zero, within: .seconds(2)) { _ in 1 } == nil)
    // An hour in which the system was suspended.
    let later = Duration.seconds(3600)
    #expect(stopped(&company, from: later, within: .milliseconds(500)) { _ in 1 } == nil)
    #expect(stopped(&company, from: later + .milliseconds(600), within: .seconds(10)) { _ in 2 } == PeerWaitList.silence)
  }
}
