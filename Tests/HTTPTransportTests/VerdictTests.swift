import Testing
import Threads

@testable import HTTPTransport

@Suite struct VerdictTests {
  let transport = Transport.forTests()

  @Test func `a paused transfer delivers nothing until it is resumed, and then everything`() throws {
    let body = String(repeating: "0123456789abcdef", count: 100_000)
    let server = ScriptedServer { _, connection in connection.respond(body: body) }
    let recorder = Recorder { _ in
      .pause
    } onBytes: { _ in
      .pause
    }
    let id = transport.start(TransferRequest(server.url()), consumer: recorder)
    recorder.wait { $0.heads.count == 1 }
    var calls = 0
    while recorder.now.outcomes.isEmpty {
      #expect(recorder.now.calls == calls)
      transport.resume(id)
      calls += 1
      recorder.wait { $0.calls == calls || !$0.outcomes.isEmpty }
    }
    _ = try recorder.summary()
    #expect(recorder.text == body)
  }

  @Test func `a paused transfer keeps compressed bytes and delivers them when it is resumed`() throws {
    let content = [UInt8](repeating: 7, count: 3_000_000) + ContentDecoderTests.content
    let coded = ContentDecoderTests.coded(content, windowBits: 31)
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(coded.count)\r\n\r\n")
      connection.send(coded)
    }
    let recorder = Recorder(onBytes: { _ in .pause })
    let id = transport.start(TransferRequest(server.url()), consumer: recorder)
    recorder.wait { $0.calls == 1 }
    var calls = 1
    while recorder.now.outcomes.isEmpty {
      // Everything that zlib has read is delivered, which may take one more call.
      #expect(recorder.now.calls <= calls + 1)
      calls = recorder.now.calls
      transport.resume(id)
      recorder.wait { $0.calls > calls || !$0.outcomes.isEmpty }
      calls += 1
    }
    _ = try recorder.summary()
    #expect(calls > 45)
    #expect(recorder.now.body == content)
  }

  @Test func `a resume before the pause has taken effect is not lost`() throws {
    let body = String(repeating: "x", count: 1_000_000)
    let server = ScriptedServer { _, connection in connection.respond(body: body) }
    let id = Locked<TransferID?>(nil)
    let recorder = Recorder { [transport] _ in
      id.wait { $0 }.map(transport.resume)
      return .pause
    } onBytes: { [transport] _ in
      id.withLock { $0 }.map(transport.resume)
      return .pause
    }
    let started = transport.start(TransferRequest(server.url()), consumer: recorder)
    id.withLock { $0 = started }
    id.notify()
    #expect(try recorder.summary().bytesReceived == 1_000_000)
  }

  @Test func `a pause suspends the idle timeout`() throws {
    let server = ScriptedServer { request, connection in
      if request.path == "/silent" { connection.waitForClose() } else { connection.respond(body: "x") }
    }
    let recorder = Recorder { _ in .pause }
    let short = Duration.milliseconds(50)
    var request = TransferRequest(server.url())
    request.idleTimeout = short
    let paused = transport.start(request, consumer: recorder)
    recorder.wait { !$0.heads.isEmpty }
    for _ in 0..<3 {
      let silent = try transport.get(server.url("/silent")) { $0.idleTimeout = short }.error()
      #expect(silent.phase == .firstByte)
    }
    transport.resume(paused)
    #expect(try recorder.summary().bytesReceived == 1)
  }

  @Test func `abort at the head or during the body ends the transfer`() throws {
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
      connection.waitForClose()
    }
    let atHead = transport.get(server.url(), Recorder { _ in .abort })
    #expect(try atHead.error().kind == .aborted)
    #expect(atHead.now.calls == 0)
    let atBytes = transport.get(server.url(), Recorder(onBytes: { _ in .abort }))
    let error = try atBytes.error()
    #expect(error.kind == .aborted && error.message == "the receiver stopped the transfer" && error.bytesReceived == 3)
  }

  @Test func `a refusal of held bytes ends the transfer`() throws {
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
      connection.waitForClose()
    }
    let resumed = Locked(false)
    let recorder = Recorder { _ in
      .pause
    } onBytes: { _ in
      resumed.withLock { $0 } ? .abort : .proceed
    }
    let id = transport.start(TransferRequest(server.url()), consumer: recorder)
    recorder.wait { $0.heads.count == 1 }
    resumed.withLock { $0 = true }
    transport.resume(id)
    #expect(try recorder.error().kind == .aborted)
  }

  @Test func `discarding a short body keeps the connection, discarding a long one closes it`() throws {
    let server = ScriptedServer { request, connection in
      connection.respond("404 Not Found", body: String(repeating: "x", count: Int(request.path.dropFirst()) ?? 0))
    }
    for (size, connections) in [("0", 1), ("65536", 1), ("65537", 1), ("10", 2)] {
      let recorder = transport.get(server.url("/" + size), Recorder { _ in .discard })
      #expect(try recorder.summary().head.status == 404)
      #expect(recorder.now.calls == 0)
      #expect(server.connectionCount == connections, "\(size)")
    }
  }

  @Test func `a discarded body may be truncated or endless`() throws {
    let server = ScriptedServer { request, connection in
      connection.send("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
      while request.path == "/endless" && connection.send("4\r\n0123\r\n") {}
      connection.close()
    }
    for path in ["/cut", "/endless"] {
      #expect(try transport.get(server.url(path), Recorder { _ in .discard }).summary().head.status == 404)
    }
  }
}
