import Testing

@Suite struct PrefetchTests {
  @Test func `the result counts downloaded, cached and failed items`() async throws {
    try await withOrigin { worker, origin in
      let target = { (number: Int) in origin.url("image/\(number).png?bytes=10000&cache-control=max-age%3D60") }
      _ = try await worker.load(target(1))
      let missing = origin.url("image/9.png?status=404")
      let urls: JSON = [.string(target(1)), .string(target(2)), ["url": .string(target(3))], .string(missing)]
      let result = try await worker.call("prefetch", ["urls": urls])["result"]
      #expect(result["total"] == 4)
      #expect(result["downloaded"] == 2)
      #expect(result["cached"] == 1)
      #expect(result["failed"] == 1)
      #expect(result["cancelled"] == 0)
      #expect(result["bytes"] == 20_000)
      #expect(result["errors"] == [["url": .string(missing), "kind": "http", "message": "the server answered 404"]])
      #expect(try await worker.load(target(3))["cache"] == "memory")
    }
  }

  @Test func `an item with an invalid URL fails alone`() async throws {
    try await withOrigin { worker, origin in
      let bad: [JSON] = ["example.com/a.jpg", ["url": "data:x"]]
      let params: JSON = [
        "urls": .array(bad + [.string(origin.url("image/1.png"))]), "events": ["failed", "progress"],
      ]
      let id = worker.request("prefetch", params)
      let result = try await worker.response(to: id)["result"]
      #expect(result["total"] == 3 && result["downloaded"] == 1 && result["failed"] == 2)
      #expect(
        result["errors"] == [
          [
            "url": "example.com/a.jpg", "kind": "invalidParams",
            "message": "the URL must begin with http:// or https://",
          ],
          [
            "url": "data:x", "kind": "invalidParams",
            "message": "url must be a valid data: URL: it must have a comma before its content",
          ],
        ])
      let failed = worker.events(for: id).filter { $0["method"] == "failed" }.map { $0["params"] }
      #expect(failed.map { $0["url"] } == ["example.com/a.jpg", "data:x"])
      #expect(failed.allSatisfy { $0["error"]["data"]["member"] == "url" && $0["error"]["code"] == -32602 })
      let allBad = try await worker.call("prefetch", ["urls": .array(bad)])["result"]
      #expect(allBad["total"] == 2 && allBad["failed"] == 2)
    }
  }

  @Test func `many invalid items all fail, and the next request is answered`() async throws {
    try await withWorker { worker in
      let bad = JSON.array(Array(repeating: "x", count: 10_000))
      worker.send([requestLine("prefetch", ["urls": bad], id: 1), requestLine("stats", id: 2)])
      let (other, prefetch) = try await (worker.response(to: 2), worker.response(to: 1))
      #expect(other["result"]["requests"]["received"] == 1)
      #expect(prefetch["result"]["failed"] == 10_000)
    }
  }

  @Test func `an empty list is finished at once`() async throws {
    try await withWorker { worker in
      let response = try await worker.call("prefetch", ["urls": []])
      #expect(response["result"]["total"] == 0)
    }
  }

  @Test func `events report each item and the progress`() async throws {
    try await withOrigin { worker, origin in
      let urls = (1...3).map { JSON.string(origin.url("image/\($0).png")) } + [.string(origin.url("html"))]
      let params: JSON = ["urls": .array(urls), "events": ["progress", "completed", "failed"]]
      let id = worker.request("prefetch", params)
      _ = try await worker.response(to: id)
      let events = worker.events(for: id)
      #expect(Set(events.filter { $0["method"] == "completed" }.map { $0["params"]["url"] }) == Set(urls.prefix(3)))
      #expect(events.filter { $0["method"] == "failed" }.map { $0["params"]["url"] } == [urls[3]])
      let last = events.last { $0["method"] == "progress" }
      #expect(last?["params"]["total"] == 4)
    }
  }

  @Test func `a load joins an item and raises it to its own priority`() async throws {
    try await withOrigin("--max-per-host", "1") { worker, origin in
      let urls = (0..<10).map { JSON.string(origin.url("image/\($0).png?hold=a")) }
      worker.request("prefetch", ["urls": .array(urls)], id: "all")
      try await origin.held(at: "a")
      let load = worker.request("load", ["url": urls[9]])
      try await worker.call("stats")
      try await origin.release("a")
      _ = try await worker.response(to: load)
      #expect(try await worker.response(to: "all")["result"]["total"] == 10)
      let seen = try await origin.log().compactMap(\.["target"].string)
      #expect(seen.count == 10)
      #expect(seen[1] == "/image/9.png?hold=a")
    }
  }

  @Test func `items beyond maxQueued fail with overloaded unless they are cached`() async throws {
    try await withOrigin("--max-queued", "150", "--max-per-host", "1") { worker, origin in
      let target = { @Sendable (number: Int) in
        JSON.string(origin.url("image/\(number).png?hold=a&cache-control=max-age%3D60"))
      }
      let first = worker.request("load", ["url": target(399)])
      try await origin.held(at: "a")
      try await origin.release("a", count: 1)
      _ = try await worker.response(to: first)
      let id = worker.request("prefetch", ["urls": .array((0..<400).map(target)), "events": ["failed", "completed"]])
      try await origin.held(at: "a")
      _ = try await worker.line("the last refusal") { $0["params"]["url"] == target(398) }
      let stats = try await worker.call("stats")["result"]["queue"]
      #expect(stats["waiting"]["lowest"] == 150)
      let load = try await worker.call("load", ["url": .string(origin.url("image/1000.png"))])
      #expect(load["error"]["data"]["kind"] == "overloaded")
      #expect(load["error"]["data"]["retryAfterMs"].integer ?? 0 >= 100)
      try await origin.release("a")
      let result = try await worker.response(to: id)["result"]
      #expect(result["cached"] == 1)
      #expect(result["downloaded"] == 151)
      #expect(result["failed"] == 248)
      #expect(result["errors"].array.count == 100)
      #expect(result["errors"].array.allSatisfy { $0["kind"] == "overloaded" })
    }
  }

  @Test func `the items of a long list are counted, and can be prioritized and cancelled`() async throws {
    try await withOrigin("--max-per-host", "1") { worker, origin in
      let urls = (0..<5000).map { JSON.string(origin.url("image/\($0).png?hold=a")) }
      worker.request("prefetch", ["urls": .array(urls), "group": "g"], id: "all")
      try await origin.held(at: "a")
      let before = try await worker.call("stats")["result"]
      #expect(before["queue"]["waiting"]["lowest"] == 4999)
      #expect(before["origins"].array.first?["waiting"] == 4999)
      #expect(try await worker.call("prioritize", ["group": "g", "priority": "high"])["result"] == ["changed": 1])
      #expect(try await worker.call("prioritize", ["group": "g", "priority": "high"])["result"] == ["changed": 0])
      #expect(try await worker.call("stats")["result"]["queue"]["waiting"]["high"] == 4999)
      let other = worker.request("load", ["url": .string(origin.url("image/x.png")), "priority": "highest"])
      try await origin.release("a")
      _ = try await worker.response(to: other)
      #expect(try await worker.call("cancel", ["group": "g"])["result"] == ["cancelled": 1])
      let after = try await worker.call("stats")["result"]["queue"]["waiting"]
      #expect(after["high"] == 0 && after["lowest"] == 0)
    }
  }

  @Test func `an item that is on disk is not read`() async throws {
    try await withOrigin { worker, origin in
      let urls = (0..<300).map { JSON.string(origin.url("image/\($0).png?cache-control=max-age%3D60")) }
      try await worker.call("prefetch", ["urls": .array(urls)])
      #expect(try await worker.call("clear", ["tier": "memory"])["result"]["removed"] == 300)
      #expect(try await worker.call("prefetch", ["urls": .array(urls)])["result"]["cached"] == 300)
      #expect(try await worker.call("stats")["result"]["memory"]["entries"] == 0)
    }
  }

  @Test func `all items for an unreachable port end with its probe, including those that are not yet loads`()
    async throws
  {
    try await withWorker("--retries", "0") { worker in
      let urls = (0..<3000).map { JSON.string("http://127.0.0.1:1/\($0).png") }
      let result = try await worker.call("prefetch", ["urls": .array(urls)])["result"]
      #expect(result["failed"] == 3000)
      #expect(result["errors"].array.count == 100)
      #expect(result["errors"].array.allSatisfy { $0["kind"] == "connect" })
      let stats = try await worker.call("stats")["result"]
      #expect(stats["transfers"]["started"].integer ?? 0 < 20)
      #expect(stats["queue"]["waiting"]["lowest"] == 0)
    }
  }

  @Test func `cancel ends a prefetch and counts it as one request`() async throws {
    try await withOrigin { worker, origin in
      let urls = (0..<100).map { JSON.string(origin.url("image/\($0).png?hold=a")) }
      worker.request("prefetch", ["urls": .array(urls)], id: "all")
      try await origin.held(6, at: "a")
      #expect(try await worker.call("cancel", ["id": "all"])["result"] == ["cancelled": 1])
      #expect(try await worker.response(to: "all")["error"]["code"] == -32800)
      try await origin.reaches("left", 6)
      #expect(try await origin.counts()["requests"] == 6)
    }
  }
}
