import HTTPTransport
import Testing

@testable import Loading

/// The decision whether an abandoned transfer is worth finishing.
struct CompletionEstimateTests {
  private let begin = ContinuousClock.now

  /// A transfer whose response began after a second.
  private func progress(received: Int64, kept: Int64 = 0, total: Int64? = 1000) -> CompletionEstimate {
    var progress = CompletionEstimate(beganAt: begin)
    progress.answered(
      ResponseHead(status: 200, finalURL: "", contentLength: total), kept: kept, at: begin + .seconds(1))
    progress.received = received
    return progress
  }

  @Test(
    arguments: [
      // After 5 seconds: the missing sixth takes a second at the rate so far.
      (833, 0, false), (834, 0, true), (1000, 0, true), (1, 0, false),
      // Half of the body was there before: 83 missing bytes take a second at the rate of 417 in 5 s.
      (916, 500, false), (917, 500, true), (500, 500, false),
    ] as [(Int64, Int64, Bool)])
  func `a transfer is worth finishing if the rest takes less time than a new start`(
    received: Int64, kept: Int64, isWorthIt: Bool
  ) {
    #expect(progress(received: received, kept: kept).isNearlyComplete(at: begin + .seconds(5)) == isWorthIt)
  }

  @Test func `a stalled transfer stops being worth finishing`() {
    let stalled = progress(received: 900)
    #expect(stalled.isNearlyComplete(at: begin + .milliseconds(8900)))
    #expect(!stalled.isNearlyComplete(at: begin + .milliseconds(9100)))
  }

  @Test func `a transfer without a response, a length or bytes is not worth finishing`() {
    #expect(!CompletionEstimate(beganAt: begin).isNearlyComplete(at: begin + .seconds(5)))
    #expect(!progress(received: 999, total: nil).isNearlyComplete(at: begin + .seconds(5)))
    #expect(!progress(received: 0).isNearlyComplete(at: begin + .seconds(1)))
  }
}
