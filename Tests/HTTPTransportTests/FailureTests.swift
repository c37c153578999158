import Foundation
import HTTPTypes
import Testing

@testable import HTTPTransport

@Suite struct FailureTests {
  let transport = Transport.forTests()

  func error(of response: String) throws -> TransferError {
    let server = ScriptedServer { _, connection in
      connection.send(response)
      connection.close()
    }
    return try transport.get(server.url("/secret?token=secret")).error()
  }

  @Test func `a body shorter than its length is truncated`() throws {
    let error = try error(of: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
    #expect(error.kind == .truncated)
    #expect(error.bytesReceived == 3)
  }

  @Test func `a chunked body without its end is truncated`() throws {
    #expect(try error(of: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").kind == .truncated)
    #expect(try error(of: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n30\r\nabc").kind == .truncated)
  }

  @Test(arguments: [
    "HTTP/1.1 200 OK\r\nContent-Le", "SSH-2.0-OpenSSH_9.2\r\n", "<html></html>", "\0\0\0\0",
    "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabc", "HTTP/7.3 200 OK\r\n\r\n", "HTTP/1.1 abc\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 3, 268\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 268\r\n\r\nabc",
  ])
  func `an answer that is not HTTP is a network error`(response: String) throws {
    let error = try error(of: response)
    #expect(error.kind == .network)
    #expect(!error.message.contains("secret"))
  }

  @Test(arguments: ["", "HTTP/1.1 200 O"])
  func `a connection that ends before a status line is closed`(response: String) throws {
    #expect(try error(of: response).kind == .closed)
  }

  @Test(arguments: ["200x", "20", "2000", "000", "099", "x", "-20", ""])
  func `the error for a status other than three digits names the status line`(status: String) throws {
    let error = try error(of: "HTTP/1.1 \(status) OK\r\nContent-Length: 3\r\n\r\nabc")
    #expect(error.kind == .network)
    if status == "200x" { #expect(error.message == "the answer has a malformed status line") }
  }

  @Test(arguments: ["0x3", "3 bytes", "3;", "+3", "3.0", "3, x", "", "abc", "-3"])
  func `the error for a length that is not a number names Content-Length`(length: String) throws {
    let error = try error(of: "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\nabc")
    #expect(error.kind == .network)
    #expect(error.message.contains("malformed Content-Length"))
  }

  @Test(arguments: [
    "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "Transfer-Encoding: chunked\r\n\r\n3\r\nabcdefg\r\n",
  ])
  func `a wrongly framed body is malformed, not truncated`(rest: String) throws {
    #expect(try error(of: "HTTP/1.1 200 OK\r\n" + rest).kind == .malformed)
  }

  @Test func `stored bytes count for the largest body only if the response is partial`() throws {
    let server = ScriptedServer { request, connection in
      let isPart = request.path == "/part"
      if request.path == "/unsized" {
        let range = "Content-Range: bytes 7-9223372036854775806/*"
        connection.send("HTTP/1.1 206 Partial Content\r\n\(range)\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        return connection.waitForClose()
      }
      connection.respond(
        isPart ? "206 Partial Content" : "200 OK", isPart ? ["Content-Range: bytes 7-9/10"] : [], body: "abc")
    }
    func get(_ path: String, maxBytes: Int64) -> Recorder {
      transport.get(server.url(path), headers: ["range": "bytes=7-"]) {
        $0.bytesKept = 7
        $0.maxBytes = maxBytes
      }
    }
    #expect(try get("/part", maxBytes: 9).error().kind == .tooLarge)
    #expect(try get("/part", maxBytes: 10).summary().bytesReceived == 3)
    #expect(try get("/whole", maxBytes: 3).summary().bytesReceived == 3)
    #expect(try get("/part", maxBytes: 1).error().kind == .tooLarge)
    let announced = get("/unsized", maxBytes: 1000)
    #expect(try announced.error().kind == .tooLarge)
    #expect(announced.now.calls == 0)
  }

  @Test func `different lengths are a network error, equal ones are accepted`() throws {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
    #expect(try error(of: head + "Content-Length: 3\r\n\r\nabcde").kind == .network)
    #expect(try error(of: head + "Content-Length: 5\r\n\r\nabc").kind == .truncated)
  }

  @Test func `a length out of range is too large`() throws {
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc")
      connection.close()
    }
    #expect(try transport.get(server.url()) { $0.maxBytes = .max - 1 }.error().kind == .tooLarge)
  }

  @Test(arguments: ["bytes 0-2/10", "bytes 3-5/6", "bytes 0-2/*", "pages 1"])
  func `a part that was not requested is truncated`(range: String) throws {
    let server = ScriptedServer { _, connection in
      connection.respond("206 Partial Content", ["Content-Range: \(range)"], body: "abc")
    }
    #expect(try transport.get(server.url()).error().kind == .truncated)
    #expect(try transport.get(server.url()) { $0.headers = ["range": "bytes=0-2"] }.summary().head.status == 206)
  }

  @Test func `a part that is the whole is accepted`() throws {
    let server = ScriptedServer { _, connection in
      connection.respond("206 Partial Content", ["Content-Range: bytes 0-2/3"], body: "abc")
    }
    #expect(try transport.get(server.url()).summary().bytesReceived == 3)
  }

  @Test func `an endless header is too large, in one line or in many`() throws {
    let server = ScriptedServer { request, connection in
      connection.send("HTTP/1.1 200 OK\r\n" + (request.path == "/line" ? "X: " : ""))
      while connection.send(request.path == "/line" ? "xxxxxxxx" : "X-Name: value\r\n") {}
    }
    #expect(try transport.get(server.url("/line")).error().kind == .tooLarge)
    #expect(try transport.get(server.url("/lines")).error().kind == .tooLarge)
  }

  @Test func `a port without a listener is a connect error`() throws {
    let url = ScriptedServer { _, _ in }.url()
    #expect(try transport.get(url).error().kind == .connect)
  }

  @Test func `a name without an address is a resolve error`() throws {
    #expect(try transport.get("http://nowhere.invalid/?secret").error().kind == .resolve)
  }

  @Test func `a server without TLS is a TLS error`() throws {
    let server = ScriptedServer(greeting: "220 mail.example ESMTP\r\n") { _, _ in }
    let error = try transport.get("https://\(server.origin)/?secret").error()
    #expect(error.kind == .tls)
    #expect(!error.message.contains("secret"))
  }

  @Test func `a connection that ends during the handshake is closed`() throws {
    let server = ScriptedServer(greeting: nil) { _, _ in }
    let error = try transport.get("https://\(server.origin)/?secret").error()
    #expect(error.kind == .closed)
    #expect(error.message == "\(server.origin) closed the connection during the TLS handshake")
  }

  @Test(arguments: [
    HeaderField("x", "a\r\nInjected: 1"), HeaderField("x", "a\nb"), HeaderField("x", "a\0b"),
    HeaderField("x\r\ny", "a"),
    HeaderField("x y", "a"), HeaderField("x:", "a"), HeaderField("", "a"), HeaderField("x;", ""), HeaderField("ä", "a"),
    HeaderField("Content-Length", "5"), HeaderField("Transfer-Encoding", "chunked"), HeaderField("Connection", "close"),
  ])
  func `a header field that would break the request is never sent`(field: HeaderField) throws {
    let server = ScriptedServer { _, connection in connection.respond() }
    let error = try transport.get(server.url(), headers: HeaderFields([field])).error()
    #expect(error.kind == .invalidRequest)
    #expect(!error.message.contains("Injected"))
    #expect(server.connectionCount == 0)
  }

  @Test func `a user agent that would break the request is never sent`() throws {
    let server = ScriptedServer { _, connection in connection.respond() }
    let transport = Transport.forTests { $0.userAgent = "a\r\nInjected: 1" }
    #expect(try transport.get(server.url()).error().kind == .invalidRequest)
    #expect(server.connectionCount == 0)
  }

  @Test func `an empty value is sent, and replaces curl's own field`() throws {
    let server = ScriptedServer { _, connection in connection.respond() }
    _ = try transport.get(server.url(), headers: ["x-empty": "", "accept": " ", "user-agent": "", "x-b": "@file"])
      .summary()
    let request = server.requests[0]
    #expect(request["x-empty"] == "")
    #expect(request["accept"] == "")
    #expect(request["user-agent"] == "")
    #expect(request["x-b"] == "@file")
  }

  @Test func `curl's default fields can be left out unless the request has them or a range needs them`()
    throws
  {
    let server = ScriptedServer { _, connection in connection.respond() }
    let transport = Transport.forTests { $0.fieldsLeftOut = ["accept", "accept-encoding", "user-agent", "x-none"] }
    _ = try transport.get(server.url()).summary()
    _ = try transport.get(server.url(), headers: ["accept": "a", "user-agent": "", "range": "bytes=0-"]).summary()
    let (bare, own) = (server.requests[0], server.requests[1])
    for name in ["accept", "accept-encoding", "user-agent", "x-none"] { #expect(bare[name] == nil, "\(name)") }
    #expect(own["accept"] == "a" && own["user-agent"] == "" && own["accept-encoding"] == "identity")
  }

  @Test func `the fields of one transfer are not sent with the next`() throws {
    let server = ScriptedServer { _, connection in connection.respond() }
    _ = try transport.get(server.url(), headers: ["x-one": "1", "range": "bytes=0-"]).summary()
    _ = try transport.get(server.url()).summary()
    for value in ["2", "2", "3"] { _ = try transport.get(server.url(), headers: ["x-one": value]).summary() }
    #expect(server.requests[0]["accept-encoding"] == "identity")
    #expect(server.requests[1]["x-one"] == nil)
    #expect(server.requests[1]["range"] == nil)
    #expect(server.requests[1]["accept-encoding"]?.contains("gzip") == true)
    #expect(server.requests[2...].map { $0["x-one"] } == ["2", "2", "3"])
  }

  @Test func `a length over the limit is refused before the body, a longer body at the limit`() throws {
    let server = ScriptedServer { request, connection in
      switch request.path {
      case "/declared": connection.send("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n")
      case "/endless":
        connection.send("HTTP/1.1 200 OK\r\n\r\n")
        while connection.send("0123456789") {}
      case "/bomb":
        connection.send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(gzippedZeros.count)\r\n\r\n")
        connection.send(gzippedZeros)
      default: connection.respond(body: "0123456789")
      }
    }
    func get(_ path: String, _ limit: Int64) -> Recorder { transport.get(server.url(path)) { $0.maxBytes = limit } }
    let declared = try get("/declared", 10).error()
    #expect(declared.kind == .tooLarge, "\(declared)")
    #expect(try get("/endless", 1000).error().kind == .tooLarge)
    #expect(get("/endless", 100_000).now.body.count <= 100_000)
    #expect(try get("/bomb", 999).error().kind == .tooLarge)
    #expect(try get("/bomb", 1000).summary().bytesReceived == 1000)
    #expect(try get("/exact", 10).summary().bytesReceived == 10)
  }
}
