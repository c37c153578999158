import Platform
import Testing

@testable import Loading

/// The detection of stalled peers.
struct SignsOfLifeTests {
  private let start = Instant.now
  private static let worker: UInt64 = 7

  /// Polls every tenth of a second until the peer counts as stalled.
  ///
  /// - Returns: the time until then; nil if that did not happen within the limit.
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

  @Test func `a peer without heartbeats counts as stalled after three seconds`() {
    var company = PeerWaitList()
    #expect(stopped(&company, from: .zero, within: .seconds(10)) { _ in 1 } == PeerWaitList.silence)
  }

  @Test func `a peer with a heartbeat each second does not count as stalled`() {
    var company = PeerWaitList()
    #expect(stopped(&company, from: .zero, within: .seconds(10)) { UInt64($0.components.seconds) } == nil)
  }

  @Test func `time without polls does not count as stalled`() {
    var company = PeerWaitList()
    #expect(stopped(&company, from: .zero, within: .seconds(2)) { _ in 1 } == nil)
    // One hour of system suspend.
    let later = Duration.seconds(3600)
    #expect(stopped(&company, from: later, within: .milliseconds(500)) { _ in 1 } == nil)
    #expect(
      stopped(&company, from: later + .milliseconds(600), within: .seconds(10)) { _ in 2 } == PeerWaitList.silence)
  }
}
