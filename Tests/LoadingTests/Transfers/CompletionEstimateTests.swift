import HTTPTransport
import Testing

@testable import Loading

/// When a transfer that nobody waits for is worth its end.
struct CompletionEstimateTests {
  private let begin = ContinuousClock.now

  /// Answered after a second.
  private func progress(received: Int64, kept: Int64 = 0, total: Int64? = 1000) -> CompletionEstimate {
    var progress = CompletionEstimate(beganAt: begin)
    progress.answered(
      ResponseHead(status: 200, finalURL: "", contentLength: total), kept: kept, at: begin + .seconds(1))
    progress.received = received
    return progress
  }

  @Test(
    arguments: [
      // After 5 seconds: what is missing takes a second at the pace of 5/6 of it in that time.
      (833, 0, false), (834, 0, true), (1000, 0, true), (1, 0, false),
      // Half of it was there: 83 missing bytes take a second at the pace of 417 in 5.
      (916, 500, false), (917, 500, true), (500, 500, false),
    ] as [(Int64, Int64, Bool)])
  func `it is when the rest takes less time than to begin again`(received: Int64, kept: Int64, isWorthIt: Bool) {
    #expect(progress(received: received, kept: kept).isNearlyComplete(at: begin + .seconds(5)) == isWorthIt)
  }

  @Test func `one that stands still loses its worth`() {
    let stalled = progress(received: 900)
    #expect(stalled.isNearlyComplete(at: begin + .milliseconds(8900)))
    #expect(!stalled.isNearlyComplete(at: begin + .milliseconds(9100)))
  }

  @Test func `it is not without an answer, a length or bytes`() {
    #expect(!CompletionEstimate(beganAt: begin).isNearlyComplete(at: begin + .seconds(5)))
    #expect(!progress(received: 999, total: nil).isNearlyComplete(at: begin + .seconds(5)))
    #expect(!progress(received: 0).isNearlyComplete(at: begin + .seconds(1)))
  }
}
