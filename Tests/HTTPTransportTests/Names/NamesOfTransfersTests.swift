import Foundation
import HTTPTypes
import Testing
import Threads

@testable import HTTPTransport

/// Transfers to hosts whose names a name server of the test resolves.
@Suite struct NamesOfTransfersTests {
  private func transport(
    _ names: ScriptedNameServer, _ change: (inout TransportConfiguration) -> Void = { _ in },
    environment: [String: String] = [:], servers: (inout NameServerConfiguration) -> Void = { _ in }
  ) -> Transport {
    var configuration = names.configuration
    configuration.timeout = .milliseconds(500)
    servers(&configuration)
    return Transport.forTests(environment: environment, change, nameServers: configuration)
  }

  @Test func `a transfer uses the name server's address and reports the look-up's duration`() throws {
    let server = ScriptedServer { request, connection in connection.respond(body: request["host"] ?? "") }
    let names = ScriptedNameServer { _, _ in .address("127.0.0.1") }
    let transport = transport(names)
    let first = transport.get("http://a.test:\(server.port)/")
    #expect(first.text == "a.test:\(server.port)")
    let times = try first.summary().times
    #expect(times.name != nil && times.connect != nil && times.tls == nil)
    let second = try transport.get("http://a.test:\(server.port)/").summary()
    #expect(second.times.name == nil && second.times.connect == nil)
    #expect(names.names == ["a.test"])
  }

  @Test func `the host of each redirect is looked up`() throws {
    let server = ScriptedServer { request, connection in
      request["host"]!.hasPrefix("a.")
        ? connection.redirect(to: "http://b.test:\(request["host"]!.split(separator: ":")[1])/")
        : connection.respond(body: "there")
    }
    let names = ScriptedNameServer { _, _ in .address("127.0.0.1") }
    let transport = transport(names)
    #expect(transport.get("http://a.test:\(server.port)/").text == "there")
    #expect(names.names == ["a.test", "b.test"])
  }

  @Test func `the next address is tried if the first one has no listener`() throws {
    let server = ScriptedServer { _, connection in connection.respond(body: "there") }
    let names = ScriptedNameServer { _, _ in .addresses(["127.0.0.2", "127.0.0.1"], timeToLive: 60) }
    let transport = transport(names)
    #expect(transport.get("http://a.test:\(server.port)/").text == "there")
  }

  @Test(arguments: [
    (ScriptedNameServer.Reply.noSuchName, TransferError.Kind.resolve), (.serverFailed, .unanswered),
    (.drop, .unanswered),
  ])
  func `a missing name differs from a missing answer`(reply: ScriptedNameServer.Reply, kind: TransferError.Kind)
    throws
  {
    let names = ScriptedNameServer { _, _ in reply }
    let transport = transport(names)
    let error = try transport.get("http://a.test/?secret").error()
    #expect(error.kind == kind)
    #expect(error.message.contains("a.test") && !error.message.contains("secret"))
  }

  @Test func `the wait for a name server counts towards the connect timeout`() throws {
    let names = ScriptedNameServer { _, _ in .drop }
    let transport = transport(names) {
      $0.connectTimeout = .milliseconds(50)
    } servers: {
      $0.timeout = .seconds(3600)
    }
    #expect(try transport.get("http://a.test/").error().kind == .unanswered)
  }

  @Test func `a cancelled transfer ends its look-up`() throws {
    let names = ScriptedNameServer { _, _ in .drop }
    let transport = transport(names) { _ in
    } servers: {
      $0.timeout = .seconds(3600)
    }
    let recorders = (0..<200).map { _ in Recorder() }
    let ids = recorders.enumerated().map { number, recorder in
      transport.start(TransferRequest("http://\(number).test/"), consumer: recorder)
    }
    names.waitForQuestions(64)
    for id in ids { transport.cancel(id) }
    for recorder in recorders { #expect(try recorder.error().kind == .cancelled) }
    #expect(transport.resolverNow.waiting == 0)
  }

  @Test func `a name for the loopback interface needs no name server`() throws {
    let server = ScriptedServer { _, connection in connection.respond(body: "there") }
    let names = ScriptedNameServer { _, _ in .noSuchName }
    let transport = transport(names)
    for host in ["localhost", "localhost.", "a.localhost", "127.0.0.1", "2130706433"] {
      #expect(transport.get("http://\(host):\(server.port)/").text == "there", "\(host)")
    }
    #expect(names.questions.isEmpty)
  }

  @Test func `a name that cannot exist is not asked`() throws {
    let names = ScriptedNameServer { _, _ in .address("127.0.0.1") }
    let transport = transport(names)
    for host in ["nowhere.invalid", "a..b", "x.onion"] {
      #expect(try transport.get("http://\(host)/").error().kind == .resolve, "\(host)")
    }
    #expect(names.questions.isEmpty)
  }

  @Test func `a name in the hosts file needs no name server`() throws {
    let server = ScriptedServer { _, connection in connection.respond(body: "there") }
    let names = ScriptedNameServer { _, _ in .noSuchName }
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("hosts-\(UUID().uuidString)")
    try Data("127.0.0.1 Known.Test\n".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let transport = transport(names) { _ in
    } servers: {
      $0.hostsFile = file.path
    }
    #expect(transport.get("http://known.test:\(server.port)/").text == "there")
    #expect(names.questions.isEmpty)
  }

  @Test func `a proxy resolves the names`() throws {
    let proxy = ScriptedServer { request, connection in connection.respond(body: request.line) }
    let names = ScriptedNameServer { _, _ in .noSuchName }
    let transport = transport(names) { $0.proxy = proxy.url("") }
    #expect(transport.get("http://a.test/").text == "GET http://a.test/ HTTP/1.1")
    transport.lookUp(Origin(scheme: "http", host: "a.test", port: 80)) { _ in }
    #expect(transport.resolverNow.lookUps == 0)
    #expect(names.questions.isEmpty)
  }

  @Test func `the system resolves the names if it is configured to`() throws {
    let names = ScriptedNameServer { _, _ in .address("127.0.0.1") }
    let transport = transport(names) { $0.resolver = .system }
    // Without a network, the system does not know.
    var list: UnsafeMutablePointer<addrinfo>?
    let isCertain = getaddrinfo("nowhere.invalid", nil, nil, &list) == EAI_NONAME
    #expect(try transport.get("http://nowhere.invalid/").error().kind == (isCertain ? .resolve : .unanswered))
    #expect(names.questions.isEmpty)
  }

  @Test func `an address that is not public is refused with either resolver`() throws {
    let server = ScriptedServer { _, connection in connection.respond(body: "secret") }
    let names = ScriptedNameServer { _, _ in .addresses(["127.0.0.1", "10.0.0.1"], timeToLive: 60) }
    let transport = transport(names) { $0.network = .publicOnly }
    #expect(try transport.get("http://a.test:\(server.port)/").error().kind == .blockedAddress)
    #expect(server.connectionCount == 0)
  }
}
