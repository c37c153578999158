import HTTPTypes
import Platform
import Testing

@testable import HTTPTransport
@testable import Loading

/// The signal that the end of a transfer gives about its origin.
struct TransferSignalTests {
  private func signal(status: Int, retryAfter: String? = nil, redirects: Int = 0) -> TransferSignal {
    var headers = HeaderFields()
    if let retryAfter { headers = ["retry-after": retryAfter] }
    let summary = TransferSummary(
      head: ResponseHead(status: status, headers: headers, finalURL: "http://a/"), bytesReceived: 0,
      redirects: redirects, times: TransferTimes(startedAt: .now, endedAt: .now), requestTime: 0, responseTime: 0)
    return TransferSignal(.success(summary), now: 1_700_000_000)
  }

  private func signal(
    _ kind: TransferError.Kind, phase: TransferError.Phase? = nil, redirects: Int = 0
  ) -> TransferSignal {
    var error = TransferError(kind, "no", phase: phase)
    error.redirects = redirects
    return TransferSignal(.failure(error), now: 1_700_000_000)
  }

  @Test(arguments: [200, 204, 304, 400, 404, 408, 425, 500, 502, 504])
  func `every response is an answer, whatever its status`(status: Int) {
    #expect(signal(status: status) == .answered)
  }

  @Test(arguments: [429, 503]) func `429 and 503 are refusals, with or without Retry-After`(status: Int) {
    #expect(signal(status: status) == .refused(retryAfter: nil))
    #expect(signal(status: status, retryAfter: "soon") == .refused(retryAfter: nil))
    #expect(signal(status: status, retryAfter: "7") == .refused(retryAfter: .seconds(7)))
    let date = "Tue, 14 Nov 2023 22:13:30 GMT"
    #expect(signal(status: status, retryAfter: date) == .refused(retryAfter: .seconds(10)))
    #expect(signal(status: status, retryAfter: "7", redirects: 1) == .refused(retryAfter: .seconds(7)))
  }

  @Test(arguments: [
    (408, true), (425, true), (429, true), (500, true), (501, false), (505, false), (511, true), (522, true),
    (530, true), (599, true), (404, false), (410, false),
  ])
  func `server errors may pass, but for what the server has not implemented`(status: Int, mayPass: Bool) {
    let head = ResponseHead(status: status, headers: HeaderFields(), finalURL: "http://a/")
    #expect(LoadError(head, now: 0).isRetryable == mayPass)
    let isRefusal = signal(status: status, retryAfter: "7") == .refused(retryAfter: .seconds(7))
    #expect(isRefusal == mayPass)
  }

  @Test func `a retryable error is a refusal only with Retry-After`() {
    #expect(signal(status: 500, retryAfter: "7") == .refused(retryAfter: .seconds(7)))
    #expect(signal(status: 404, retryAfter: "7") == .answered)
    #expect(signal(status: 200, retryAfter: "7") == .answered)
  }

  @Test func `an origin is unreachable without a connection, and unresponsive without a first byte`() {
    #expect(signal(.unanswered) == .unreachable)
    #expect(signal(.connect) == .unreachable)
    #expect(signal(.timeout, phase: .connect) == .unreachable)
    #expect(signal(.timeout, phase: .firstByte) == .unresponsive)
    #expect(signal(.timeout, phase: .idle) == .unresponsive)
  }

  @Test func `a failure after a redirect is not a failure of the first origin`() {
    #expect(signal(.connect, redirects: 1) == .answered)
    #expect(signal(.timeout, phase: .connect, redirects: 2) == .answered)
    #expect(signal(.cancelled, redirects: 1) == .inconclusive)
  }

  @Test func `a response that the client rejects is an answer`() {
    for kind in [TransferError.Kind.aborted, .tooLarge, .redirects] { #expect(signal(kind) == .answered) }
  }

  @Test func `a local fault is inconclusive`() {
    for kind in [TransferError.Kind.cancelled, .network, .tls, .blockedAddress, .invalidRequest] {
      #expect(signal(kind) == .inconclusive)
    }
  }

  @Test func `a name without an address is certain, and no evidence about a server`() {
    #expect(signal(.resolve) == .inconclusive)
    let (missing, unanswered) = (LoadError(TransferError(.resolve, "no")), LoadError(TransferError(.unanswered, "no")))
    #expect(missing.kind == .resolve && !missing.isRetryable && !missing.isPermanent)
    #expect(unanswered.kind == .resolve && unanswered.isRetryable)
  }

  @Test func `a connection that ends early is closed before a response, and broken during one`() {
    #expect(signal(.closed) == .closed && !TransferSignal.closed.isAnswer)
    #expect(signal(.truncated) == .broken && TransferSignal.broken.isAnswer)
  }
}
