import Testing

/// Late joins: loads of an image that was stored while an older job of the same key waits or runs.
@Suite struct LateJoinTests {
  private static let fresh = "cache-control=max-age%3D1000"
  private static let modes = ["only-if-cached", "default", "force-cache"]

  private func load(_ url: String, _ params: JSON, _ worker: WorkerProcess) -> JSON {
    worker.request("load", params.merging(["url": .string(url)]))
  }

  @Test func `late loads are served from the cache, whatever the older job does`() async throws {
    try await withOrigin { worker, origin in
      try await origin.script("s", ["image/2.png?\(Self.fresh)&hold=gate", "image/2.png?\(Self.fresh)"])
      let url = origin.url("s")
      // The original of thumbnails is only on disk.
      let held = load(url, ["transform": ["width": 16]], worker)
      try await origin.held(at: "gate")
      _ = try await worker.load(url, ["cache": "reload", "transform": ["width": 8]])
      for mode in Self.modes {
        #expect(try await worker.load(url, ["cache": .string(mode), "store": "disk"])["cache"] == "disk", "\(mode)")
      }
      try await origin.release("gate")
      #expect(try await worker.response(to: held)["result"]["cache"] == "miss")
    }
  }

  @Test func `late loads do not get a replaced image`() async throws {
    try await withOrigin { worker, origin in
      let answers = [
        "image/1.png?bytes=1000&etag=a&cache-control=max-age%3D0",
        "image/2.png?bytes=2000&etag=b&\(Self.fresh)&hold=gate",
        "image/3.png?bytes=3000&etag=c&\(Self.fresh)",
      ]
      try await origin.script("s", answers)
      let url = origin.url("s")
      #expect(try await worker.load(url, ["store": "disk"])["bytes"] == 1000)
      let held = load(url, ["transform": ["width": 16]], worker)
      try await origin.held(at: "gate")
      _ = try await worker.load(url, ["cache": "reload", "transform": ["width": 8]])
      for mode in Self.modes {
        let image = try await worker.load(url, ["cache": .string(mode), "store": "disk"])
        #expect(image["bytes"] == 3000 && image["cache"] == "disk", "\(mode)")
      }
      try await origin.release("gate")
      _ = try await worker.response(to: held)
    }
  }

  @Test func `a waiting load is served by a response that another load has stored`() async throws {
    try await withOrigin("--memory-limit", "0") { worker, origin in
      let url = origin.url("image/2.png?\(Self.fresh)&hold=gate")
      let first = load(url, ["cache": "reload"], worker)
      try await origin.held(at: "gate")
      _ = try await worker.call("pause")
      let waiting = load(url, [:], worker)
      _ = try await worker.call("stats")
      try await origin.release("gate")
      #expect(try await worker.response(to: first)["result"]["cache"] == "miss")
      #expect(try await worker.response(to: waiting)["result"]["cache"] == "disk")
      #expect(try await origin.counts()["requests"] == 1)
    }
  }

  @Test func `a late load that the cache cannot serve joins the running transfer and gets its events`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/2.png?hold=gate")
      let first = load(url, [:], worker)
      try await origin.held(at: "gate")
      let late: [JSON] = [["transform": ["width": 8]], ["transform": ["width": 9]], [:], ["cache": "only-if-cached"]]
      let ids = late.map { load(url, $0.merging(["events": ["started"]]), worker) }
      for id in ids.dropLast() {
        let started = try await worker.event("started", for: id)
        #expect(started["params"]["attempt"] == 1)
      }
      #expect(try await worker.response(to: ids[3])["error"]["data"]["kind"] == "notCached")
      try await origin.release("gate")
      for id in [first] + ids.dropLast() {
        #expect(try await worker.response(to: id)["result"]["cache"] == "miss")
      }
      #expect(try await origin.counts()["requests"] == 1)
    }
  }
}
