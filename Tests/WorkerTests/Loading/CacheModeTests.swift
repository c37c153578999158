import Foundation
import Testing

/// The cache modes of the Fetch standard, and the `cache` member of results.
@Suite struct CacheModeTests {
  private static let fresh = "image/1.png?bytes=10000&etag=v1&cache-control=max-age%3D3600"
  private static let stale = "image/1.png?bytes=10000&etag=v1&cache-control=max-age%3D0"

  @Test func `a fresh image is served from memory`() async throws {
    try await withOrigin { worker, origin in
      let first = try await worker.load(origin.url(Self.fresh))
      let second = try await worker.load(origin.url(Self.fresh))
      #expect(first["cache"] == "miss")
      #expect(second["cache"] == "memory")
      #expect(second["path"] == first["path"])
      #expect(try await origin.counts()["requests"] == 1)
    }
  }

  @Test func `a later worker serves the image from disk`() async throws {
    try await withOrigin { worker, origin in
      _ = try await worker.load(origin.url(Self.fresh))
      #expect(try await worker.end() == .exit(0))
      let next = try WorkerProcess(directory: worker.directory)
      #expect(try await next.load(origin.url(Self.fresh))["cache"] == "disk")
      #expect(try await next.end() == .exit(0))
      #expect(try await origin.counts()["requests"] == 1)
    }
  }

  @Test func `namespaces are separate caches`() async throws {
    try await withOrigin { worker, origin in
      _ = try await worker.load(origin.url(Self.fresh))
      #expect(try await worker.end() == .exit(0))
      let next = try WorkerProcess(["--cache-namespace", "other"], directory: worker.directory)
      #expect(try await next.load(origin.url(Self.fresh))["cache"] == "miss")
      #expect(try await next.end() == .exit(0))
    }
  }

  @Test func `a stale image is revalidated`() async throws {
    try await withOrigin { worker, origin in
      let first = try await worker.load(origin.url(Self.stale))
      let second = try await worker.load(origin.url(Self.stale))
      #expect(second["cache"] == "revalidated")
      #expect(second["path"] == first["path"])
      let exchanges = try await origin.log()
      #expect(exchanges.map { $0["status"] } == [200, 304])
      #expect(OriginProcess.header("if-none-match", of: exchanges[1]) == ["\"v1\""])
    }
  }

  @Test(arguments: ["memory", "disk", "all"]) func `a revalidated image is served from its tier`(store: String)
    async throws
  {
    try await withOrigin { worker, origin in
      for cache in ["miss", "revalidated", "revalidated"] {
        let result = try await worker.load(origin.url(Self.stale), ["deliver": "data", "store": .string(store)])
        #expect(result["cache"] == .string(cache))
        #expect(Data(base64Encoded: result["data"].string ?? "")?.count == 10_000)
      }
    }
  }

  @Test func `a changed image is transferred, and the file of the old path stays unchanged`() async throws {
    try await withOrigin { worker, origin in
      try await origin.script(
        "s", ["image/1.png?etag=a&cache-control=no-cache", "image/2.png?etag=b&cache-control=no-cache"])
      let first = try await worker.load(origin.url("s"))
      let before = try contents(of: first["path"].string)
      let second = try await worker.load(origin.url("s"))
      #expect(second["cache"] == "miss")
      #expect(second["path"] != first["path"])
      #expect(try contents(of: first["path"].string) == before)
      #expect(try contents(of: second["path"].string) != before)
    }
  }

  @Test func `no-store neither reads nor writes the cache`() async throws {
    try await withOrigin { worker, origin in
      for _ in 0..<2 {
        let result = try await worker.load(origin.url(Self.fresh), ["cache": "no-store"])
        #expect(result["cache"] == "miss")
        #expect(try contents(of: result["path"].string).count == 10_000)
      }
      #expect(try await worker.load(origin.url(Self.fresh))["cache"] == "miss")
      let sent = try await origin.log()[0]
      #expect(OriginProcess.header("cache-control", of: sent) == ["no-cache"])
      #expect(OriginProcess.header("pragma", of: sent) == ["no-cache"])
    }
  }

  @Test func `reload writes but does not read the cache`() async throws {
    try await withOrigin { worker, origin in
      _ = try await worker.load(origin.url(Self.fresh))
      #expect(try await worker.load(origin.url(Self.fresh), ["cache": "reload"])["cache"] == "miss")
      #expect(try await worker.load(origin.url(Self.fresh))["cache"] == "memory")
      let exchanges = try await origin.log()
      #expect(exchanges.count == 2)
      #expect(OriginProcess.header("cache-control", of: exchanges[1]) == ["no-cache"])
      #expect(OriginProcess.header("if-none-match", of: exchanges[1]).isEmpty)
    }
  }

  @Test func `no-cache revalidates a fresh image`() async throws {
    try await withOrigin { worker, origin in
      _ = try await worker.load(origin.url(Self.fresh))
      #expect(try await worker.load(origin.url(Self.fresh), ["cache": "no-cache"])["cache"] == "revalidated")
      #expect(OriginProcess.header("cache-control", of: try await origin.log()[1]) == ["max-age=0"])
    }
  }

  @Test func `force-cache serves a stale image`() async throws {
    try await withOrigin { worker, origin in
      _ = try await worker.load(origin.url(Self.stale))
      #expect(try await worker.load(origin.url(Self.stale), ["cache": "force-cache"])["cache"] == "stale")
      #expect(try await worker.load(origin.url("image/2.png"), ["cache": "force-cache"])["cache"] == "miss")
      #expect(try await origin.counts()["requests"] == 2)
    }
  }

  @Test func `only-if-cached never transfers`() async throws {
    try await withOrigin { worker, origin in
      let error = try await worker.failure(origin.url(Self.stale), ["cache": "only-if-cached"])
      #expect(error["data"]["kind"] == "notCached")
      #expect(error["code"] == 3001)
      _ = try await worker.load(origin.url(Self.stale))
      #expect(try await worker.load(origin.url(Self.stale), ["cache": "only-if-cached"])["cache"] == "stale")
      #expect(try await origin.counts()["requests"] == 1)
    }
  }

  @Test func `refresh sends the cached image at once, and answers after revalidation`() async throws {
    try await withOrigin { worker, origin in
      try await origin.script("s", ["image/1.png?etag=a&cache-control=max-age%3D60", "image/2.png?etag=b&hold=g"])
      let first = try await worker.load(origin.url("s"))
      let id = worker.request("load", ["url": .string(origin.url("s")), "cache": "refresh"])
      try await origin.held(at: "g")
      let cached = try await worker.event("cached", for: id)
      #expect(cached["params"]["path"] == first["path"])
      try await origin.release("g")
      #expect(try await worker.response(to: id)["result"]["path"] != first["path"])
    }
  }

  @Test func `a response with Cache-Control no-store is not stored`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?cache-control=no-store")
      let first = try await worker.load(url)
      #expect(try contents(of: first["path"].string).isEmpty == false)
      #expect(try await worker.load(url)["cache"] == "miss")
    }
  }

  @Test(
    arguments: [
      ("memory", ["memory": true, "disk": false]), ("disk", ["memory": false, "disk": true]),
      ("all", ["memory": true, "disk": true]), ("none", ["memory": false, "disk": false]),
    ] as [(String, JSON)])
  func `store selects the tiers, and a path is returned in any case`(tier: String, kept: JSON) async throws {
    try await withOrigin { worker, origin in
      let url = origin.url(Self.fresh)
      let result = try await worker.load(url, ["store": .string(tier)])
      #expect(try contents(of: result["path"].string).count == 10_000)
      let query = try await worker.call("query", ["url": .string(url)])["result"]
      #expect(query["memory"] == kept["memory"])
      #expect(query["disk"] == kept["disk"])
    }
  }

  @Test func `different URLs with the same key share one image`() async throws {
    try await withOrigin { worker, origin in
      let first = try await worker.load(origin.url("\(Self.fresh)&x-signed=1"), ["key": "mine"])
      #expect(first["key"] == "mine")
      #expect(try await worker.load(origin.url("\(Self.fresh)&x-signed=2"), ["key": "mine"])["cache"] == "memory")
    }
  }

  @Test func `ignored query parameters are not part of the cache key`() async throws {
    try await withOrigin("--key-ignore-query", "x-s*") { worker, origin in
      let first = try await worker.load(origin.url("\(Self.fresh)&x-signed=1"))
      #expect(first["key"].string == origin.url(Self.fresh))
      #expect(try await worker.load(origin.url("\(Self.fresh)&x-signed=2"))["cache"] == "memory")
    }
  }

  @Test func `an image is never served to a user with other credentials`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?by=authorization&cache-control=max-age%3D3600")
      var seen: Set<[UInt8]> = []
      for user in ["", "Basic a", "Basic b"] {
        let headers: JSON = user.isEmpty ? [:] : ["Authorization": .string(user)]
        seen.insert(try contents(of: try await worker.load(url, ["headers": headers])["path"].string))
      }
      #expect(seen.count == 3)
    }
  }
}
