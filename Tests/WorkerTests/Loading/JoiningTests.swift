import Testing

/// Loads of one URL, which share a transfer unless their headers differ.
@Suite struct JoiningTests {
  /// Sends a load without the header, and two loads with different values of it.
  private func load(_ url: String, _ worker: WorkerProcess, differingIn header: String) -> [JSON] {
    let values: [JSON] = [[:], .object([header: "1"]), .object([header: "2"])]
    return values.map { worker.request("load", ["url": .string(url), "headers": $0]) }
  }

  private func results(_ ids: [JSON], _ worker: WorkerProcess) async throws -> [JSON] {
    var results: [JSON] = []
    for id in ids { results.append(try await worker.response(to: id)) }
    return results
  }

  /// Stores the first response, lets three loads share the request for the second one, and returns the log of the
  /// origin.
  private func answers(
    _ answers: String..., reads: ([JSON], [JSON]) throws -> Void
  ) async throws {
    try await withOrigin { worker, origin in
      try await origin.script("s", answers)
      let url = origin.url("s")
      _ = try await worker.load(url)
      let ids = load(url, worker, differingIn: "traceparent")
      try await origin.held(at: "gate")
      // By now all loads have finished their cache lookups.
      _ = try await worker.call("stats")
      #expect(try await origin.counts()["requests"] == 2)
      try await origin.release("gate")
      try reads(try await results(ids, worker), try await origin.log("s"))
    }
  }

  @Test func `keys, slots and groups are compared byte by byte`() async throws {
    try await withOrigin { worker, origin in
      let names = ["caf\u{E9}", "cafe\u{301}"]
      let ids = names.enumerated().map { number, name in
        worker.request(
          "load",
          [
            "url": .string(origin.url("image/\(number + 1).png?hold=gate&cache-control=max-age%3D60")),
            "key": .string(name),
            "slot": .string(name), "group": .string(name),
          ])
      }
      try await origin.held(2, at: "gate")
      let prioritized = try await worker.call("prioritize", ["group": .string(names[0]), "priority": "high"])
      #expect(prioritized["result"]["changed"] == 1)
      try await origin.release("gate")
      let images = try await results(ids, worker)
      #expect(images.map { $0["result"]["key"].string?.utf8.count } == [5, 6])
      #expect(images[0]["result"]["path"] != images[1]["result"]["path"])
      for (name, image) in zip(names, images) {
        let again = try await worker.load("http://127.0.0.1:1/", ["key": .string(name), "cache": "only-if-cached"])
        #expect(again["path"] == image["result"]["path"])
      }
      let cleared = try await worker.call("clear", ["key": .string(names[0])])
      #expect(cleared["result"]["removed"] == 1)
    }
  }

  @Test func `one request revalidates a stale image for all loads`() async throws {
    try await answers(
      "image/1.png?etag=a&cache-control=max-age%3D0", "image/1.png?etag=a&cache-control=max-age%3D0&hold=gate"
    ) { responses, exchanges in
      #expect(responses.map { $0["result"]["cache"] } == ["revalidated", "revalidated", "revalidated"])
      #expect(exchanges.map { $0["status"] } == [200, 304])
    }
  }

  @Test func `one changed response serves all loads`() async throws {
    try await answers(
      "image/1.png?etag=a&cache-control=max-age%3D0", "image/2.png?etag=b&cache-control=max-age%3D0&hold=gate"
    ) { responses, exchanges in
      #expect(responses.map { $0["result"]["cache"] } == ["miss", "miss", "miss"])
      #expect(Set(responses.map { $0["result"]["path"] }).count == 1)
      #expect(exchanges.map { $0["status"] } == [200, 200])
    }
  }

  @Test func `each load gets its own response if Vary names a header in which they differ`() async throws {
    let changed = "image/1.png?by=traceparent&etag=b&vary=traceparent&cache-control=max-age%3D60&hold=gate"
    try await answers("image/1.png?etag=a&cache-control=max-age%3D0", changed) { responses, exchanges in
      #expect(responses.map { $0["error"] } == [.null, .null, .null])
      let images = try responses.map { try contents(of: $0["result"]["path"].string) }
      #expect(Set(images).count == 3)
      #expect(exchanges.map { $0["status"] } == [200, 200, 200, 200])
      #expect(exchanges[2...].map { OriginProcess.header("traceparent", of: $0) } == [["1"], ["2"]])
    }
  }

  /// Sends three loads, one of which is transferred; lets it be answered and returns the `cache` members of the
  /// results.
  private func waiting(
    _ target: String, reads: ([JSON], [JSON]) throws -> Void
  ) async throws {
    try await withOrigin("--max-per-host", "1") { worker, origin in
      let ids = load(origin.url(target), worker, differingIn: "x-n")
      try await origin.held(at: "gate")
      _ = try await worker.call("stats")
      try await origin.release("gate")
      try reads(try await results(ids, worker).map { $0["result"]["cache"] }, try await origin.log("image"))
    }
  }

  @Test func `a waiting load is served by a response that was stored meanwhile`() async throws {
    try await waiting("image/1.png?etag=a&cache-control=max-age%3D60&hold=gate") { caches, exchanges in
      #expect(caches == ["miss", "memory", "memory"])
      #expect(exchanges.map { $0["status"] } == [200])
    }
  }

  @Test func `a stale response that was stored meanwhile is revalidated, not transferred again`() async throws {
    try await waiting("image/1.png?etag=a&cache-control=max-age%3D0&hold=gate") { caches, exchanges in
      #expect(caches == ["miss", "revalidated", "revalidated"])
      #expect(exchanges.map { $0["status"] } == [200, 304, 304])
    }
  }

  @Test func `a response that was stored meanwhile for other headers is not used`() async throws {
    let target = "image/1.png?by=x-n&vary=x-n&etag=a&cache-control=max-age%3D60&conditional=off&hold=gate"
    try await waiting(target) { caches, exchanges in
      #expect(caches == ["miss", "miss", "miss"])
      #expect(exchanges.map { $0["status"] } == [200, 200, 200])
    }
  }

  @Test func `the shared response is cached by its own Vary`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?by=x-n&vary=x-n&etag=a&cache-control=max-age%3D60")
      let first = try await results(load(url, worker, differingIn: "x-n"), worker).map { $0["result"]["path"] }
      #expect(Set(first).count == 3)
      let second = try await results(load(url, worker, differingIn: "x-n"), worker)
      #expect(second.map { $0["result"]["path"] } == first)
      #expect(second.map { $0["result"]["cache"] } == ["memory", "memory", "memory"])
      #expect(try await origin.counts()["requests"] == 3)
    }
  }

  @Test func `a load with other credentials is never coalesced`() async throws {
    try await withOrigin { worker, origin in
      try await origin.script(
        "s", ["image/1.png?etag=a&cache-control=max-age%3D0", "image/1.png?by=authorization&hold=gate"])
      _ = try await worker.load(origin.url("s"))
      let ids = ["alice", "bob", "bob"].map { name in
        worker.request("load", ["url": .string(origin.url("s")), "headers": ["authorization": .string(name)]])
      }
      try await origin.held(2, at: "gate")
      try await origin.release("gate")
      let paths = try await results(ids, worker).map { $0["result"]["path"] }
      #expect(paths[0] != paths[1])
      #expect(paths[1] == paths[2])
      #expect(try await origin.counts()["requests"] == 3)
    }
  }
}
