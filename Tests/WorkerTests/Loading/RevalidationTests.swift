import Testing

/// `refresh`, stale-if-error, and loads with a Range field.
@Suite struct RevalidationTests {
  private static let image = "image/1.png?bytes=10000&etag=v1&cache-control=max-age%3D3600"
  private static let changed = "image/2.png?bytes=20000&etag=v2"

  private func refresh(_ worker: WorkerProcess, _ url: String) -> JSON {
    worker.request("load", ["url": .string(url), "cache": "refresh"])
  }

  private func cachedEvents(_ worker: WorkerProcess, _ id: JSON) -> [JSON] {
    worker.events(for: id).filter { $0["method"] == "cached" }
  }

  // MARK: - refresh

  @Test func `refresh sends the cached image once, and then the error, if the server is down`() async throws {
    try await withOrigin { worker, origin in
      let lenient = "image/1.png?etag=v1&cache-control=max-age%3D3600,stale-if-error%3D3600"
      // The request is sent again without its condition.
      let refusal = "image/1.png?status=503"
      try await origin.script("s", [lenient, refusal, refusal, "image/1.png?close=start"])
      let first = try await worker.load(origin.url("s"))
      for kind in ["http", "network"] as [JSON] {
        let id = refresh(worker, origin.url("s"))
        #expect(try await worker.response(to: id)["error"]["data"]["kind"] == kind)
        #expect(cachedEvents(worker, id).map { $0["params"]["path"] } == [first["path"]])
      }
      #expect(try await worker.load(origin.url("s"))["cache"] == "memory", "the stored response is unchanged")
    }
  }

  @Test func `concurrent refresh loads each get the cached image, and share one request`() async throws {
    try await withOrigin { worker, origin in
      try await origin.script("s", [Self.image, Self.image + "&hold=gate"])
      _ = try await worker.load(origin.url("s"))
      let ids = [refresh(worker, origin.url("s")), refresh(worker, origin.url("s"))]
      try await origin.held(at: "gate")
      for id in ids { _ = try await worker.event("cached", for: id) }
      try await origin.release("gate")
      for id in ids {
        #expect(try await worker.response(to: id)["result"]["cache"] == "revalidated")
        #expect(cachedEvents(worker, id).count == 1)
      }
      #expect(try await origin.counts()["requests"] == 2)
    }
  }

  @Test func `refresh sends the cached image once if another worker stored it`() async throws {
    try await withOrigin { worker, origin in
      try await origin.script("s", [Self.image, Self.changed])
      let first = try await worker.load(origin.url("s"))
      #expect(try await worker.end() == .exit(0))
      let next = try WorkerProcess(directory: worker.directory)
      let id = refresh(next, origin.url("s"))
      #expect(try await next.response(to: id)["result"]["bytes"] == 20_000)
      #expect(cachedEvents(next, id).map { $0["params"]["path"] } == [first["path"]])
      #expect(try await next.end() == .exit(0))
    }
  }

  /// Refreshes a transform of an image that is cached untransformed.
  private func refreshThumbnail(
    of answers: [String], _ worker: WorkerProcess, _ origin: OriginProcess, _ params: JSON = [:]
  ) async throws -> (shown: [JSON], result: JSON, decoded: JSON) {
    try await origin.script("s", answers)
    let url = JSON.string(origin.url("s"))
    try await worker.call("load", ["url": url])
    let thumbnail: JSON = ["url": url, "cache": "refresh", "transform": ["width": 20]]
    let id = worker.request("load", thumbnail.merging(params))
    let result = try await worker.response(to: id)["result"]
    let decoded = try await worker.call("stats")["result"]["decoders"]["decoded"]
    return (cachedEvents(worker, id).map { $0["params"] }, result, decoded)
  }

  @Test func `refresh decodes once for the cached event and for an unchanged answer`() async throws {
    try await withOrigin { worker, origin in
      let (shown, result, decoded) = try await refreshThumbnail(of: [Self.image, Self.image], worker, origin)
      #expect(result["cache"] == "revalidated" && result["width"] == 20)
      #expect(shown.count == 1 && shown.first?["path"] == result["path"])
      #expect(decoded == 1)
    }
  }

  @Test func `refresh sends the cached image before it answers with another image`() async throws {
    try await withOrigin { worker, origin in
      let (shown, result, decoded) = try await refreshThumbnail(of: [Self.image, Self.changed], worker, origin)
      #expect(result["cache"] == "miss" && result["source"]["bytes"] == 20_000)
      #expect(shown.map { $0["source"]["bytes"] } == [10_000])
      #expect(decoded == 2)
    }
  }

  @Test func `refresh sends no cached event for pixels`() async throws {
    try await withOrigin { worker, origin in
      let (shown, result, decoded) = try await refreshThumbnail(
        of: [Self.image, Self.image], worker, origin, ["deliver": "pixels", "validate": "decode"])
      #expect(result["cache"] == "revalidated" && result["pixels"]["width"] == 20)
      #expect(shown.isEmpty)
      #expect(decoded == 2, "the check and the pixels")
      #expect(try await worker.call("stats")["result"]["pixels"]["regions"] == 1)
    }
  }

  @Test func `refresh answers at once with a fresh and immutable image`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?etag=v1&cache-control=max-age%3D3600,immutable")
      _ = try await worker.load(url)
      let id = refresh(worker, url)
      #expect(try await worker.response(to: id)["result"]["cache"] == "memory")
      #expect(cachedEvents(worker, id).isEmpty)
      #expect(try await origin.counts()["requests"] == 1)
    }
  }

  @Test func `refresh of an image that is not cached is a normal load`() async throws {
    try await withOrigin { worker, origin in
      let id = refresh(worker, origin.url(Self.image))
      let response = try await worker.response(to: id)
      #expect(response["result"]["cache"] == "miss")
      #expect(worker.events(for: id).isEmpty)
    }
  }

  @Test(arguments: ["reload", "no-cache"]) func `a response that may not be stored removes the stored one`(mode: String)
    async throws
  {
    try await withOrigin { worker, origin in
      let forbidden = "image/2.png?bytes=20000&etag=v2&cache-control=no-store"
      try await origin.script("s", [Self.image, forbidden, forbidden, forbidden, forbidden, Self.image, Self.image])
      let (url, small) = (origin.url("s"), ["transform": ["width": 8]] as JSON)
      _ = try await worker.load(url, small)
      _ = try await worker.load(url)
      // A response that no load accepts, or that is not to be stored, replaces nothing.
      let wrong: JSON = ["cache": .string(mode), "digest": .string("sha256-" + String(repeating: "0", count: 64))]
      #expect(try await worker.failure(url, wrong)["data"]["kind"] == "digestMismatch")
      _ = try await worker.load(url, ["cache": .string(mode), "store": "none"])
      #expect(try await worker.load(url)["cache"] == "memory")
      #expect(try await worker.load(url, ["cache": .string(mode)])["bytes"] == 20_000)
      let variant = try await worker.call("query", JSON.object(["url": .string(url)]).merging(small))["result"]
      #expect(variant["memory"] == false && variant["disk"] == false)
      let state = try await worker.call("query", ["url": .string(url)])["result"]
      #expect(state["memory"] == false && state["disk"] == false)
      #expect(try await worker.load(url)["cache"] == "miss")
      // A load with no-store leaves the stored response unchanged.
      _ = try await worker.load(url)
      #expect(try await worker.load(url, ["cache": "no-store"])["cache"] == "miss")
      #expect(try await worker.load(url)["cache"] == "memory")
    }
  }

  @Test(arguments: ["cache-control=no-store", "vary=accept-language&cache-control=max-age%3D1000"], [0, 1000])
  func `a response that a 304 updated is stored only if that is allowed`(update: String, freshFor: Int) async throws {
    try await withOrigin { worker, origin in
      let other = "image/2.png?etag=b&cache-control=max-age%3D1000"
      try await origin.script(
        "s", ["image/1.png?etag=a&cache-control=max-age%3D\(freshFor)", "image/1.png?etag=a&\(update)", other])
      let german: JSON = ["headers": ["accept-language": "de"]]
      #expect(try await worker.load(origin.url("s"), german)["cache"] == "miss")
      #expect(try await worker.load(origin.url("s"), german.merging(["cache": "no-cache"]))["cache"] == "revalidated")
      #expect(try await worker.load(origin.url("s"))["cache"] == "miss")
    }
  }

  @Test func `a 304 to a request with no-store leaves the stored response unchanged`() async throws {
    try await withOrigin { worker, origin in
      let (fresh, stale) = ("cache-control=max-age%3D1000", "cache-control=max-age%3D0")
      let unkept: JSON = ["cache": "no-cache", "headers": ["cache-control": "no-store"]]
      func image(_ field: String) -> String { "image/1.png?etag=a&\(field)" }
      try await origin.script("fresh", [image(fresh), image(fresh)])
      let url = origin.url("fresh")
      _ = try await worker.load(url)
      let before = try await worker.call("query", ["url": .string(url)])["result"]
      #expect(try await worker.load(url, unkept)["cache"] == "revalidated")
      #expect(try await worker.call("query", ["url": .string(url)])["result"]["expiresAt"] == before["expiresAt"])
      #expect(try await worker.load(url)["cache"] == "memory")
      // Neither the stale response nor its variants become fresh.
      try await origin.script("stale", [image(stale), image(fresh), image(stale), image(stale)])
      let (other, small) = (origin.url("stale"), ["transform": ["width": 8]] as JSON)
      _ = try await worker.load(other)
      #expect(try await worker.load(other, unkept.merging(small))["cache"] == "revalidated")
      #expect(try await worker.load(other, small)["cache"] == "revalidated")
      #expect(try await worker.load(other)["cache"] == "revalidated")
      // The directives of the response count, whichever load requested it.
      try await origin.script("forbidden", [image(fresh), image("cache-control=no-store"), image(fresh)])
      let forbidden = origin.url("forbidden")
      _ = try await worker.load(forbidden)
      #expect(try await worker.load(forbidden, unkept)["cache"] == "revalidated")
      #expect(try await worker.load(forbidden)["cache"] == "revalidated")
    }
  }

  @Test func `a 304 from another server after a redirect validates nothing`() async throws {
    try await withOrigin { worker, origin in
      let unasked = "text?status=304"
      try await origin.script(
        "s", ["image/1.png?etag=a&cache-control=max-age%3D0", "text?redirect=\(origin.url("other"))"])
      try await origin.script("other", [unasked, unasked, unasked])
      _ = try await worker.load(origin.url("s"))
      #expect(try await worker.failure(origin.url("s"))["data"]["status"] == 304)
    }
  }

  @Test func `a load with another Host field gets another image`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?by=host&cache-control=max-age%3D60")
      for (host, expected) in [("a.test", "miss"), ("b.test", "miss"), ("a.test", "memory")] as [(JSON, JSON)] {
        let result = try await worker.load(url, ["headers": ["host": host]])
        #expect(result["cache"] == expected)
      }
      let plain = try await worker.load(url)
      #expect(plain["cache"] == "miss")
    }
  }

  // MARK: - stale-if-error

  static let failures = ["status=503", "status=500", "close=start", "reset=start", "truncate=100", "hold=never"]

  @Test(arguments: failures)
  func `stale-if-error applies to server errors and to missing answers`(failure: String) async throws {
    try await withOrigin { worker, origin in
      let lenient = "image/1.png?etag=v1&cache-control=max-age%3D0,stale-if-error%3D3600"
      try await origin.script("s", [lenient, "image/1.png?bytes=10000&\(failure)"])
      let first = try await worker.load(origin.url("s"))
      let second = try await worker.load(origin.url("s"), ["timeoutMs": 500])
      #expect(second["cache"] == "stale")
      #expect(second["path"] == first["path"])
      let exchanges = try await origin.log("s")
      #expect(exchanges.count > 1 && exchanges[1...].allSatisfy { $0["status"] != 304 })
    }
  }

  @Test func `stale-if-error applies neither to other answers nor with must-revalidate`() async throws {
    try await withOrigin { worker, origin in
      let strict = "image/1.png?etag=v1&cache-control=max-age%3D0,must-revalidate,stale-if-error%3D3600"
      try await origin.script("strict", [strict, "image/1.png?status=503"])
      let lenient = "image/1.png?etag=v1&cache-control=max-age%3D0,stale-if-error%3D3600"
      try await origin.script("gone", [lenient, "image/1.png?status=410"])
      for (target, status) in [("strict", 503), ("gone", 410)] as [(String, JSON)] {
        _ = try await worker.load(origin.url(target))
        #expect(try await worker.failure(origin.url(target))["data"]["status"] == status)
      }
    }
  }

  // MARK: - Ranges

  @Test func `a partial response is neither served from the cache nor stored`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url(Self.image)
      let part: JSON = ["headers": ["Range": "bytes=0-99"], "validate": "none", "response": true]
      for cached in ["miss", "memory"] as [JSON] {
        let result = try await worker.load(url, part)
        #expect(result["response"]["status"] == 206)
        #expect(result["bytes"] == 100)
        #expect(result["cache"] == "miss")
        let whole = try await worker.load(url)
        #expect(whole["bytes"] == 10_000)
        #expect(whole["cache"] == cached)
      }
    }
  }

  @Test func `a failure of a range or conditional request is not remembered for the image`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url(Self.image)
      let beyond: JSON = ["headers": ["Range": "bytes=20000-"], "validate": "none"]
      let unsatisfiable = try await worker.failure(url, beyond)
      #expect(unsatisfiable["data"]["status"] == 416)
      let noImage: JSON = ["headers": ["Range": "bytes=5000-"]]
      #expect(try await worker.failure(url, noImage)["data"]["kind"] == "notAnImage")
      #expect(try await worker.load(url)["cache"] == "miss")
    }
  }
}
