import Foundation
import HTTPTypes
import Testing

@testable import HTTPTransport

@Suite struct CookieTests {
  @Test func `without a cookies file there are no cookies`() throws {
    let server = ScriptedServer { _, connection in connection.respond("200 OK", ["Set-Cookie: a=1"]) }
    let transport = Transport.forTests()
    for _ in 0..<2 { _ = try transport.get(server.url()).summary() }
    #expect(server.requests.allSatisfy { $0["cookie"] == nil })
  }

  /// Curl remembers the host of a Host field in its handle.
  @Test func `a Host field selects the cookies of its own request only`() throws {
    let server = ScriptedServer { request, connection in
      let isFirst = request.path == "/first"
      connection.respond(isFirst ? "302 Found" : "200 OK", isFirst ? ["Location: /second"] : ["Set-Cookie: b=2"])
    }
    let transport = Transport.forTests { $0.cookies = "secret.example\tFALSE\t/\tFALSE\t0\tsid\tsecret" }
    let host = server.url("/first").replacing("127.0.0.1", with: "localhost")
    _ = try transport.get(host) { $0.headers = ["host": "secret.example"] }.summary()
    _ = try transport.get(server.url("/third")).summary()
    _ = try transport.get(server.url("/fourth")).summary()
    #expect(server.requests[0]["cookie"] == "sid=secret")
    #expect(server.requests.dropFirst(2).allSatisfy { $0["cookie"]?.contains("sid") != true })
  }

  @Test func `the cookies of a request and of the file are sent as one field`() throws {
    let server = ScriptedServer { request, connection in
      connection.respond(
        request.path == "/" ? "302 Found" : "200 OK", request.path == "/" ? ["Location: /second"] : [])
    }
    let transport = Transport.forTests { $0.cookies = "127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\tsecret" }
    _ = try transport.get(server.url()) { $0.headers = ["cookie": "own=1", "x-other": "2"] }.summary()
    for request in server.requests {
      #expect(request["cookie"] == "sid=secret; own=1")
      #expect(request["x-other"] == "2")
    }
  }

  @Test func `cookies of the file and of servers are shared by all transfers`() throws {
    let cookies = """
      # Netscape HTTP Cookie File\r
      \r
      #HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t0\tfrom-file\tyes\r
      example.com\tFALSE\t/\tFALSE\t0\tfor-another\tyes
      """
    let hold = Gate()
    let server = ScriptedServer { request, connection in
      if request.path == "/hold" { hold.wait() }
      connection.respond("200 OK", request.path == "/set" ? ["Set-Cookie: from-server=1"] : [])
    }
    let transport = Transport.forTests { $0.cookies = cookies }
    let held = Recorder()
    _ = transport.start(TransferRequest(server.url("/hold")), consumer: held)
    server.waitForRequests(1)
    _ = try transport.get(server.url("/set")).summary()
    _ = try transport.get(server.url("/get")).summary()
    var configuration = TransportConfiguration(userAgent: "later")
    configuration.cookies = cookies
    transport.configure(configuration)
    _ = try transport.get(server.url("/later")).summary()
    hold.open()
    _ = try held.summary()
    #expect(server.requests[3]["user-agent"] == "later")
    #expect(server.requests[3]["cookie"] == server.requests[2]["cookie"])
    #expect(server.requests[0]["cookie"] == "from-file=yes")
    #expect(server.requests[2]["cookie"]?.contains("from-file=yes") == true)
    #expect(server.requests[2]["cookie"]?.contains("from-server=1") == true)
  }
}
