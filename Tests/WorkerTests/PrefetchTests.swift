import Testing

@Suite struct PrefetchTests {
  @Test func `the result counts what was downloaded, cached and failed`() async throws {
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
      #expect(result["errors"] == [["url": .string(missing), "kind": "http"]])
      #expect(try await worker.load(target(3))["cache"] == "memory")
    }
  }

  @Test func `an empty list is done at once`() async throws {
    try await withWorker { worker in
      let response = try await worker.call("prefetch", ["urls": []])
      #expect(response["result"]["total"] == 0)
    }
  }

  @Test func `events name each item and count them`() async throws {
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

  @Test func `a load takes an item over at its own priority`() async throws {
    try await withOrigin("--max-concurrent", "1") { worker, origin in
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

  @Test func `cancel ends all of it and counts as one`() async throws {
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
