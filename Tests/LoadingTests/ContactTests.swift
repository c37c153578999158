import HTTPTransport
import HTTPTypes
import Testing

@testable import Loading

/// What the end of a transfer tells of its origin.
struct ContactTests {
  private func contact(status: Int, retryAfter: String? = nil, redirects: Int = 0) -> Contact {
    var headers = HeaderFields()
    if let retryAfter { headers = ["retry-after": retryAfter] }
    let summary = TransferSummary(
      head: ResponseHead(status: status, headers: headers, finalURL: "http://a/"), bytesReceived: 0, wireBytes: 0,
      redirects: redirects, requestSentAt: .now, firstByteAt: .now, connectDuration: .zero, newConnection: true,
      requestTime: 0, responseTime: 0)
    return Contact(.success(summary), now: 1_700_000_000)
  }

  private func contact(
    _ kind: TransferError.Kind, phase: TransferError.Phase? = nil, redirects: Int = 0
  ) -> Contact {
    var error = TransferError(kind, "no", phase: phase)
    error.redirects = redirects
    return Contact(.failure(error), now: 1_700_000_000)
  }

  @Test(arguments: [200, 204, 304, 400, 404, 408, 425, 500, 502, 504])
  func `every answer is one, however bad`(status: Int) {
    #expect(contact(status: status) == .answered)
  }

  @Test(arguments: [429, 503]) func `429 and 503 are refusals, with Retry-After or without`(status: Int) {
    #expect(contact(status: status) == .refused(retryAfter: nil))
    #expect(contact(status: status, retryAfter: "soon") == .refused(retryAfter: nil))
    #expect(contact(status: status, retryAfter: "7") == .refused(retryAfter: .seconds(7)))
    let date = "Tue, 14 Nov 2023 22:13:30 GMT"
    #expect(contact(status: status, retryAfter: date) == .refused(retryAfter: .seconds(10)))
    #expect(contact(status: status, retryAfter: "7", redirects: 1) == .refused(retryAfter: .seconds(7)))
  }

  @Test func `an error that may pass is a refusal if it says when to come again, and another is not`() {
    #expect(contact(status: 500, retryAfter: "7") == .refused(retryAfter: .seconds(7)))
    #expect(contact(status: 404, retryAfter: "7") == .answered)
    #expect(contact(status: 200, retryAfter: "7") == .answered)
  }

  @Test func `without a connection it was unreachable, with one that is silent unresponsive`() {
    #expect(contact(.resolve) == .unreachable)
    #expect(contact(.connect) == .unreachable)
    #expect(contact(.timeout, phase: .connect) == .unreachable)
    #expect(contact(.timeout, phase: .firstByte) == .unresponsive)
    #expect(contact(.timeout, phase: .idle) == .unresponsive)
  }

  @Test func `after a redirect it is not the origin that failed`() {
    #expect(contact(.connect, redirects: 1) == .answered)
    #expect(contact(.timeout, phase: .connect, redirects: 2) == .answered)
    #expect(contact(.cancelled, redirects: 1) == .inconclusive)
  }

  @Test func `what came and was not wanted is an answer`() {
    for kind in [TransferError.Kind.aborted, .tooLarge, .redirects] { #expect(contact(kind) == .answered) }
  }

  @Test func `trouble of this side, and a body cut short, tell nothing`() {
    for kind in [TransferError.Kind.cancelled, .truncated, .network, .tls, .blockedAddress, .invalidRequest] {
      #expect(contact(kind) == .inconclusive)
    }
    #expect(contact(.unanswered) == .inconclusive)
    #expect(contact(.timeout, phase: .deadline) == .inconclusive)
  }
}
