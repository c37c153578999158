import Foundation
import Testing

/// The log of a worker.
struct LogTests {
  private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
  private static let traceParent: JSON = "00-\(trace)-00f067aa0ba902b7-01"

  /// The lines of the log of a worker that has ended.
  private func lines(of worker: WorkerProcess) async throws -> [JSON] {
    #expect(try await worker.end() == .exit(0))
    let errors = try await worker.child.errors.until("the end of the log") { $0.isClosed ? $0 : nil }
    #expect(errors.rest.isEmpty)
    return try errors.lines.map { line in
      let value = try JSON(parsing: line)
      #expect(["time", "level", "event", "message", "pid"].allSatisfy { value.names.contains($0) })
      return value
    }
  }

  @Test func `a failing load is told from its acceptance to its end, with its ids`() async throws {
    try await withOrigin("--log-level", "debug", "--log-format", "json", "--retries", "1") { worker, origin in
      let url = origin.url("image/1.png?status=503")
      _ = try await worker.call("load", ["url": .string(url), "headers": ["TraceParent": Self.traceParent]])
      let lines = try await lines(of: worker)
      let told = lines.filter { $0["requestId"] == "call 1" }
      #expect(
        told.map { $0["event"] } == ["load.accepted", "load.started", "load.retrying", "load.started", "load.failed"])
      #expect(told.allSatisfy { $0["load"] == told[0]["load"] && $0["load"].integer != nil })
      #expect(
        told.allSatisfy { $0["traceId"] == .string(Self.trace) && $0["url"] == .string(origin.url("image/1.png")) })
      #expect(told[2]["kind"] == "http" && told[2]["attempt"] == 2 && told[2]["delayMs"].integer != nil)
      #expect(told[4]["status"] == 503 && told[4]["attempts"] == 2 && told[4]["retryable"] == true)
      #expect(told[4]["timing"]["totalMs"] != .null && told[4]["timing"]["waitMs"] != .null)
      #expect(lines.first?["event"] == "worker.started" && lines.last?["event"] == "worker.ended")
      #expect(lines.last?["failed"] == 1 && lines.last?["received"] == 1)
    }
  }

  @Test func `a malformed traceparent is not used, and a hit in memory has no number`() async throws {
    try await withOrigin("--log-level", "debug", "--log-format", "json") { worker, origin in
      let url = origin.url("image/1.png?cache-control=max-age%3D60")
      _ = try await worker.load(url, ["headers": ["traceparent": "00-xyz-1-01"]])
      _ = try await worker.load(url, ["headers": ["traceparent": Self.traceParent]])
      let told = try await lines(of: worker).filter { $0["event"] == "load.completed" }
      #expect(told.map { $0["cache"] } == ["miss", "memory"])
      #expect(told.map { $0["traceId"] } == [.null, .string(Self.trace)])
      #expect(told[0]["load"].integer != nil && told[1]["load"] == .null)
    }
  }

  @Test func `each item of a prefetch has the id of the request and a number of its own`() async throws {
    try await withOrigin("--log-level", "debug", "--log-format", "json") { worker, origin in
      let own: JSON = ["url": .string(origin.url("image/2.png")), "headers": ["traceparent": Self.traceParent]]
      let urls: JSON = [.string(origin.url("image/1.png")), own, "no URL?xyzzy"]
      _ = try await worker.call("prefetch", ["urls": urls])
      let told = try await lines(of: worker).filter { $0["requestId"] == "call 1" }
      #expect(told.first?["event"] == "prefetch.accepted" && told.last?["event"] == "prefetch.completed")
      #expect(told.last?["items"] == 3 && told.last?["downloaded"] == 2 && told.last?["failed"] == 1)
      let completed = told.filter { $0["event"] == "load.completed" }
      #expect(Set(completed.map { $0["url"].string }) == [origin.url("image/1.png"), origin.url("image/2.png")])
      #expect(
        Set(told.filter { $0["event"] == "load.started" }.map { $0["load"] }) == Set(completed.map { $0["load"] }))
      #expect(completed.filter { $0["traceId"] == .string(Self.trace) }.count == 1)
      let refused = told.filter { $0["event"] == "load.failed" }
      #expect(refused.map { $0["kind"] } == ["invalidParams"] && refused[0]["url"] == .null)
    }
  }

  @Test func `events of the log are sent to the host only if it asked for them`() async throws {
    try await withOrigin("--log-level", "debug", "--retries", "1") { worker, origin in
      let url = JSON.string(origin.url("image/1.png?status=503"))
      for events: JSON in [[], ["started"], ["retrying"]] {
        let id = worker.request("load", ["url": url, "events": events])
        _ = try await worker.response(to: id)
        #expect(Set(worker.events(for: id).map { $0["method"] }) == Set(events.array))
        try await worker.call("clear", ["failures": true])
      }
    }
  }

  @Test func `methods that change something are told`() async throws {
    try await withWorker("--log-level", "info", "--log-format", "json") { worker in
      let options: JSON = ["header": ["X-Key: xyzzy"]]
      try await worker.call("initialize", ["client": ["name": "test", "version": "3"], "options": options])
      try await worker.call("pause")
      try await worker.call("resume")
      try await worker.call("clear", ["host": "example.com:81", "tier": "memory"])
      try await worker.call("clear", ["prefix": "xyzzy"])
      try await worker.call("clear", ["failures": true])
      try await worker.call("configure", ["logLevel": "debug"])
      try await worker.call("cancel", ["all": true])
      try await worker.call("load", ["url": "x", "unknown": 1])
      try await worker.call("shutdown", ["mode": "cancel"])
      let told = try await lines(of: worker)
      let expected: [(String, JSON)] = [
        ("worker.started", [:]),
        ("host.initialized", ["client": "test", "clientVersion": "3", "changed": ["header"]]),
        ("transfers.paused", [:]), ("transfers.resumed", [:]),
        ("cache.cleared", ["filter": "host", "filterValue": "example.com:81", "tier": "memory", "removed": 0]),
        ("cache.cleared", ["filter": "prefix", "tier": "all"]), ("cache.cleared", ["filter": "failures"]),
        ("options.changed", ["changed": ["logLevel"]]), ("requests.cancelled", ["filter": "all", "cancelled": 0]),
        ("request.refused", ["method": "load", "kind": "invalidParams", "member": "unknown", "code": -32602]),
        ("worker.ending", ["reason": "shutdown", "mode": "cancel"]), ("worker.ended", ["exitStatus": 0]),
      ]
      #expect(told.map { $0["event"].string } == expected.map(\.0))
      for (line, (name, members)) in zip(told, expected) {
        #expect(line.merging(members) == line)
        let isCalled = !["worker.started", "worker.ended"].contains(name)
        #expect((line["requestId"] != .null) == isCalled)
        #expect(!line.line.contains("xyzzy"))
      }
    }
  }

  @Test func `configure changes the form of the lines`() async throws {
    try await withWorker("--log-level", "info") { worker in
      try await worker.call("configure", ["logFormat": "json"])
      #expect(try await worker.call("configure", ["logFormat": "text"])["result"]["logFormat"] == "text")
      #expect(try await worker.end() == .exit(0))
      let log = try await worker.child.errors.until("the end of the log") { $0.isClosed ? $0.lines : nil }
      #expect(log.map { $0.first } == ["i", "{", "i", "i", "i"].map { $0.utf8.first })
    }
  }

  @Test(arguments: ["text", "json"]) func `no secret is in the log`(format: String) async throws {
    try await withOrigin(
      "--log-level", "debug", "--log-format", format, "--header", "X-Key: xyzzy", "--retries", "1"
    ) { worker, origin in
      let url = { (path: String) in
        JSON.string(origin.url(path).replacing("http://", with: "http://user:xyzzy@"))
      }
      let headers: JSON = ["Authorization": "Bearer xyzzy", "Cookie": "id=xyzzy", "X-Other": "xyzzy"]
      for path in ["image/1.png?token=xyzzy", "image/2.png?status=503&token=xyzzy", "html?token=xyzzy#xyzzy"] {
        try await worker.call("load", ["url": url(path), "headers": headers])
        try await worker.call("query", ["url": url(path)])
        try await worker.call("clear", ["url": url(path)])
      }
      let there = origin.url("image/6.png?status=404&token=xyzzy")
        .addingPercentEncoding(withAllowedCharacters: .alphanumerics)!
      let redirect = url("image/5.png?redirect=\(there)")
      let refused: [JSON] = [
        ["url": redirect, "headers": headers], ["url": "xyzzy://xyzzy"], ["url": "http://[xyzzy/?xyzzy"],
        ["url": url("image/1.png"), "headers": ["xyzzy": "a\nxyzzy"]],
        ["url": url("image/1.png"), "saveTo": "xyzzy"], ["url": "data:image/png,xyzzy"],
      ]
      for params in refused { try await worker.call("load", params) }
      let urls: JSON = [url("image/3.png?xyzzy"), "xyzzy", ["url": url("image/4.png?xyzzy"), "headers": headers]]
      try await worker.call("prefetch", ["urls": urls, "headers": headers])
      try await worker.call("configure", ["proxy": "nonsense://xyzzy:xyzzy@host"])
      try await worker.call("configure", ["keyIgnoreQuery": ["xyzzy"]])
      try await worker.call("clear", ["key": "xyzzy"])
      try await worker.call("cancel", ["group": "xyzzy"])
      #expect(try await worker.end() == .exit(0))
      let log = try await worker.child.errors.until("the end of the log") { $0.isClosed ? $0.text : nil }
      #expect(log.split(separator: "\n").count > 30)
      #expect(!log.contains("xyzzy"), "\(log)")
    }
  }

  @Test(arguments: [["--log-format", "json", "--timeot", "3"], ["--log-format=json", "--cache-dir", "/dev/null/x"]])
  func `the reason why the worker cannot start is a line of JSON if the option was given before`(options: [String])
    async throws
  {
    let result = try await outcome(of: options)
    let line = try JSON(parsing: result.errors.utf8)
    #expect(line["event"] == "worker.failed" && line["level"] == "error")
    #expect(result.ending == .exit(line["exitStatus"].integer.map(Int32.init) ?? 0))
    #expect(line["message"].string?.contains(options.last == "3" ? "--timeot" : "/dev/null/x") == true)
    #expect(try await outcome(of: ["--timeot", "--log-format", "json"]).errors.hasPrefix("imageworker: --timeot"))
  }

  @Test func `an origin that is down is a warning, and so is that most loads fail`() async throws {
    try await withWorker("--log-format", "json", "--retries", "0") { worker in
      let urls = (0..<3000).map { JSON.string("http://127.0.0.1:1/\($0).png") }
      try await worker.call("prefetch", ["urls": .array(urls)])
      let told = try await lines(of: worker)
      #expect(Set(told.map { $0["event"] }) == ["origin.down", "loads.failing"] && told.count == 2)
      #expect(told.allSatisfy { $0["level"] == "warning" && $0["origin"] == "http://127.0.0.1:1" })
      let failing = try #require(told.first { $0["event"] == "loads.failing" })
      #expect(failing["kind"] == "connect" && failing["ofKind"] == failing["failed"])
      #expect(failing["ended"].integer ?? 0 >= 20)
    }
  }
}
