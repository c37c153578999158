import Platform
import Testing

@testable import HTTPTransport

@Suite struct NameQuestionsTests {
  private typealias Answer = NameQuestions.Answer
  private let ipv4 = IPAddress("192.0.2.1")!
  private let ipv6 = IPAddress("2001:db8::1")!
  private func found(_ address: IPAddress, _ seconds: Int = 60) -> NameQuestions.Answer {
    .addresses([address], timeToLive: .seconds(seconds))
  }

  @Test func `with IPv6 both types are asked at once, and IPv6 addresses come first`() {
    var questions = NameQuestions(candidates: ["a"], prefersIPv6: true)
    #expect(questions.begin() == [.a, .aaaa])
    #expect(questions.answered(.a, found(ipv4, 60)) == .wait)
    #expect(questions.answered(.aaaa, found(ipv6, 20)) == .resolved([ipv6, ipv4], timeToLive: .seconds(20)))
  }

  @Test func `without IPv6 one query is enough`() {
    var questions = NameQuestions(candidates: ["a"], prefersIPv6: false)
    #expect(questions.begin() == [.a])
    #expect(questions.answered(.a, found(ipv4)) == .resolved([ipv4], timeToLive: .seconds(60)))
  }

  @Test func `without IPv6 a name that has only IPv6 addresses is resolved`() {
    var questions = NameQuestions(candidates: ["a"], prefersIPv6: false)
    _ = questions.begin()
    #expect(questions.answered(.a, .noData) == .ask([.aaaa]))
    #expect(questions.answered(.aaaa, found(ipv6)) == .resolved([ipv6], timeToLive: .seconds(60)))
  }

  @Test func `a nonexistent name is not asked again with another type`() {
    var questions = NameQuestions(candidates: ["a"], prefersIPv6: false)
    _ = questions.begin()
    #expect(questions.answered(.a, .noSuchName) == .noSuchName)
  }

  /// RFC 4074 section 4.2: some name servers answer that for AAAA only.
  @Test func `addresses of one type override the answer that the name does not exist`() {
    var questions = NameQuestions(candidates: ["a"], prefersIPv6: true)
    _ = questions.begin()
    #expect(questions.answered(.aaaa, .noSuchName) == .wait)
    #expect(questions.answered(.a, found(ipv4)) == .resolved([ipv4], timeToLive: .seconds(60)))
  }

  @Test func `a missing answer differs from a nonexistent name`() {
    for (first, second) in [(Answer.failed, Answer.noData), (.noData, .failed), (.failed, .failed)] {
      var questions = NameQuestions(candidates: ["a", "b"], prefersIPv6: true)
      _ = questions.begin()
      #expect(questions.answered(.a, first) == .wait)
      #expect(questions.answered(.aaaa, second) == .unanswered)
    }
  }

  @Test func `addresses of one type are enough, but are stored for a short time`() {
    var questions = NameQuestions(candidates: ["a"], prefersIPv6: true)
    _ = questions.begin()
    #expect(questions.isWorthRepeating(.aaaa))
    #expect(questions.availableAddresses == nil)
    #expect(questions.answered(.a, found(ipv4, 3600)) == .wait)
    #expect(questions.availableAddresses?.addresses == [ipv4])
    #expect(questions.availableAddresses?.timeToLive == .seconds(30))
    #expect(!questions.isWorthRepeating(.aaaa))
    #expect(questions.answered(.aaaa, .failed) == .resolved([ipv4], timeToLive: .seconds(30)))
  }

  @Test func `the names of the search list are asked one after the other`() {
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

@Suite struct NameAnswerTests {
  private let question: [UInt8] = [1, 97, 4, 116, 101, 115, 116, 0, 0, 1, 0, 1]

  private func end(answers: UInt8, _ records: [UInt8]) -> NameQuery.End {
    let message = [0, 1, 0x81, 0x80, 0, 1, 0, answers, 0, 0, 0, 0] + question + records
    return message.withUnsafeBufferPointer { NameQuery.End(0, $0, .a) }
  }

  private func address(_ owner: [UInt8], timeToLive: [UInt8], last: UInt8) -> [UInt8] {
    owner + [0, 1, 0, 1] + timeToLive + [0, 4, 192, 0, 2, last]
  }

  @Test func `the time to live of an answer is the shortest of its records, aliases included`() {
    let name: [UInt8] = [0xC0, 12]
    let both = address(name, timeToLive: [0, 0, 0, 60], last: 1) + address(name, timeToLive: [0, 0, 0, 50], last: 2)
    let addresses = ["192.0.2.1", "192.0.2.2"].compactMap { IPAddress($0) }
    #expect(end(answers: 2, both) == .answered(.addresses(addresses, timeToLive: .seconds(50))))
    // An alias of the name `b`, for 20 seconds.
    let alias = name + [0, 5, 0, 1, 0, 0, 0, 20, 0, 3, 1, 98, 0]
    let other = address([1, 98, 0], timeToLive: [0, 0, 1, 0], last: 1)
    #expect(end(answers: 2, alias + other) == .answered(.addresses([addresses[0]], timeToLive: .seconds(20))))
    // RFC 2181 section 8: a time with the highest bit set is zero.
    let endless = address(name, timeToLive: [255, 255, 255, 255], last: 1)
    #expect(end(answers: 1, endless) == .answered(.addresses([addresses[0]], timeToLive: .zero)))
  }

  @Test func `an answer that ends too early is a server failure`() {
    let record = address([0xC0, 12], timeToLive: [0, 0, 0, 60], last: 1)
    for count in 0..<record.count { #expect(end(answers: 1, Array(record[..<count])) == .serverFailed, "\(count)") }
  }

  @Test func `an address of another name is ignored`() {
    #expect(end(answers: 1, address([1, 98, 0], timeToLive: [0, 0, 0, 60], last: 1)) == .answered(.noData))
  }

  @Test func `the number of addresses is limited`() {
    let records = (0..<200).map { address([0xC0, 12], timeToLive: [0, 0, 0, 60], last: UInt8($0)) }
    guard case .answered(.addresses(let addresses, _)) = end(answers: 200, Array(records.joined())) else {
      Issue.record("no addresses")
      return
    }
    #expect(addresses.count == 32)
  }
}

@Suite struct ServerChoiceTests {
  @Test func `a server that answers instead of the first one is preferred until the first one answers again`() {
    let start = Instant.now
    var choice = ServerChoice(now: start)
    #expect(choice.first(now: start) == 0)
    choice.answered(by: 0, now: start)
    #expect(choice.first(now: start + .seconds(3600)) == 0)
    choice.answered(by: 1, now: start + .seconds(3600))
    #expect(choice.first(now: start + .seconds(3629)) == 1)
    // One query in half a minute goes to the first server.
    #expect(choice.first(now: start + .seconds(3630)) == 0)
    #expect(choice.first(now: start + .seconds(3631)) == 1)
    choice.answered(by: 1, now: start + .seconds(3631))
    #expect(choice.first(now: start + .seconds(3660)) == 0)
    choice.answered(by: 0, now: start + .seconds(3660))
    #expect(choice.first(now: start + .seconds(3660)) == 0)
  }
}
