import Testing

@testable import Worker

@Suite struct RepeatedFailureTests {
  @Test func `only the first failure, and the first success after it, are reported`() {
    var failures = RepeatedFailure()
    let outcomes = [false, false, true, true, false, false, true]
    #expect(outcomes.map { failures.note(failure: $0) } == [nil, nil, .began, nil, .ended, nil, .began])
  }
}
