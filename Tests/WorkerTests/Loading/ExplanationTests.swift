import Foundation
import Testing

/// Information about the cache: `kept` in a result, the explanations of `query`, the counters of `stats`.
@Suite struct ExplanationTests {
  // MARK: - kept

  @Test(arguments: [200_000, 600_000])
  func `an image larger than a tenth of the disk limit is delivered with kept false`(
    size: Int
  ) async throws {
    try await withOrigin("--disk-limit", "1M", "--memory-limit", "0", longLines: true) { worker, origin in
      let url = origin.url("image/1.png?bytes=\(size)&cache-control=max-age%3D60")
      for number in 1...2 {
        let result = try await worker.load(url)
        #expect(result["cache"] == "miss" && result["kept"] == false)
        #expect(try contents(of: result["path"].string).count == size)
        #expect(try await origin.counts()["requests"] == .integer(number))
      }
      for delivery in ["data", "none"] {
        #expect(try await worker.load(url, ["deliver": .string(delivery)])["kept"] == false)
      }
      #expect(try await worker.call("query", ["url": .string(url)])["result"]["disk"] == false)
      #expect(try await worker.call("stats")["result"]["disk"]["bytes"] == 0)
    }
  }

  @Test(arguments: [50_000, 600_000])
  func `kept is true if the image is on disk or was not meant for it`(size: Int) async throws {
    try await withOrigin("--memory-limit", "0") { worker, origin in
      let cases: [(query: String, params: JSON)] = [
        ("&cache-control=max-age%3D60", [:]), ("&cache-control=no-store", [:]), ("", ["store": "memory"]),
        ("", ["store": "none"]), ("", ["cache": "no-store"]),
      ]
      for (number, load) in cases.enumerated() {
        let url = origin.url("image/\(number).png?bytes=\(size)\(load.query)")
        let result = try await worker.load(url, load.params)
        #expect(result["kept"] == true, "\(load)")
      }
    }
  }

  @Test func `if two loads share a transfer, only the load that wanted a disk copy has kept false`() async throws {
    try await withOrigin("--disk-limit", "1M") { worker, origin in
      let url = JSON.string(origin.url("image/1.png?bytes=200000&cache-control=max-age%3D60&hold=g"))
      let ids = ["all", "memory"].map { worker.request("load", ["url": url, "store": .string($0)]) }
      try await origin.held(at: "g")
      try await origin.release("g")
      #expect(try await worker.response(to: ids[0])["result"]["kept"] == false)
      let other = try await worker.response(to: ids[1])["result"]
      #expect(other["kept"] == true)
      // The image is still in memory.
      let again = try await worker.load(url.string ?? "")
      #expect(again["cache"] == "memory" && again["kept"] == true)
    }
  }

  @Test func `kept is false for a variant that the disk has no room for, also if its original is in memory`()
    async throws
  {
    try await withOrigin("--disk-limit", "1M") { worker, origin in
      let url = origin.url("image/1.png?bytes=200000&cache-control=max-age%3D60")
      #expect(try await worker.load(url)["kept"] == false)
      let large: JSON = ["width": 3000, "height": 3000, "enlarge": true, "format": "jpeg", "quality": 100]
      let variant = try await worker.load(url, ["transform": large])
      #expect(variant["cache"] == "memory" && variant["bytes"].integer ?? 0 > 105_000)
      #expect(variant["kept"] == false && variant["path"].string?.hasPrefix(worker.directory.path) == false)
      #expect(try await worker.load(url, ["transform": large, "store": "memory"])["kept"] == true)
      let small = try await worker.load(url, ["transform": ["width": 8]])
      #expect(small["kept"] == true && small["path"].string?.hasPrefix(worker.directory.path) == true)
    }
  }

  @Test(arguments: [200_000, 600_000]) func `store reports kept false, and fails if memory has no space either`(
    size: Int
  )
    async throws
  {
    try await withOrigin("--disk-limit", "1M") { worker, origin in
      let path = try await worker.load(origin.url("image/1.png?bytes=\(size)"))["path"]
      let stored = try await worker.call("store", ["key": "mine", "path": path])["result"]
      #expect(stored["cache"] == "memory" && stored["kept"] == false)
      #expect(try await worker.load("http://nobody.invalid/", ["key": "mine"])["cache"] == "memory")
      try await worker.call("configure", ["memoryLimit": 1_000_000])
      let refused = try await worker.call("store", ["key": "mine", "path": path])["error"]
      #expect(refused["data"]["kind"] == "diskFull")
    }
  }

  // MARK: - query

  @Test func `query reports the last use and the number of uses`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?bytes=10000&cache-control=max-age%3D60")
      _ = try await worker.load(url, ["deliver": "none"])
      let before = try await worker.call("query", ["url": .string(url)])["result"]
      #expect(before["uses"] == 0 && !before.names.contains("usedAt"))
      for delivery in ["path", "path", "data"] { _ = try await worker.load(url, ["deliver": .string(delivery)]) }
      let found = try await worker.call("query", ["url": .string(url)])["result"]
      #expect(found["uses"] == 3)
      #expect((found["usedAt"].string ?? "") >= (found["storedAt"].string ?? "?"))
      #expect(found["directory"].string == worker.directory.appending("cache"))
    }
  }

  @Test func `query lists the request fields that select among the stored responses`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?cache-control=max-age%3D60&vary=accept")
      for accept in ["image/png", "image/webp"] {
        _ = try await worker.load(url, ["headers": ["Accept": .string(accept)]])
      }
      let found = try await worker.call("query", ["url": .string(url)])["result"]
      #expect(found["variants"] == 2)
      #expect(found["varying"] == ["accept"])
    }
  }

  @Test func `query names the read-only directory that has the image`() async throws {
    try await withOrigin { filling, origin in
      let url = origin.url("image/1.png?bytes=10000&cache-control=max-age%3D60")
      let first = try await filling.load(url)
      _ = try await filling.load(url)
      #expect(try await filling.end() == .exit(0))
      let other = try WorkerProcess([])
      #expect(try await other.end() == .exit(0))
      let (empty, readOnly) = (other.directory.appending("cache"), filling.directory.appending("cache"))
      let worker = try WorkerProcess(["--read-only-cache", empty, "--read-only-cache", readOnly])
      let found = try await worker.call("query", ["url": .string(url)])["result"]
      #expect(found["disk"] == true && found["path"] == first["path"])
      #expect(found["directory"].string == readOnly)
      #expect(found["uses"] == 1)
      #expect(try await worker.end() == .exit(0))
    }
  }

  @Test func `query reports the failure and the time until which loads fail with recentlyFailed`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?status=404")
      _ = try await worker.failure(url)
      let found = try await worker.call("query", ["url": .string(url)])["result"]
      #expect(found["failure"] == "http")
      #expect(found["failedUntil"].string?.hasSuffix("Z") == true)
      try await worker.call("clear", ["failures": true])
      let cleared = try await worker.call("query", ["url": .string(url)])["result"]
      #expect(Set(cleared.names) == ["memory", "disk", "fresh", "reason"])
    }
  }

  @Test func `query does not count as a use`() async throws {
    try await withOrigin("--memory-limit", "100K") { worker, origin in
      let url = origin.url("image/1.png?bytes=10000&cache-control=max-age%3D60")
      _ = try await worker.load(url)
      for _ in 0..<3 { try await worker.call("query", ["url": .string(url)]) }
      for number in 2...20 {
        _ = try await worker.load(origin.url("image/\(number).png?bytes=10000&cache-control=max-age%3D60"))
      }
      let found = try await worker.call("query", ["url": .string(url)])["result"]
      #expect(found["memory"] == false && found["disk"] == true && found["uses"] == 0)
    }
  }

  // MARK: - stats

  @Test func `stats report the saved bytes, and the evictions by reason`() async throws {
    try await withOrigin("--memory-limit", "100K", "--disk-limit", "160K") { worker, origin in
      let url = origin.url("image/1.png?bytes=10000&etag=a&cache-control=max-age%3D60")
      _ = try await worker.load(url, ["deliver": "none"])
      _ = try await worker.load(url, ["deliver": "none"])
      #expect(try await worker.load(url, ["deliver": "none", "cache": "no-cache"])["cache"] == "revalidated")
      for number in 2...20 {
        let other = origin.url("image/\(number).png?bytes=10000&cache-control=max-age%3D60")
        _ = try await worker.load(other, ["deliver": "none"])
      }
      let stats = try await worker.call("stats")["result"]
      #expect(stats["cache"]["bytesSaved"] == 20_000)
      #expect(stats["memory"]["evicted"].integer == 20 - (stats["memory"]["entries"].integer ?? 0))
      let evicted = stats["disk"]["evicted"]
      #expect(evicted.integer == 20 - (stats["disk"]["entries"].integer ?? 0))
      #expect(stats["disk"]["evictedFor"] == ["limit": evicted, "freeSpace": 0, "diskFull": 0])
    }
  }

  @Test func `below the minimum of free space, the disk tier shrinks and counts the reason`() async throws {
    try await withOrigin("--min-free", "0%") { worker, origin in
      for number in 1...5 {
        let url = origin.url("image/\(number).png?bytes=10000&cache-control=max-age%3D60")
        _ = try await worker.load(url, ["deliver": "none"])
      }
      try await worker.call("configure", ["minFree": 100])
      let disk = try await worker.call("stats")["result"]["disk"]
      #expect(disk["entries"] == 0 && disk["evictedFor"]["freeSpace"] == 5)
    }
  }

  @Test func `a scan does not evict images in use from memory`() async throws {
    try await withOrigin("--memory-limit", "200K", "--disk-limit", "0") { worker, origin in
      let used = (1...10).map { origin.url("image/\($0).png?bytes=10000&cache-control=max-age%3D60") }
      for _ in 0..<2 { for url in used { _ = try await worker.load(url, ["deliver": "none"]) } }
      for number in 100..<150 {
        let url = origin.url("image/\(number).png?bytes=10000&cache-control=max-age%3D60")
        _ = try await worker.load(url, ["deliver": "none"])
      }
      for url in used { #expect(try await worker.load(url, ["deliver": "none"])["cache"] == "memory") }
    }
  }
}
