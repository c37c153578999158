import Foundation
import Testing

/// Cached content that does not match the load, is missing or damaged, or belongs to another user.
@Suite struct CachedContentTests {
  private static let stale = "image/1.png?bytes=10000&etag=v1&cache-control=max-age%3D0"
  private static let noDigest: JSON = .string("sha256-" + String(repeating: "0", count: 64))

  // MARK: - Content that does not match

  @Test func `a revalidated image must match the digest of the load`() async throws {
    try await withOrigin { worker, origin in
      _ = try await worker.load(origin.url(Self.stale))
      let error = try await worker.failure(origin.url(Self.stale), ["digest": Self.noDigest])
      #expect(error["data"]["kind"] == "digestMismatch")
    }
  }

  @Test func `a load that joins a revalidation gets the image only if its digest matches`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url(Self.stale + "&hold=g")
      try await origin.release("g", count: 1)
      _ = try await worker.load(url)
      let first = worker.request("load", ["url": .string(url)])
      try await origin.held(at: "g")
      let second = worker.request("load", ["url": .string(url), "digest": Self.noDigest])
      try await worker.call("stats")
      try await origin.release("g")
      #expect(try await worker.response(to: first)["result"]["cache"] == "revalidated")
      #expect(try await worker.response(to: second)["error"]["data"]["kind"] == "digestMismatch")
    }
  }

  @Test func `only-if-cached transfers nothing if the cached image has another digest`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?cache-control=max-age%3D60")
      _ = try await worker.load(url)
      let error = try await worker.failure(url, ["cache": "only-if-cached", "digest": Self.noDigest])
      #expect(error["data"]["kind"] == "notCached")
      #expect(try await origin.counts()["requests"] == 1)
    }
  }

  @Test func `content accepted by validate none is not served to a load that needs an image, fresh or revalidated`()
    async throws
  {
    try await withOrigin { worker, origin in
      for age in [0, 60] {
        let url = origin.url("text?etag=v1&cache-control=max-age%3D\(age)")
        _ = try await worker.load(url, ["validate": "none"])
        #expect(try await worker.failure(url)["data"]["kind"] == "notAnImage")
      }
    }
  }

  @Test func `an image on disk that a newer one in memory supersedes is not served after the newer one is evicted`()
    async throws
  {
    try await withOrigin { worker, origin in
      let (old, new) = ("image/1.png?cache-control=max-age%3D60", "image/2.png?cache-control=max-age%3D60")
      try await origin.script("s", [old, new])
      _ = try await worker.load(origin.url("s"))
      _ = try await worker.load(origin.url("s"), ["cache": "reload", "store": "memory"])
      #expect(try await worker.load(origin.url("s"))["cache"] == "memory")
      try await worker.call("clear", ["tier": "memory"])
      let error = try await worker.failure(origin.url("s"), ["cache": "only-if-cached"])
      #expect(error["data"]["kind"] == "notCached")
    }
  }

  @Test func `stale-if-error applies without a validator`() async throws {
    try await withOrigin { worker, origin in
      let good = "image/1.png?cache-control=max-age%3D0,stale-if-error%3D600"
      try await origin.script("s", [good, "image/1.png?status=503"])
      let first = try await worker.load(origin.url("s"))
      let second = try await worker.load(origin.url("s"))
      #expect(second["cache"] == "stale")
      #expect(second["path"] == first["path"])
    }
  }

  @Test func `stale-if-error does not apply to content that is not an image`() async throws {
    try await withOrigin { worker, origin in
      let good = "image/1.png?etag=v1&cache-control=max-age%3D0,stale-if-error%3D600"
      try await origin.script("s", [good, "html"])
      _ = try await worker.load(origin.url("s"))
      #expect(try await worker.failure(origin.url("s"))["data"]["kind"] == "notAnImage")
    }
  }

  // MARK: - Revalidation

  @Test(arguments: ["#a", "&x-signed=1"])
  func `an image is revalidated for an equivalent URL`(ending: String) async throws {
    try await withOrigin("--key-ignore-query", "x-s*") { worker, origin in
      _ = try await worker.load(origin.url(Self.stale))
      for _ in 0..<2 {
        let again = try await worker.load(origin.url(Self.stale + ending))
        #expect(again["cache"] == "revalidated")
      }
    }
  }

  @Test func `an attempt after a timeout uses a new connection`() async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      let both = (1...2).map { worker.request("load", ["url": .string(origin.url("image/\($0).png?hold=g"))]) }
      try await origin.held(2, at: "g")
      try await origin.release("g")
      for id in both { _ = try await worker.response(to: id) }
      try await origin.script("s", ["image/3.png?hold=never", "image/3.png"])
      #expect(try await worker.load(origin.url("s"), ["timeoutMs": 2000])["attempts"] == 2)
      #expect(try await origin.counts()["connections"] == 3)
    }
  }

  // MARK: - Missing and damaged files

  /// - Parameter length: the new length of the file; nil removes it.
  @Test(
    arguments: [nil, 100, 20_000],
    [[:], ["transform": ["width": 7]], ["deliver": "pixels"], ["validate": "decode"]] as [JSON])
  func `an image with a lost file is served from memory`(length: Int?, wish: JSON) async throws {
    try await withOrigin("--verify", "never") { worker, origin in
      let url = origin.url("image/1.png?bytes=10000&cache-control=max-age%3D60")
      let path = try #require(try await worker.load(url)["path"].string)
      if let length { #expect(truncate(path, length) == 0) } else { try FileManager.default.removeItem(atPath: path) }
      for wish in [wish, [:]] {
        let again = try await worker.load(url, wish.merging(["cache": "only-if-cached"]))
        #expect(again["cache"] == "memory")
        if wish == [:] { #expect(try contents(of: again["path"].string).count == 10_000) }
      }
      #expect(try await origin.counts()["requests"] == 1)
    }
  }

  @Test func `an unreadable cached file causes a transfer and no error`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?bytes=10000&cache-control=max-age%3D60")
      let path = try #require(try await worker.load(url)["path"].string)
      #expect(try await worker.end() == .exit(0))
      try FileManager.default.removeItem(atPath: path)
      try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path)
      let next = try WorkerProcess(directory: worker.directory)
      #expect(try await next.load(url)["cache"] == "miss")
      #expect(try await next.end() == .exit(0))
    }
  }

  @Test func `after the loss of the cache directory, one warning is logged and loads continue`() async throws {
    try await withOrigin { worker, origin in
      _ = try await worker.load(origin.url("image/0.png?cache-control=max-age%3D60"))
      let cache = worker.directory.appending("cache")
      try FileManager.default.removeItem(atPath: cache)
      try Data().write(to: URL(fileURLWithPath: cache))
      for (number, size) in [(1, 5000), (2, 1_000_000), (3, 5000), (4, 1_000_000)] {
        let url = origin.url("image/\(number).png?bytes=\(size)&cache-control=max-age%3D60")
        let result = try await worker.load(url)
        #expect(result["cache"] == "miss")
        #expect(try contents(of: result["path"].string).count == size)
        #expect(try await worker.load(url)["cache"] == "memory")
      }
      #expect(try await worker.end() == .exit(0))
      #expect(worker.child.errors.value.lines.count == 1, "\(worker.child.errors.value)")
    }
  }

  @Test(arguments: ["--disk-limit", "--memory-limit"])
  func `a large image is stored in the tier that has space for it`(off: String) async throws {
    try await withOrigin(off, "0") { worker, origin in
      let url = origin.url("image/1.png?bytes=1000000&cache-control=max-age%3D60")
      let expected: JSON = off == "--disk-limit" ? "memory" : "disk"
      #expect(try await worker.load(url)["cache"] == "miss")
      let second = try await worker.load(url)
      #expect(second["cache"] == expected)
      #expect(try contents(of: second["path"].string).count == 1_000_000)
      let stored = try await worker.call("store", ["key": "mine", "path": second["path"]])["result"]
      #expect(stored["cache"] == expected)
      #expect(try await worker.load("http://nobody.invalid/", ["key": "mine"])["cache"] == expected)
    }
  }

  @Test(arguments: [("image/2.png?bytes=1000000", "all"), ("image/2.png?bytes=5000", "disk")])
  func `memory does not serve an image that was replaced on disk`(next: String, places: String) async throws {
    try await withOrigin { worker, origin in
      try await origin.script(
        "s", ["image/1.png", next].map { $0 + ($0.contains("?") ? "&" : "?") + "cache-control=max-age%3D60" })
      _ = try await worker.load(origin.url("s"))
      let second = try await worker.load(origin.url("s"), ["cache": "reload", "store": .string(places)])
      let third = try await worker.load(origin.url("s"))
      #expect(third["cache"] == "disk")
      #expect(third["path"] == second["path"])
      let source = try await worker.load(origin.url("image/3.png?bytes=2000000"))
      try await worker.call("store", ["url": .string(origin.url("s")), "path": source["path"]])
      #expect(try await worker.load(origin.url("s"))["bytes"] == 2_000_000)
    }
  }

  @Test func `a read-only directory is read for each load that needs it`() async throws {
    try await withOrigin { filling, origin in
      let url = origin.url("image/1.png?bytes=10000&cache-control=max-age%3D60")
      let first = try await filling.load(url)
      #expect(try await filling.end() == .exit(0))
      let worker = try WorkerProcess(["--read-only-cache", filling.directory.appending("cache")])
      for delivery in ["path", "path", "data"] {
        let result = try await worker.load(url, ["deliver": .string(delivery)])
        #expect(result["cache"] == "disk")
        guard delivery == "path", let path = result["path"].string else { continue }
        #expect(result["path"] != first["path"], "its owner may remove that at any time")
        #expect(FileManager.default.contents(atPath: path)?.count == 10_000)
      }
      #expect(try await worker.end() == .exit(0))
      #expect(try await origin.counts()["requests"] == 1)
    }
  }

  @Test func `later stores of a read-only directory's owner are found, and its clears do not remove delivered files`()
    async throws
  {
    try await withOrigin { filling, origin in
      let url = { (number: Int) in origin.url("image/\(number).png?bytes=10000&cache-control=max-age%3D60") }
      _ = try await filling.load(url(1))
      let reading = try WorkerProcess(["--read-only-cache", filling.directory.appending("cache")])
      let path = try #require(try await reading.load(url(1))["path"].string)
      _ = try await filling.load(url(2))
      // The owner commits within half a second. The reader takes a new snapshot when it is idle.
      for attempt in 0... {
        let found = try await reading.call("query", ["url": .string(url(2))])["result"]["disk"] == true
        if found { break }
        try #require(attempt < 1000)
        try await Task.sleep(for: .milliseconds(10))
      }
      try await filling.call("clear")
      #expect(FileManager.default.contents(atPath: path)?.count == 10_000)
      #expect(try await reading.end() == .exit(0))
    }
  }

  @Test func `two slashes in the path of the cache directory are equal to one`() async throws {
    try await withOrigin { filling, origin in
      let url = origin.url("image/1.png?cache-control=max-age%3D60")
      _ = try await filling.load(url)
      let again = try WorkerProcess(["--cache-dir", "/" + filling.directory.appending("cache")])
      #expect(try await again.load(url)["cache"] == "disk")
      #expect(try await again.load(origin.url("image/2.png"))["kept"] == true)
      #expect(try await again.end() == .exit(0))
    }
  }

  // MARK: - Credentials and cancellation

  @Test func `the worker's own header fields count for store and query too`() async throws {
    try await withOrigin("--header", "Authorization: Basic everybody") { worker, origin in
      let source = try await worker.load(origin.url("image/7.png?bytes=5000&cache-control=max-age%3D60"))
      let found = try await worker.call("query", ["url": source["url"]])["result"]
      #expect(found["disk"] == true && found["memory"] == true)
      try await worker.call("store", ["key": "mine", "path": source["path"]])
      #expect(try await worker.load("http://nobody.invalid/", ["key": "mine"])["bytes"] == 5000)
    }
  }

  @Test func `a load that stores its image does not join a load with no-store`() async throws {
    try await withOrigin { worker, origin in
      let url = JSON.string(origin.url("image/1.png?cache-control=max-age%3D60&hold=g"))
      let forgotten = worker.request("load", ["url": url, "cache": "no-store"])
      try await origin.held(at: "g")
      let kept = worker.request("load", ["url": url, "cache": "reload"])
      try await origin.held(2, at: "g")
      try await origin.release("g")
      for id in [forgotten, kept] { #expect(try await worker.response(to: id)["result"]["cache"] == "miss") }
      #expect(try await worker.call("query", ["url": url])["result"]["disk"] == true)
    }
  }

  @Test func `a data URL with no-store is not stored`() async throws {
    try await withOrigin(longLines: true) { worker, origin in
      let data = try await worker.load(origin.url("image/1.png"), ["deliver": "data"])["data"]
      let result = try await worker.load("data:image/png;base64,\(data.string ?? "")", ["cache": "no-store"])
      let found = try await worker.call("query", ["key": result["key"]])["result"]
      #expect(found["memory"] == false && found["disk"] == false)
    }
  }

  @Test func `cancel does not affect a background revalidation`() async throws {
    try await withOrigin { worker, origin in
      let old = "image/1.png?etag=v1&cache-control=max-age%3D0,stale-while-revalidate%3D600"
      try await origin.script("s", [old, old + "&hold=g"])
      _ = try await worker.load(origin.url("s"))
      #expect(try await worker.load(origin.url("s"))["cache"] == "stale")
      try await origin.held(at: "g")
      for way in [["url": .string(origin.url("s"))], ["all": true]] as [JSON] {
        let result = try await worker.call("cancel", way)["result"]
        #expect(result == ["cancelled": 0])
      }
      try await origin.release("g")
    }
  }

  @Test func `a load sent after clear does not get what a waiting load found before`() async throws {
    try await withOrigin { worker, origin in
      let url = JSON.string(origin.url("s"))
      let held = ["g1", "g2"].map { Self.stale + "&hold=" + $0 }
      try await origin.script("s", [Self.stale, held[0], held[0], held[1]])
      try await worker.call("load", ["url": url])
      for (filter, gate) in zip([[:], ["expired": true]] as [JSON], ["g1", "g2"]) {
        try await worker.call("pause")
        let before = worker.request("load", ["url": url])
        try await worker.call("stats")
        try await worker.call("clear", filter)
        let after = worker.request("load", ["url": url, "cache": "force-cache"])
        try await worker.call("resume")
        // Both requests must be at the origin before one is answered, since the first answer could serve the other
        // load.
        try await origin.held(2, at: gate)
        try await origin.release(gate)
        #expect(try await worker.response(to: after)["result"]["cache"] == "miss")
        #expect(try await worker.response(to: before)["result"]["bytes"] == 10_000)
      }
    }
  }
}
