import Foundation
import Testing
import Threads

@testable import HTTPTransport

/// Cancellation and timeouts.
@Suite struct EndTests {
  let transport = Transport.forTests()

  @Test func `a transfer can be cancelled before it connects`() throws {
    let server = ScriptedServer { _, connection in connection.respond() }
    let blocker = Gate()
    // Keeps the transport's thread busy, so that start and cancel take effect in one turn.
    let busy = Recorder { _ in
      blocker.wait()
      return .proceed
    }
    _ = transport.start(TransferRequest(server.url()), consumer: busy)
    busy.wait { $0.heads.count == 1 }
    let recorder = Recorder()
    transport.cancel(transport.start(TransferRequest(server.url("/never")), consumer: recorder))
    blocker.open()
    #expect(try recorder.error().kind == .cancelled)
    _ = try busy.summary()
    #expect(server.requests.map(\.path) == ["/"])
  }

  @Test func `a transfer can be cancelled before the answer, during the body and while paused`() throws {
    let server = ScriptedServer { request, connection in
      if request.path != "/silent" { connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc") }
      connection.waitForClose()
    }
    for path in ["/silent", "/body", "/paused"] {
      let recorder = Recorder { _ in path == "/paused" ? .pause : .proceed }
      let seen = server.requests.count
      let id = transport.start(TransferRequest(server.url(path)), consumer: recorder)
      server.waitForRequests(seen + 1)
      if path == "/paused" { recorder.wait { $0.heads.count == 1 } }
      if path == "/body" { recorder.wait { $0.body.count == 3 } }
      transport.cancel(id)
      #expect(try recorder.error().kind == .cancelled)
      #expect(try recorder.error().bytesReceived == (path == "/body" ? 3 : 0))
    }
  }

  @Test func `cancelling a transfer that has ended does nothing`() throws {
    let server = ScriptedServer { _, connection in connection.respond() }
    let recorder = Recorder()
    let id = transport.start(TransferRequest(server.url()), consumer: recorder)
    _ = try recorder.summary()
    transport.cancel(id)
    _ = try transport.get(server.url()).summary()
    #expect(recorder.now.outcomes.count == 1)
  }

  @Test func `an unfinished handshake is a timeout of phase connect`() throws {
    // TLS with a server that sends nothing: the connection is established, the handshake never ends.
    let server = ScriptedServer { _, _ in }
    let transport = Transport.forTests { $0.connectTimeout = .milliseconds(50) }
    let error = try transport.get("https://\(server.origin)/").error()
    #expect(error.kind == .timeout)
    #expect(error.phase == .connect)
  }

  @Test func `a timeout has the phase firstByte or idle`() throws {
    let server = ScriptedServer { request, connection in
      if request.path != "/silent" { connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc") }
      while request.path == "/drip" && connection.send("x") {}
      connection.waitForClose()
    }
    let silent = try transport.get(server.url("/silent")) { $0.idleTimeout = .milliseconds(50) }.error()
    #expect(silent.kind == .timeout)
    #expect(silent.phase == .firstByte)
    // Long enough for the answer of a busy machine.
    let idle = try transport.get(server.url("/idle")) { $0.idleTimeout = .seconds(2) }.error()
    #expect(idle.phase == .idle)
    #expect(idle.bytesReceived == 3)
  }

  @Test func `a consumer may start and cancel from within its calls`() throws {
    let server = ScriptedServer { _, connection in connection.respond(body: "x") }
    let last = Recorder()
    let cancelled = Recorder()
    let recorder = Recorder { [transport] _ in
      _ = transport.start(TransferRequest(server.url("/next")), consumer: last)
      transport.cancel(transport.start(TransferRequest(server.url("/never")), consumer: cancelled))
      return .proceed
    }
    _ = try transport.get(server.url("/first"), recorder).summary()
    #expect(try cancelled.error().kind == .cancelled)
    _ = try last.summary()
    #expect(Set(server.requests.map(\.path)) == ["/first", "/next"])
  }

  @Test func `the actor's work runs on the loop's thread, with or without transfers`() async throws {
    #expect(await transport.count == 0)
    let server = ScriptedServer { _, connection in connection.waitForClose() }
    let recorder = Recorder()
    let id = transport.start(TransferRequest(server.url()), consumer: recorder)
    server.waitForRequests(1)
    #expect(await transport.count == 1)
    transport.cancel(id)
    _ = try recorder.error()
    #expect(await transport.count == 0)
  }
}
