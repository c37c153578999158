import HTTPTypes
import Testing
import Threads

@testable import HTTPTransport

/// The resolver with a name server of the test, without transfers.
@Suite struct ResolverTests {
  /// Long enough for an answer on a busy machine.
  private let short = Duration.milliseconds(500)

  private func lookUp(_ name: String, _ transport: Transport) -> NameResolution {
    begin([name], transport).wait { $0.first }!
  }

  /// Looks up each of the names. The outcomes are collected in the order of their arrival.
  private func begin(_ names: [String], _ transport: Transport) -> Locked<[NameResolution]> {
    let outcomes = Locked<[NameResolution]>([])
    for name in names {
      transport.lookUp(Origin(scheme: "http", host: name, port: 80)) { resolution in
        outcomes.withLock { $0.append(resolution) }
        outcomes.notify()
      }
    }
    return outcomes
  }

  private func transport(_ configuration: NameServerConfiguration) -> Transport {
    Transport.forTests(nameServers: configuration)
  }

  @Test(arguments: [
    (ScriptedNameServer.Reply.address("192.0.2.1"), NameResolution.Outcome.resolved),
    (.alias("b.test", timeToLive: 5, address: "192.0.2.1"), .resolved),
    (.noSuchName, .noSuchName), (.noData, .noSuchName), (.serverFailed, .unanswered), (.refused, .unanswered),
    (.code(1), .unanswered), (.code(4), .unanswered), (.garbage([0xC0]), .unanswered),
    (.garbage([UInt8](repeating: 0xff, count: 300)), .unanswered), (.garbage([0xC0, 0x1D, 0, 1]), .unanswered),
    (.rubbish, .unanswered), (.drop, .unanswered),
  ])
  func `the name server's reply is the outcome`(reply: ScriptedNameServer.Reply, outcome: NameResolution.Outcome) {
    let server = ScriptedNameServer { _, _ in reply }
    var configuration = server.configuration
    configuration.timeout = short
    let transport = transport(configuration)
    #expect(lookUp("a.test", transport).outcome == outcome)
    #expect(Set(server.names) == ["a.test"])
  }

  @Test func `all waiters for a name share one query, and later ones its answer`() {
    let gate = Gate()
    let server = ScriptedNameServer { _, _ in
      gate.wait()
      return .address("192.0.2.1")
    }
    var configuration = server.configuration
    configuration.timeout = .seconds(3600)
    let transport = transport(configuration)
    let outcomes = begin(Array(repeating: "a.test", count: 100), transport)
    server.waitForQuestions(1)
    #expect(transport.resolverNow.inFlight == 1)
    gate.open()
    _ = outcomes.wait { $0.count == 100 ? () : nil }
    #expect(outcomes.withLock { $0.allSatisfy { $0.outcome == .resolved && $0.duration > .zero } })
    #expect(lookUp("a.test", transport) == NameResolution(.resolved))
    #expect(server.questions.count == 1)
    let statistics = transport.resolverNow
    #expect(statistics.names == 1 && statistics.lookUps == 1 && statistics.queries == 1 && statistics.inFlight == 0)
  }

  @Test func `names without an answer do not hold back the next one`() {
    let server = ScriptedNameServer { question, _ in question.name == "a.test" ? .address("192.0.2.1") : .drop }
    var configuration = server.configuration
    (configuration.timeout, configuration.silenceTimeout) = (.seconds(3600), .seconds(3600))
    let transport = transport(configuration)
    let others = begin((0..<150).map { "dead-\($0).test" }, transport)
    #expect(lookUp("a.test", transport).outcome == .resolved)
    #expect(others.withLock { $0.count } == 0)
  }

  @Test func `a refused query takes turns with new names`() {
    let server = ScriptedNameServer { question, number in
      question.name == "0.test" && number == 0 ? .refused : .address("192.0.2.1")
    }
    let transport = transport(server.configuration)
    let outcomes = begin((0..<2000).map { "\($0).test" }, transport)
    _ = outcomes.wait { $0.count == 2000 ? () : nil }
    let again = server.names.lastIndex(of: "0.test")
    #expect((again ?? .max) < 1000)
  }

  @Test func `a nonexistent name is stored, a missing answer is not`() {
    let server = ScriptedNameServer { question, number in
      if question.name == "gone.test" { return .noSuchName }
      return number == 0 ? .serverFailed : .address("192.0.2.1")
    }
    let transport = transport(server.configuration)
    #expect(lookUp("gone.test", transport).outcome == .noSuchName)
    #expect(lookUp("gone.test", transport) == NameResolution(.noSuchName))
    #expect(lookUp("ill.test", transport).outcome == .unanswered)
    #expect(lookUp("ill.test", transport).outcome == .resolved)
    #expect(server.names == ["gone.test", "ill.test", "ill.test"])
  }

  @Test func `a query that is dropped or refused is repeated`() {
    let server = ScriptedNameServer { question, number in
      if number == 2 { return .address("192.0.2.1") }
      return question.name == "refused.test" ? .refused : .drop
    }
    var configuration = server.configuration
    configuration.timeout = short
    let transport = transport(configuration)
    #expect(lookUp("dropped.test", transport).outcome == .resolved)
    #expect(lookUp("refused.test", transport).outcome == .resolved)
    #expect(server.questions.count == 6)
  }

  @Test func `a query with a truncated answer is repeated over TCP`() {
    let server = ScriptedNameServer { _, number in
      number == 0 ? .truncated : .addresses((1...30).map { "192.0.2.\($0)" }, timeToLive: 60)
    }
    let transport = transport(server.configuration)
    #expect(lookUp("a.test", transport).outcome == .resolved)
    #expect(server.overTCP == 1)
  }

  @Test func `a name server that answers instead of another one is asked first from then on`() {
    let dead = ScriptedNameServer { _, _ in .drop }
    let alive = ScriptedNameServer { _, _ in .address("192.0.2.1") }
    var configuration = dead.configuration
    configuration.servers = "127.0.0.1:\(dead.port),127.0.0.1:\(alive.port)"
    configuration.timeout = short
    let transport = transport(configuration)
    #expect(lookUp("a.test", transport).outcome == .resolved)
    #expect(lookUp("b.test", transport).outcome == .resolved)
    #expect(dead.names == ["a.test"])
    #expect(alive.names == ["a.test", "b.test"])
  }

  @Test func `a name for which one server fails is asked of the next`() {
    let ill = ScriptedNameServer { _, _ in .serverFailed }
    let well = ScriptedNameServer { _, _ in .address("192.0.2.1") }
    var configuration = ill.configuration
    configuration.servers = "127.0.0.1:\(ill.port),127.0.0.1:\(well.port)"
    let transport = transport(configuration)
    #expect(lookUp("a.test", transport).outcome == .resolved)
    #expect(well.names == ["a.test"])
  }

  @Test func `with IPv6 both types are asked, and one of them is enough`() {
    let server = ScriptedNameServer { question, _ in
      switch question.name {
      case "both.test": .address(question.type == .a ? "192.0.2.1" : "2001:db8::1")
      case "new.test": question.type == .a ? .noData : .address("2001:db8::1")
      default: question.type == .a ? .address("192.0.2.1") : .drop
      }
    }
    var configuration = server.configuration
    configuration.hasIPv6 = true
    // The look-up does not wait for the missing answer.
    configuration.timeout = .seconds(3600)
    let transport = transport(configuration)
    for name in ["both.test", "new.test", "old.test"] {
      #expect(lookUp(name, transport).outcome == .resolved)
    }
    #expect(server.questions.count == 6)
  }

  @Test func `a name server's port without a listener is a missing answer`() {
    var configuration = ScriptedNameServer { _, _ in .drop }.configuration
    configuration.timeout = short
    let transport = transport(configuration)
    #expect(lookUp("a.test", transport).outcome == .unanswered)
  }

  @Test func `the look-up of a cancelled transfer sends no query`() {
    let server = ScriptedNameServer { question, _ in question.name == "last.test" ? .address("192.0.2.1") : .drop }
    var configuration = server.configuration
    configuration.timeout = .seconds(1)
    configuration.quietAfter = .seconds(3600)
    let transport = transport(configuration)
    let ids = (0..<1000).map { transport.start(TransferRequest("http://\($0).test/"), consumer: Recorder()) }
    server.waitForQuestions(64)
    for id in ids { transport.cancel(id) }
    #expect(transport.resolverNow.waiting == 0)
    #expect(lookUp("last.test", transport).outcome == .resolved)
    // Those that were asked have filled the resolver, once or, on a slow machine, a few times.
    #expect(server.questions.count < ids.count)
    #expect(transport.resolverNow.waiting == 0)
  }

  @Test func `waiting look-ups end without a query while no name server answers`() {
    let server = ScriptedNameServer { _, _ in .drop }
    var configuration = server.configuration
    configuration.timeout = short
    configuration.silenceTimeout = .seconds(1)
    configuration.quietAfter = .seconds(3600)
    let transport = transport(configuration)
    let outcomes = begin((0..<5000).map { "\($0).test" }, transport)
    _ = outcomes.wait { $0.count == 5000 ? () : nil }
    #expect(outcomes.withLock { $0.allSatisfy { $0.outcome == .unanswered } })
    #expect(Set(server.names).count < 1000)
    #expect(transport.resolverNow.unanswered == 5000)
  }

  @Test func `all waiters for a name can be cancelled`() {
    let server = ScriptedNameServer { question, _ in question.name == "last.test" ? .address("192.0.2.1") : .drop }
    var configuration = server.configuration
    configuration.timeout = .seconds(3600)
    let transport = transport(configuration)
    let ids = (0..<20_000).map { _ in
      transport.start(TransferRequest("http://a.test/"), consumer: Recorder())
    }
    server.waitForQuestions(1)
    for id in ids { transport.cancel(id) }
    #expect(lookUp("last.test", transport).outcome == .resolved)
    #expect(server.names == ["a.test", "last.test"])
  }

  @Test func `a thousand names are resolved even if queries are dropped`() {
    let server = ScriptedNameServer { question, number in
      number == 0 && question.name.hasPrefix("7") ? .drop : .address("192.0.2.1")
    }
    var configuration = server.configuration
    // Long enough for a busy machine: an answer that comes later counts as dropped.
    configuration.timeout = .seconds(3)
    configuration.silenceTimeout = .seconds(3600)
    let transport = transport(configuration)
    let outcomes = begin((0..<1000).map { "\($0).test" }, transport)
    _ = outcomes.wait { $0.count == 1000 ? () : nil }
    #expect(outcomes.withLock { $0.allSatisfy { $0.outcome == .resolved } })
    #expect(Set(server.names).count == 1000)
    #expect(transport.resolverNow.names == 1000)
  }
}
