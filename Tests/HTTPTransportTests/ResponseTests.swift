import HTTPTypes
import Testing
import Threads

@testable import HTTPTransport

@Suite struct ResponseTests {
  let transport = Transport.forTests()

  @Test func `a response is delivered as head, bytes and end, with a summary`() throws {
    let server = ScriptedServer { _, connection in
      connection.respond("200 Fine", ["X-One: 1", "X-One:  2 ", "Content-Type: image/png"], body: "hello")
    }
    let recorder = transport.get(server.url("/a?b#c"))
    let summary = try recorder.summary()
    let head = try #require(recorder.now.heads.first)
    #expect(head.status == 200)
    #expect(head.httpVersion == "1.1")
    #expect(head.headers["x-one"] == "1, 2")
    #expect(head.contentLength == 5)
    #expect(head.finalURL == server.url("/a?b"))
    #expect(recorder.text == "hello")
    #expect(summary.head == head)
    #expect(summary.bytesReceived == 5)
    #expect(server.connectionCount == 1)
    #expect(summary.redirects == 0)
    let (sent, answered) = (try #require(summary.times.requestSentAt), try #require(summary.times.firstByteAt))
    #expect(summary.times.startedAt <= sent && sent <= answered && answered <= summary.times.endedAt)
    #expect(summary.responseTime >= summary.requestTime)
    #expect(server.requests[0].line == "GET /a?b HTTP/1.1")
    #expect(server.requests[0]["host"] == server.origin)
    #expect(server.requests[0]["user-agent"] == "ImageWorker/test")
    #expect(server.requests[0]["accept-encoding"]?.contains("gzip") == true)
    #expect(server.requests[0]["expect"] == nil)
  }

  @Test func `a connection is reused`() throws {
    let server = ScriptedServer { _, connection in connection.respond(body: "x") }
    for path in ["/1", "/2", "/3"] { _ = try transport.get(server.url(path)).summary() }
    #expect(server.connectionCount == 1)
  }

  @Test func `a new connection is opened only if the request needs one`() throws {
    let server = ScriptedServer { _, connection in connection.respond(body: "x") }
    _ = try transport.get(server.url()).summary()
    #expect(server.connectionCount == 1)
    _ = try transport.get(server.url()) { $0.needsFreshConnection = true }.summary()
    #expect(server.connectionCount == 2)
    _ = try transport.get(server.url()).summary()
    #expect(server.connectionCount == 2)
  }

  @Test func `as many connections are kept as may be open at once`() throws {
    let transport = Transport.forTests { $0.maxConnections = 20 }
    let everyone = Gate()
    let server = ScriptedServer { request, connection in
      if request.path == "/first" { everyone.wait() }
      connection.respond(body: "x")
    }
    for path in ["/first", "/second"] {
      let recorders = (0..<20).map { _ in
        let recorder = Recorder()
        _ = transport.start(TransferRequest(server.url(path)), consumer: recorder)
        return recorder
      }
      if path == "/first" {
        server.waitForRequests(20)
        everyone.open()
      }
      for recorder in recorders { _ = try recorder.summary() }
    }
    #expect(server.connectionCount == 20)
  }

  @Test func `a transfer to another origin closes an idle connection or waits for one in use`() throws {
    let transport = Transport.forTests { $0.maxConnections = 3 }
    let servers = (0..<10).map { _ in ScriptedServer { _, connection in connection.respond(body: "x") } }
    for _ in 0..<3 {
      let recorders = servers.flatMap { server in
        (0..<5).map { _ in
          let recorder = Recorder()
          _ = transport.start(TransferRequest(server.url()), consumer: recorder)
          return recorder
        }
      }
      for recorder in recorders { _ = try recorder.summary() }
    }
    // If there could be ten connections, one to each would be enough.
    #expect(servers.map(\.connectionCount).reduce(0, +) > servers.count)
  }

  @Test func `a connection that was closed while idle is replaced`() throws {
    let server = ScriptedServer { request, connection in
      connection.respond(body: "x")
      if request.path == "/1" { connection.close() }
    }
    _ = try transport.get(server.url("/1")).summary()
    _ = try transport.get(server.url("/2")).summary()
    #expect(server.connectionCount == 2)
  }

  @Test func `a request is sent again each time a reused connection is closed without an answer`() throws {
    let served = Locked<Set<ObjectIdentifier>>([])
    let server = ScriptedServer { _, connection in
      // After the second request has arrived, so that no client can have known.
      if served.withLock({ $0.insert(ObjectIdentifier(connection)).inserted }) {
        connection.respond(body: "x")
      } else {
        connection.close()
      }
    }
    for number in 0..<20 { _ = try transport.get(server.url("/\(number)")).summary() }
    #expect(server.connectionCount == 20)
    #expect(server.requests.count == 39)
  }

  @Test func `200 transfers at once all arrive`() throws {
    let transport = Transport.forTests { $0.maxConnections = 200 }
    let everyone = Gate()
    let server = ScriptedServer { request, connection in
      everyone.wait()
      connection.respond(body: "body of \(request.path)")
    }
    let recorders = (0..<200).map { number in
      let recorder = Recorder()
      _ = transport.start(TransferRequest(server.url("/\(number)")), consumer: recorder)
      return recorder
    }
    server.waitForRequests(200)
    everyone.open()
    for (number, recorder) in recorders.enumerated() {
      _ = try recorder.summary()
      #expect(recorder.text == "body of /\(number)")
    }
    #expect(server.connectionCount == 200)
  }

  @Test func `a body in many tiny chunks arrives completely, with and without pauses`() throws {
    let body = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
    let chunks = body.flatMap { Array("1\r\n".utf8) + [$0] + Array("\r\n".utf8) }
    for pausesAt in [Int.max, 997] {
      let isReady = Gate()
      let server = ScriptedServer { _, connection in
        isReady.wait()
        connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.send(chunks)
        connection.send("0\r\n\r\n")
      }
      let id = Locked<TransferID?>(nil)
      let recorder = Recorder { _ in
        .proceed
      } onBytes: { [transport] record in
        guard record.calls.isMultiple(of: pausesAt), let id = id.withLock({ $0 }) else { return .proceed }
        transport.resume(id)
        return .pause
      }
      let started = transport.start(TransferRequest(server.url()), consumer: recorder)
      id.withLock { $0 = started }
      isReady.open()
      _ = try recorder.summary()
      #expect(recorder.now.body == body)
    }
  }

  @Test func `endless tiny chunks do not block other transfers`() throws {
    let chunks = [UInt8](repeatElement(Array("1\r\na\r\n".utf8), count: 50_000).joined())
    let isReady = Gate()
    let server = ScriptedServer { _, connection in
      isReady.wait()
      connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
      while connection.send(chunks) {}
    }
    let id = Locked<TransferID?>(nil)
    let recorder = Recorder { _ in
      .proceed
    } onBytes: { [transport] record in
      // It takes effect in the next turn.
      if record.calls == 5000, let id = id.withLock({ $0 }) { transport.cancel(id) }
      return .proceed
    }
    let started = transport.start(TransferRequest(server.url()), consumer: recorder)
    id.withLock { $0 = started }
    isReady.open()
    #expect(try recorder.error().kind == .cancelled)
    #expect(recorder.now.calls <= 5000 + TurnShare.maxPieces)
  }

  @Test func `a body that ends with the connection is complete`() throws {
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.0 200 OK\r\n\r\nold style")
      connection.close()
    }
    let recorder = transport.get(server.url())
    #expect(try recorder.summary().head.contentLength == nil)
    #expect(recorder.text == "old style")
    #expect(recorder.now.heads[0].httpVersion == "1.0")
  }

  @Test func `a chunked body is joined, and its trailer is ignored`() throws {
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n")
      connection.send("3\r\nabc\r\n2\r\nde\r\n0\r\nX-T: 1\r\n\r\n")
    }
    let recorder = transport.get(server.url())
    #expect(try recorder.summary().head.headers["x-t"] == nil)
    #expect(recorder.now.heads.count == 1)
    #expect(recorder.text == "abcde")
  }

  @Test func `an endless trailer is an error`() throws {
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n")
      while connection.send("X-Name: " + String(repeating: "v", count: 1000) + "\r\n") {}
    }
    #expect(try transport.get(server.url()).error().kind == .malformed)
  }

  /// Older versions of curl append such a line to a freed line of the previous answer.
  @Test func `a folded line without a previous line is ignored`() throws {
    let server = ScriptedServer { request, connection in
      if request.path == "/" { return connection.respond("302 Found", ["X-A: y", "Location: /z"]) }
      if request.path == "/plain" { return connection.respond(body: "x") }
      connection.send(
        "HTTP/1.1 200 OK\r\n folded: \(String(repeating: "x", count: 3000))\r\nContent-Length: 1\r\n\r\nx")
    }
    for _ in 0..<20 {
      for path in ["/", "/plain", "/z"] { transport.get(server.url(path)).outcome() }
    }
    #expect(try transport.get(server.url("/plain")).summary().bytesReceived == 1)
  }

  @Test func `a body shorter than its Content-Length is truncated, even if curl ignores that length`() throws {
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nContent-Length : 10\r\n\r\nabc")
      connection.close()
    }
    #expect(try transport.get(server.url()).error().kind == .truncated)
  }

  @Test(arguments: ["gzip, chunked", "foo, chunked"])
  func `an unknown transfer coding is an error`(coding: String) throws {
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: \(coding)\r\n\r\n1\r\na\r\n0\r\n\r\n")
    }
    #expect(try transport.get(server.url()).error().kind == .malformed)
  }

  @Test func `a switch to another protocol is an error`() throws {
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nabc")
    }
    #expect(try transport.get(server.url()).error().kind == .network)
  }

  @Test(arguments: ["204 No Content", "304 Not Modified"])
  func `a response without a body has length 0 in spite of its Content-Length`(status: String) throws {
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.1 \(status)\r\nContent-Length: 1000\r\nETag: \"a\"\r\n\r\n")
    }
    let recorder = transport.get(server.url()) { $0.maxBytes = 10 }
    #expect(try recorder.summary().bytesReceived == 0)
    #expect(recorder.now.heads[0].contentLength == 0)
  }

  @Test func `informational responses are not delivered`() throws {
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
      connection.respond(body: "x")
    }
    let recorder = transport.get(server.url())
    #expect(try recorder.summary().head.headers["link"] == nil)
    #expect(recorder.now.heads.map(\.status) == [200])
  }

  @Test func `a compressed body is decompressed, and its length is unknown`() throws {
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(gzippedZeros.count)\r\n\r\n")
      connection.send(gzippedZeros)
    }
    let recorder = transport.get(server.url())
    let summary = try recorder.summary()
    #expect(summary.head.contentLength == nil)
    #expect(recorder.now.body == [UInt8](repeating: 0, count: 1000))
  }

  @Test func `a folded header line continues the previous one`() throws {
    let server = ScriptedServer { _, connection in
      connection.respond("200 OK", ["X-Folded: one\r\n  two", "X-Next: 3"])
    }
    let head = try transport.get(server.url()).summary().head
    #expect(head.headers["x-folded"] == "one two")
    #expect(head.headers["x-next"] == "3")
  }
}

/// 1,000 zero bytes.
let gzippedZeros: [UInt8] = [
  0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x63, 0x60, 0x18, 0x05, 0xa3, 0x60, 0x14, 0x0c, 0x77,
  0x00, 0x00, 0x80, 0x17, 0x0b, 0x06, 0xe8, 0x03, 0x00, 0x00,
]
