import Testing

@testable import HTTPTransport

@Suite struct NameQuestionsTests {
  private typealias Answer = NameQuestions.Answer
  private let ipv4 = IPAddress("192.0.2.1")!
  private let ipv6 = IPAddress("2001:db8::1")!
  private func found(_ address: IPAddress, _ seconds: Int = 60) -> NameQuestions.Answer {
    .addresses([address], timeToLive: .seconds(seconds))
  }

  @Test func `where IPv6 is reached both types are asked for at once, and IPv6 comes first`() {
    var questions = NameQuestions(candidates: ["a"], prefersIPv6: true)
    #expect(questions.begin() == [.a, .aaaa])
    #expect(questions.answered(.a, found(ipv4, 60)) == .wait)
    #expect(questions.answered(.aaaa, found(ipv6, 20)) == .resolved([ipv6, ipv4], timeToLive: .seconds(20)))
  }

  @Test func `where IPv6 is not reached, one query is enough`() {
    var questions = NameQuestions(candidates: ["a"], prefersIPv6: false)
    #expect(questions.begin() == [.a])
    #expect(questions.answered(.a, found(ipv4)) == .resolved([ipv4], timeToLive: .seconds(60)))
  }

  @Test func `where IPv6 is not reached, a name that has nothing else is found`() {
    var questions = NameQuestions(candidates: ["a"], prefersIPv6: false)
    _ = questions.begin()
    #expect(questions.answered(.a, .noData) == .ask([.aaaa]))
    #expect(questions.answered(.aaaa, found(ipv6)) == .resolved([ipv6], timeToLive: .seconds(60)))
  }

  @Test func `a name that does not exist is not asked for again as another type`() {
    var questions = NameQuestions(candidates: ["a"], prefersIPv6: false)
    _ = questions.begin()
    #expect(questions.answered(.a, .noSuchName) == .noSuchName)
  }

  /// RFC 4074 section 4.2: some name servers say so of AAAA only.
  @Test func `addresses count for more than the answer that the name does not exist`() {
    var questions = NameQuestions(candidates: ["a"], prefersIPv6: true)
    _ = questions.begin()
    #expect(questions.answered(.aaaa, .noSuchName) == .wait)
    #expect(questions.answered(.a, found(ipv4)) == .resolved([ipv4], timeToLive: .seconds(60)))
  }

  @Test func `no answer is told apart from no such name`() {
    for (first, second) in [(Answer.failed, Answer.noData), (.noData, .failed), (.failed, .failed)] {
      var questions = NameQuestions(candidates: ["a", "b"], prefersIPv6: true)
      _ = questions.begin()
      #expect(questions.answered(.a, first) == .wait)
      #expect(questions.answered(.aaaa, second) == .unanswered)
    }
  }

  @Test func `addresses of one type are enough, and are kept for a short time then`() {
    var questions = NameQuestions(candidates: ["a"], prefersIPv6: true)
    _ = questions.begin()
    #expect(questions.isWorthRepeating(.aaaa))
    #expect(questions.answered(.a, found(ipv4, 3600)) == .wait)
    #expect(!questions.isWorthRepeating(.aaaa))
    #expect(questions.answered(.aaaa, .failed) == .resolved([ipv4], timeToLive: .seconds(30)))
  }

  @Test func `the names of the search list are asked for one after the other`() {
    var questions = NameQuestions(candidates: ["a.x", "a.y", "a"], prefersIPv6: true)
    #expect(questions.name == "a.x")
    _ = questions.begin()
    _ = questions.answered(.a, .noSuchName)
    #expect(questions.answered(.aaaa, .noSuchName) == .ask([.a, .aaaa]))
    #expect(questions.name == "a.y")
    _ = questions.answered(.a, .noData)
    #expect(questions.answered(.aaaa, .noData) == .ask([.a, .aaaa]))
    #expect(questions.name == "a")
    _ = questions.answered(.a, .noSuchName)
    #expect(questions.answered(.aaaa, .noSuchName) == .noSuchName)
  }
}
