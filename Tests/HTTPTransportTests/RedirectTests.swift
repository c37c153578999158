import HTTPTypes
import Testing

@testable import HTTPTransport

@Suite struct RedirectTests {
  let transport = Transport.forTests()

  @Test(arguments: ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
  func `each kind of redirect is followed on the same connection`(status: String) throws {
    let server = ScriptedServer { request, connection in
      if request.path == "/a/first" {
        connection.redirect(status, to: "../b/second?q#fragment")
      } else {
        connection.respond(body: "there")
      }
    }
    let recorder = transport.get(server.url("/a/first"))
    let summary = try recorder.summary()
    #expect(summary.redirects == 1)
    #expect(summary.head.finalURL == server.url("/b/second?q"))
    #expect(recorder.text == "there")
    #expect(recorder.now.heads.count == 1)
    #expect(server.connectionCount == 1)
    #expect(server.requests.map(\.path) == ["/a/first", "/b/second?q"])
  }

  @Test(arguments: ["300 Choices", "304 Not Modified", "305 Use Proxy", "306 Unused"])
  func `other statuses are not redirects`(status: String) throws {
    let server = ScriptedServer { _, connection in
      connection.send("HTTP/1.1 \(status)\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n")
    }
    #expect(try transport.get(server.url()).summary().redirects == 0)
  }

  @Test func `a redirect status without a Location is the response`() throws {
    let server = ScriptedServer { _, connection in connection.respond("302 Found", body: "nowhere") }
    let recorder = transport.get(server.url())
    #expect(try recorder.summary().head.status == 302)
    #expect(recorder.text == "nowhere")
  }

  @Test func `N redirects are followed and one more is an error`() throws {
    let server = ScriptedServer { request, connection in
      let number = Int(request.path.dropFirst()) ?? 0
      number == 0 ? connection.respond(body: "end") : connection.redirect(to: "/\(number - 1)")
    }
    #expect(try transport.get(server.url("/3")) { $0.maxRedirects = 3 }.summary().redirects == 3)
    #expect(try transport.get(server.url("/4")) { $0.maxRedirects = 3 }.error().kind == .redirects)
    #expect(try transport.get(server.url("/1")) { $0.maxRedirects = 0 }.error().kind == .redirects)
    #expect(try transport.get(server.url("/0")) { $0.maxRedirects = 0 }.summary().redirects == 0)
  }

  @Test func `a held redirect is followed when the transfer is resumed`() throws {
    let server = ScriptedServer { request, connection in
      request.path == "/" ? connection.redirect(to: "/there?q#f") : connection.respond(body: "there")
    }
    let recorder = Recorder(onRedirect: { _ in .pause })
    let transfer = transport.start(TransferRequest(server.url("/")), consumer: recorder)
    recorder.wait { !$0.redirects.isEmpty }
    #expect(recorder.now.redirects == [server.url("/there?q")])
    #expect(server.requests.map(\.path) == ["/"])
    transport.resume(transfer)
    #expect(try recorder.summary().redirects == 1)
    #expect(recorder.text == "there")
  }

  @Test func `a held redirect can be cancelled, and one that is refused is not followed`() throws {
    let server = ScriptedServer { _, connection in connection.redirect(to: "/there") }
    let held = Recorder(onRedirect: { _ in .pause })
    let transfer = transport.start(TransferRequest(server.url("/")), consumer: held)
    held.wait { !$0.redirects.isEmpty }
    transport.cancel(transfer)
    #expect(try held.error().kind == .cancelled)
    let refused = Recorder(onRedirect: { _ in .abort })
    _ = transport.start(TransferRequest(server.url("/")), consumer: refused)
    #expect(try refused.error().kind == .aborted)
    #expect(server.requests.map(\.path) == ["/", "/"])
  }

  @Test func `a redirect loop ends`() throws {
    let server = ScriptedServer { _, connection in connection.redirect(to: "/") }
    #expect(try transport.get(server.url()).error().kind == .redirects)
    #expect(server.requests.count == 11)
  }

  @Test(arguments: [
    "ftp://127.0.0.1/x", "file:///etc/passwd", "gopher://127.0.0.1/", "data:image/png;base64,AA", "javascript:0",
    "http://",
    "http://[", "//:80", "http:///", "http://a%0ab@127.0.0.1/", "http://a:%00@127.0.0.1/",
  ])
  func `other schemes and broken targets are refused`(location: String) throws {
    let server = ScriptedServer { _, connection in connection.redirect(to: location) }
    let error = try transport.get(server.url()).error()
    #expect(error.kind == .redirects)
    #expect(error.message.contains(location.firstMatch(of: /^(http)?:?\//) == nil ? "a scheme" : "a malformed URL"))
  }

  @Test(arguments: ["", "#part"]) func `an empty Location redirects to the same URL`(location: String) throws {
    let server = ScriptedServer { _, connection in connection.redirect(to: location) }
    #expect(try transport.get(server.url("/a?b")).error().kind == .redirects)
    #expect(Set(server.requests.map(\.path)) == ["/a?b"])
  }

  @Test func `spaces and non-ASCII letters in a Location are encoded`() throws {
    let server = ScriptedServer { request, connection in
      request.path == "/" ? connection.redirect(to: "/a b/é?c d+e") : connection.respond(body: "x")
    }
    #expect(try transport.get(server.url()).summary().head.finalURL == server.url("/a%20b/%C3%A9?c%20d+e"))
  }

  @Test func `only fields without credentials are sent to another origin, and dropped ones stay dropped`() throws {
    let first = Holder()
    let second = ScriptedServer { request, connection in
      request.path == "/back"
        ? connection.redirect(to: first.url("/end")) : connection.respond(body: "x")
    }
    let server = ScriptedServer { request, connection in
      switch request.path {
      case "/": connection.redirect(to: "/same")
      case "/same": connection.redirect(to: second.url("/back"))
      default: connection.respond(body: "x")
      }
    }
    first.server = server.url("")
    let headers: HeaderFields = [
      "authorization": "secret", "cookie": "secret", "x-api-key": "secret", "referer": "http://a/", "accept": "a/b",
      "user-agent": "me", "accept-language": "de",
    ]
    _ = try transport.get(server.url(), headers: headers).summary()
    #expect(server.requests.count == 3)
    for request in server.requests.prefix(2) {
      #expect(request["authorization"] == "secret")
      #expect(request["x-api-key"] == "secret")
    }
    for request in second.requests + server.requests.suffix(1) {
      for name in ["authorization", "cookie", "x-api-key"] { #expect(request[name] == nil) }
      #expect(request["accept"] == "a/b")
      #expect(request["referer"] == "http://a/")
      #expect(request["user-agent"] == "me")
      #expect(request["accept-language"] == "de")
    }
  }

  @Test func `a cookie that a redirect sets is sent for the rest of the load, to its host only`() throws {
    let other = ScriptedServer { _, connection in connection.respond(body: "x") }
    let server = ScriptedServer { request, connection in
      switch request.path {
      case "/" where request["cookie"]?.contains("a=1") != true:
        connection.respond("302 Found", ["Location: /", "Set-Cookie: a=1; Path=/"])
      case "/": connection.respond("302 Found", ["Set-Cookie: b=2; Path=/elsewhere", "Location: /next"])
      case "/next": connection.redirect(to: other.url().replacing("127.0.0.1", with: "localhost"))
      default: connection.respond(body: "x")
      }
    }
    _ = try transport.get(server.url(), headers: ["cookie": "own=0"]).summary()
    let sent = server.requests.map { Set(($0["cookie"] ?? "").split(separator: "; ")) }
    #expect(sent == [["own=0"], ["own=0", "a=1"], ["own=0", "a=1"]])
    #expect(other.requests.map { $0["cookie"] } == [nil])
    _ = try transport.get(server.url("/end")).summary()
    #expect(server.requests.last?["cookie"] == nil, "another load does not have it")
  }

  @Test func `user information is sent to its own origin only`() throws {
    let other = ScriptedServer { _, connection in connection.respond(body: "x") }
    let server = ScriptedServer { request, connection in
      request.path == "/" ? connection.redirect(to: "/same") : connection.redirect(to: other.url())
    }
    let recorder = transport.get("http://us%65r:p%40ss@\(server.origin)/")
    #expect(try recorder.summary().head.finalURL == other.url())
    #expect(server.requests.map { $0["authorization"] } == ["Basic dXNlcjpwQHNz", "Basic dXNlcjpwQHNz"])
    #expect(other.requests[0]["authorization"] == nil)
  }

  @Test func `validators are sent only to their own URL`() throws {
    let server = ScriptedServer { request, connection in
      request.path == "/" ? connection.redirect(to: "/image") : connection.respond(body: "x")
    }
    let headers: HeaderFields = ["if-none-match": "\"a\"", "range": "bytes=5-", "x-other": "1"]
    _ = try transport.get(server.url(), headers: headers) { $0.validatedURL = server.url("/image") }.summary()
    _ = try transport.get(server.url(), headers: headers) { $0.validatedURL = server.url("/moved") }.summary()
    _ = try transport.get(server.url(), headers: headers).summary()
    #expect(server.requests.map { $0["if-none-match"] } == [nil, "\"a\"", nil, nil, "\"a\"", "\"a\""])
    #expect(server.requests.map { $0["range"] != nil } == [false, true, false, false, true, true])
    #expect(server.requests.allSatisfy { $0["x-other"] == "1" })
  }

  @Test func `a redirect is followed without reading its long body`() throws {
    let server = ScriptedServer { request, connection in
      if request.path == "/" {
        connection.send("HTTP/1.1 302 Found\r\nLocation: /image\r\nContent-Length: 100000000\r\n\r\n")
        connection.waitForClose()
      } else {
        connection.respond(body: "image")
      }
    }
    let recorder = transport.get(server.url())
    #expect(try recorder.summary().redirects == 1)
    #expect(recorder.text == "image")
    #expect(server.connectionCount == 2)
  }
}

/// A server's URL, for scripts that are written before the server exists.
final class Holder: @unchecked Sendable {
  // Unchecked: set before the first request is sent.
  var server = ""
  func url(_ path: String) -> String { server + path }
}
