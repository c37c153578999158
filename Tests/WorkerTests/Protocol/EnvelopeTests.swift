import Testing

/// JSON-RPC 2.0: envelopes, ids, batches, notifications.
@Suite struct EnvelopeTests {
  @Test(arguments: [
    JSON.integer(0), -1, 9_007_199_254_740_991, -9_007_199_254_740_991, "", "text",
    .string(String(repeating: "x", count: 256)),
  ])
  func `an id is echoed unchanged`(id: JSON) async throws {
    try await withWorker { worker in
      let response = try await worker.response(to: worker.request("stats", id: id))
      #expect(response["result"] != .null)
    }
  }

  @Test(arguments: [
    "null", "1.5", "1.0", "1e3", "9007199254740992", "-9007199254740992", "true", "[]", "{}",
    "\"" + String(repeating: "x", count: 257) + "\"",
  ])
  func `an id of another type is an invalid request`(id: String) async throws {
    try await withWorker { worker in
      worker.send(#"{"jsonrpc":"2.0","id":\#(id),"method":"stats"}"#)
      try await expectInvalidRequest(worker)
    }
  }

  @Test(arguments: [
    "1", #""text""#, "null", "true", "[]", "{}", #"{"id":1}"#, #"{"id":1,"method":1}"#, #"{"id":1,"method":null}"#,
    #"{"jsonrpc":"1.0","id":1,"method":"stats"}"#, #"{"jsonrpc":2.0,"id":1,"method":"stats"}"#,
  ])
  func `a value that is not a request is an invalid request`(line: String) async throws {
    try await withWorker { worker in
      worker.send(line)
      let error = try await worker.line("the refusal") { $0["error"] != .null }
      #expect(error["error"]["code"] == -32600)
      #expect(error["error"]["data"]["kind"] == "invalidRequest")
      _ = try await worker.response(to: worker.request("stats", id: "next"))
    }
  }

  @Test(arguments: [
    (#""host":"example.com""#, "host must be within params"),
    (#""parms":{"host":"example.com"}"#, "unknown member parms of the request (did you mean params?)"),
  ])
  func `a parameter outside of params is refused, so that a clear does not clear everything`(
    member: String, message: String
  ) async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?cache-control=max-age%3D60")
      _ = try await worker.load(url)
      worker.send(#"{"id":1,"method":"clear",\#(member)}"#)
      let error = try await worker.response(to: 1)["error"]
      #expect(error["code"] == -32602)
      #expect(error["message"].string == message)
      #expect(try await worker.load(url)["cache"] == "memory")
      worker.send(#"{"id":2,"method":"stats","trace":"x"}"#)
      #expect(try await worker.response(to: 2)["result"] != .null)
    }
  }

  @Test func `the member jsonrpc is optional`() async throws {
    try await withWorker { worker in
      worker.send(#"{"id":1,"method":"stats"}"#)
      let response = try await worker.response(to: 1)
      #expect(response["result"] != .null)
    }
  }

  @Test func `an unknown method is refused`() async throws {
    try await withWorker { worker in
      let error = try await worker.call("lod")["error"]
      #expect(error["code"] == -32601)
      #expect(error["data"]["kind"] == "methodNotFound")
      #expect(error["data"]["retryable"] == false)
    }
  }

  @Test(arguments: ["[]", "null", "1", #""text""#, "true"])
  func `params must be an object`(params: String) async throws {
    try await withWorker { worker in
      worker.send(#"{"id":1,"method":"stats","params":\#(params)}"#)
      let response = try await worker.response(to: 1)
      #expect(response["error"]["code"] == -32602)
    }
  }

  @Test func `a parameter of other methods is refused with their names`() async throws {
    try await withWorker { worker in
      let error = try await worker.call("probe", ["file": ["path": "/a.png"]])["error"]
      #expect(error["message"] == "unknown parameter file of probe (load, process, query, clear have it)")
      #expect(error["data"]["member"] == "file")
    }
  }

  @Test(arguments: [
    "initialize", "load", "prefetch", "cancel", "prioritize", "pause", "resume", "query", "store", "clear", "stats",
    "configure", "shutdown",
  ])
  func `an unknown member is refused by name`(method: String) async throws {
    let required: JSON =
      switch method {
      case "load", "query": ["url": "http://127.0.0.1:1/a.png"]
      case "store": ["key": "a", "data": "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"]
      case "prefetch": ["urls": []]
      case "cancel": ["all": true]
      case "prioritize": ["id": 1, "priority": "low"]
      default: [:]
      }
    try await withWorker { worker in
      let error = try await worker.call(method, required.merging(["colour": 1]))["error"]
      #expect(error["code"] == -32602)
      #expect(error["data"]["kind"] == "invalidParams")
      #expect(error["data"]["member"] == "colour")
      #expect(error["message"].string?.contains("colour") == true)
    }
  }

  @Test(
    arguments: [
      (["url": 1], "url"), ([:], "url"), (["url": "http://a/", "priority": "urgent"], "priority"),
      (["url": "ftp://a/b.png"], "url"), (["url": "file:///etc/passwd"], "url"), (["url": "nothing"], "url"),
      (["url": "http://a/", "timeoutMs": -1], "timeoutMs"), (["url": "http://a/", "maxBytes": "many"], "maxBytes"),
      (["url": "http://a/", "saveTo": "relative/path"], "saveTo"),
      (["url": "http://a/", "events": ["nope"]], "events"),
      (["url": "http://a/", "cache": "sometimes"], "cache"),
      (["url": "http://a/", "digest": "sha256-short"], "digest"),
      (["url": "http://a/", "headers": ["Bad Name": "x"]], "headers"),
      (["url": "http://a/", "headers": ["A": "b\nc"]], "headers"),
      (["url": "http://a/", "headers": ["a": "b", "A": "c"]], "headers"), (["url": "http://*.a/"], "url"),
      (["url": "http://a/", "deliver": "pixels", "transform": ["frames": "all"]], "transform.frames"),
      (["url": "http://a/", "events": [.string(String(repeating: "x", count: 70_000))]], "events"),
      (["url": "http://a/", "retries": 1.5], "retries"),
      (["url": "http://a/", "deliver": "carrier pigeon"], "deliver"),
    ] as [(JSON, String)])
  func `an invalid member of load is refused by name`(params: JSON, member: String) async throws {
    try await withWorker { worker in
      let error = try await worker.call("load", params)["error"]
      #expect(error["code"] == -32602)
      #expect(error["data"]["member"] == .string(member))
    }
  }

  /// A quadratic check of so many fields would not end. They are not a test argument, because the log would list them.
  @Test func `too many headers are refused`() async throws {
    let headers = JSON.object(
      Dictionary(uniqueKeysWithValues: (0..<200_000).map { ("h\($0)", JSON.string("")) }))
    try await withWorker { worker in
      let error = try await worker.call("load", ["url": "http://a/", "headers": headers])["error"]
      #expect(error["code"] == -32602)
      #expect(error["data"]["member"] == "headers")
    }
  }

  @Test func `a URL of more than 8 kB is refused`() async throws {
    try await withWorker { worker in
      let url = "http://127.0.0.1:1/" + String(repeating: "a", count: 8 * 1024)
      let error = try await worker.failure(url)
      #expect(error["code"] == -32602)
    }
  }

  @Test func `an id in flight is refused with id null and the first request is unaffected`() async throws {
    try await withOrigin { worker, origin in
      worker.request("load", ["url": .string(origin.url("image/1.png?hold=a"))], id: "same")
      try await origin.held(at: "a")
      worker.request("stats", id: "same")
      let refusal = try await worker.line("the refusal") { $0["error"] != .null }
      #expect(refusal["id"] == .null)
      #expect(refusal["error"]["code"] == -32600)
      #expect(refusal["error"]["data"]["id"] == "same")
      try await origin.release("a")
      #expect(try await worker.response(to: "same")["result"]["format"] == "png")
      // The id can be used again. A second response to it would fail the checks at the end.
      worker.request("load", ["url": .string(origin.url("image/2.png"))], id: 7)
      #expect(try await worker.response(to: 7)["result"]["format"] == "png")
    }
  }

  @Test func `the number 1 and the string 1 are different ids`() async throws {
    try await withOrigin { worker, origin in
      worker.request("load", ["url": .string(origin.url("image/1.png?hold=a"))], id: 1)
      worker.request("load", ["url": .string(origin.url("image/2.png?hold=a"))], id: "1")
      try await origin.held(2, at: "a")
      try await origin.release("a")
      #expect(try await worker.response(to: 1)["result"]["url"].string == origin.url("image/1.png?hold=a"))
      #expect(try await worker.response(to: "1")["result"]["url"].string == origin.url("image/2.png?hold=a"))
    }
  }

  // MARK: - Notifications

  @Test func `a notification is performed and not answered`() async throws {
    try await withOrigin { worker, origin in
      worker.notify("load", ["url": .string(origin.url("image/1.png"))])
      let completed = try await worker.event("completed")
      #expect(completed["params"]["format"] == "png")
      #expect(completed["params"]["url"].string == origin.url("image/1.png"))
      #expect(completed["params"]["id"] == .null)
      _ = try await worker.call("stats")
      #expect(worker.lines.count == 2)
    }
  }

  @Test func `a failed notification is reported by an event`() async throws {
    try await withOrigin { worker, origin in
      worker.notify("load", ["url": .string(origin.url("image/1.png?status=404"))])
      let failed = try await worker.event("failed")
      #expect(failed["params"]["error"]["data"]["kind"] == "http")
      #expect(failed["params"]["error"]["data"]["status"] == 404)
    }
  }

  @Test(arguments: [("http://a.test/", "http://a.test/"), ("data:image/png,abc", "data:image/png")])
  func `the event for a refused notification has its URL, a data URL up to its comma`(url: String, shown: String)
    async throws
  {
    try await withOrigin { worker, _ in
      worker.notify("load", ["url": .string(url), "bogus": 1])
      let failed = try await worker.event("failed")
      #expect(failed["params"]["url"].string == shown)
    }
  }

  // MARK: - Batches

  @Test func `a batch is answered by one array when its last response is ready`() async throws {
    try await withOrigin(longLines: true) { worker, origin in
      worker.send([
        [
          requestLine("load", ["url": .string(origin.url("image/1.png?hold=a"))], id: 1), requestLine("stats", id: 2),
          3,
          requestLine("resume", id: nil), requestLine("nothing", id: 4),
        ]
      ])
      try await origin.held(at: "a")
      worker.request("stats", id: "between")
      _ = try await worker.response(to: "between")
      #expect(!worker.lines.contains { !$0.array.isEmpty })
      try await origin.release("a")
      let batch = try await worker.line("the answer to the batch") { !$0.array.isEmpty }.array
      #expect(Set(batch.map { $0["id"] }) == [1, 2, .null, 4])
      #expect(batch.first { $0["id"] == 1 }?["result"]["format"] == "png")
      #expect(batch.first { $0["id"] == .null }?["error"]["code"] == -32600)
      #expect(batch.first { $0["id"] == 4 }?["error"]["code"] == -32601)
    }
  }

  @Test func `a batch of notifications is not answered`() async throws {
    try await withWorker(longLines: true) { worker in
      worker.send([[requestLine("pause", id: nil), requestLine("resume", id: nil)]])
      _ = try await worker.call("stats")
      #expect(worker.lines.map { $0["method"].string } == ["completed", "completed", nil])
    }
  }

  @Test func `the second use of an id in a batch is refused`() async throws {
    try await withOrigin(longLines: true) { worker, origin in
      let load: JSON = ["url": .string(origin.url("image/1.png?hold=a"))]
      worker.send([[requestLine("load", load, id: 1), requestLine("stats", id: 1)]])
      try await origin.held(at: "a")
      try await origin.release("a")
      let batch = try await worker.line("the answer to the batch") { !$0.array.isEmpty }.array
      #expect(batch.count == 2)
      #expect(batch.first { $0["id"] == .null }?["error"]["data"]["id"] == 1)
    }
  }

  private func expectInvalidRequest(_ worker: WorkerProcess) async throws {
    let error = try await worker.line("the refusal") { $0["error"] != .null }
    #expect(error["id"] == .null)
    #expect(error["error"]["code"] == -32600)
    _ = try await worker.response(to: worker.request("stats", id: "next"))
  }
}
