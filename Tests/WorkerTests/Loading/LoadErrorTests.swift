import Foundation
import Testing

/// The kinds of failures, none of which leaves an entry in the cache.
@Suite struct LoadErrorTests {
  struct Case: CustomTestStringConvertible, Sendable {
    var target: String
    var kind: String
    var code: Int
    var params: JSON = [:]
    var data: JSON = [:]
    var retryable = false

    var testDescription: String { "\(target) is \(kind)" }
  }

  static let cases = [
    Case(target: "image/1.png?status=404", kind: "http", code: 2005, data: ["status": 404]),
    Case(target: "image/1.png?status=403", kind: "http", code: 2005, data: ["status": 403]),
    Case(target: "image/1.png?status=503", kind: "http", code: 2005, data: ["status": 503], retryable: true),
    Case(target: "image/1.png?status=500", kind: "http", code: 2005, data: ["status": 500], retryable: true),
    Case(target: "image/1.png?status=501", kind: "http", code: 2005, data: ["status": 501]),
    Case(
      target: "image/1.png?status=429&retry-after=7", kind: "http", code: 2005,
      data: ["status": 429, "retryAfterMs": 7000], retryable: true),
    Case(target: "image/1.png?circle", kind: "redirects", code: 2006),
    Case(target: "image/1.png?hops=11", kind: "redirects", code: 2006),
    Case(target: "image/1.png?redirect=ftp://127.0.0.1/a.png", kind: "redirects", code: 2006),
    Case(target: "image/1.png?redirect=file:///etc/passwd", kind: "redirects", code: 2006),
    Case(target: "image/1.png?bytes=10000&truncate=5000", kind: "truncated", code: 2007, retryable: true),
    Case(target: "image/1.png?bytes=10000&truncate=5000&chunked", kind: "truncated", code: 2007, retryable: true),
    Case(target: "image/1.png?bytes=10000&reset=5000", kind: "truncated", code: 2007, retryable: true),
    Case(target: "image/1.png?bytes=10000&length=20000", kind: "truncated", code: 2007, retryable: true),
    Case(
      target: "image/1.png?bytes=10001", kind: "tooLarge", code: 2008, params: ["maxBytes": 10_000],
      data: ["limit": 10_000]),
    Case(target: "image/1.png?bytes=10001&chunked", kind: "tooLarge", code: 2008, params: ["maxBytes": 10_000]),
    Case(target: "image/1.png?endless", kind: "tooLarge", code: 2008, params: ["maxBytes": 100_000]),
    Case(
      target: "image/1.png?bytes=50000&encoding=gzip", kind: "tooLarge", code: 2008, params: ["maxBytes": 10_000]),
    Case(target: "image/1.png?close=start", kind: "network", code: 2011, retryable: true),
    Case(target: "image/1.png?reset=start", kind: "network", code: 2011, retryable: true),
    Case(target: "image/1.png?garbage", kind: "network", code: 2011, retryable: true),
    Case(target: "image/1.png?endless-headers", kind: "tooLarge", code: 2008),
    Case(
      target: "image/1.png?hold=never", kind: "timeout", code: 2004, params: ["timeoutMs": 200],
      data: ["phase": "firstByte"], retryable: true),
    Case(
      target: "image/1.png?bytes=9000&hold=never@5000", kind: "timeout", code: 2004, params: ["timeoutMs": 2000],
      data: ["phase": "idle"], retryable: true),
    Case(
      target: "image/1.png?hold=never", kind: "timeout", code: 2004, params: ["deadlineMs": 200],
      data: ["phase": "deadline"]),
    Case(target: "html", kind: "notAnImage", code: 4001, data: ["detected": "text/html"]),
    Case(target: "json?type=image/png", kind: "notAnImage", code: 4001, data: ["detected": "application/json"]),
    Case(target: "garbage", kind: "notAnImage", code: 4001),
    Case(target: "empty", kind: "truncated", code: 2007, retryable: true),
    Case(target: "zeros?bytes=100&type=image/png", kind: "notAnImage", code: 4001),
  ]

  @Test(arguments: cases)
  func `a load fails with the kind of its cause and stores nothing`(example: Case) async throws {
    try await withOrigin { worker, origin in
      let url = origin.url(example.target)
      let error = try await worker.failure(url, example.params)
      #expect(error["code"] == .integer(example.code))
      #expect(error["data"]["kind"].string == example.kind)
      #expect(error["data"]["url"].string == url)
      #expect(error["data"]["retryable"] == .bool(example.retryable))
      for name in example.data.names { #expect(error["data"][name] == example.data[name]) }
      let query = try await worker.call("query", ["url": .string(url)])["result"]
      #expect(query["memory"] == false && query["disk"] == false)
      // The exchange ends with the load, even if the server has more to send.
      try await origin.reaches("active", 0)
      #expect(try await worker.end() == .exit(0))
      let kept = try worker.directory.files().filter { $0.hasSuffix(".png") || $0.contains("tmp") }
      #expect(kept.isEmpty)
    }
  }

  @Test func `an error tells what the content is, and which limit it exceeds`() async throws {
    try await withOrigin("--max-bytes", "100") { worker, origin in
      let pdf = try await worker.failure("data:image/png;base64,JVBERi0xLjcK")
      #expect(pdf["message"] == "the content is a PDF, not an image")
      #expect(pdf["data"]["detected"] == "application/pdf")
      let stored = try await worker.call("store", ["key": "a", "data": "JVBERi0xLjcK"])["error"]
      #expect(stored["data"]["detected"] == "application/pdf")
      let page = try await worker.failure(origin.url("html"))
      #expect(page["message"] == "the content is an HTML page, not an image (Content-Type: text/html; charset=utf-8)")
      let again = try await worker.failure(origin.url("html"))["data"]
      #expect(again["kind"] == "recentlyFailed" && again["failure"] == "notAnImage" && again["detected"] == "text/html")
      let large = try await worker.call("store", ["key": "a", "data": .string(String(repeating: "AAAA", count: 34))])
      #expect(large["error"]["data"]["kind"] == "tooLarge")
      #expect(large["error"]["data"]["bytes"] == 102 && large["error"]["data"]["limit"] == 100)
    }
  }

  @Test func `a port without a listener is a connect error`() async throws {
    try await withOrigin { worker, origin in
      // Port 1 of the loopback interface is reserved and has no listener.
      let error = try await worker.failure("http://127.0.0.1:1/a.png")
      #expect(error["code"] == 2002)
      #expect(error["data"]["kind"] == "connect")
      #expect(error["data"]["retryable"] == true)
    }
  }

  @Test func `a nonexistent name is a resolve error`() async throws {
    try await withWorker("--retries", "0") { worker in
      let error = try await worker.failure("http://nobody.invalid/a.png")
      #expect(error["code"] == 2001)
      #expect(error["data"]["kind"] == "resolve")
    }
  }

  @Test func `a certificate of an unknown authority is a tls error`() async throws {
    try await withOrigin(origin: ["--tls"], environment: ["SSL_CERT_FILE": "/dev/null", "CURL_CA_BUNDLE": "/dev/null"])
    {
      worker, origin in
      let error = try await worker.failure(origin.url("image/1.png"))
      #expect(error["code"] == 2003)
      #expect(error["data"]["kind"] == "tls")
      #expect(error["data"]["retryable"] == false)
    }
  }

  @Test func `a certificate for another name is a tls error`() async throws {
    try await withOrigin(origin: ["--tls", "--tls-name", "elsewhere.example"]) { worker, origin in
      let error = try await worker.failure(origin.url("image/1.png"))
      #expect(error["data"]["kind"] == "tls")
    }
  }

  @Test(arguments: [
    "127.0.0.1", "localhost", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "224.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[fe80::1]",
    "[fc00::1]", "[ff02::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
  ])
  func `with --network public, other addresses are refused`(host: String) async throws {
    try await withWorker("--network", "public", "--retries", "0") { worker in
      let error = try await worker.failure("http://\(host):9/a.png")
      #expect(error["code"] == 2009)
      #expect(error["data"]["kind"] == "blockedAddress")
      #expect(error["data"]["retryable"] == false)
    }
  }

  @Test func `a permanent failure is remembered by URL`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?status=404")
      #expect(try await worker.failure(url)["data"]["kind"] == "http")
      let second = try await worker.failure(url)
      #expect(second["data"]["kind"] == "recentlyFailed")
      #expect(second["code"] == 2010)
      #expect(try await worker.failure(url, ["retryFailed": true])["data"]["kind"] == "http")
      #expect(try await worker.load(origin.url("image/2.png"))["format"] == "png")
      #expect(try await origin.counts()["requests"] == 3)
    }
  }

  @Test(arguments: [408, 425, 429, 500, 503])
  func `a temporary failure is not remembered`(status: Int) async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?fail=1&status=\(status)")
      let error = try await worker.failure(url)
      #expect(error["data"]["status"] == .integer(status))
      let result = try await worker.load(url)
      #expect(result["format"] == "png")
    }
  }

  @Test func `with --failed-ttl 0, no failure is remembered`() async throws {
    try await withOrigin("--failed-ttl", "0") { worker, origin in
      let url = origin.url("image/1.png?status=404")
      let error = try await worker.failure(url)
      for _ in 0..<2 { #expect(error["data"]["kind"] == "http") }
    }
  }

  @Test func `a body of HTML is not read to its end`() async throws {
    try await withOrigin { worker, origin in
      let error = try await worker.failure(origin.url("html?bytes=90000000&hold=never@1000000"))
      #expect(error["data"]["kind"] == "notAnImage")
      try await origin.reaches("left", 1)
    }
  }

  @Test func `the number of retries is limited, and the error reports the attempts`() async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      let error = try await worker.failure(origin.url("image/1.png?close=start"))
      #expect(error["data"]["attempts"] == 2)
      #expect(try await origin.counts()["requests"] == 2)
    }
  }

  @Test func `a timeout of 0 is no limit`() async throws {
    try await withOrigin("--timeout", "0", "--connect-timeout", "0", "--retries", "0") { worker, origin in
      #expect(try await worker.load(origin.url("image/1.png"))["format"] == "png")
      let other = try await worker.load(origin.url("image/2.png"), ["timeoutMs": 0])
      #expect(other["format"] == "png")
    }
  }

  @Test func `messages contain no query strings, user info or header values`() async throws {
    try await withOrigin("--log-level", "debug") { worker, origin in
      let secret = "xyzzy"
      let base = origin.url("image/1.png?status=404&x-token=\(secret)")
      let url = base.replacing("http://", with: "http://user:\(secret)@")
      let error = try await worker.failure(url, ["headers": ["X-Secret": .string(secret)]])
      #expect(error["message"].string?.contains(secret) == false)
      #expect(error["data"]["url"].string == url)
      #expect(try await worker.end() == .exit(0))
      let log = worker.child.errors.value.text
      #expect(log.contains("/image/1.png: http"))
      #expect(!log.contains(secret))
    }
  }
}
