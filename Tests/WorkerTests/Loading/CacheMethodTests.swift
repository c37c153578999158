import Foundation
import Testing

/// `clear`, `query`, `store`, `stats` and `configure`.
@Suite struct CacheMethodTests {
  @Test func `query reports the cache state without a transfer`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?bytes=10000&etag=v1&cache-control=max-age%3D60")
      let before = try await worker.call("query", ["url": .string(url)])["result"]
      #expect(before["memory"] == false && before["disk"] == false && before["fresh"] == false)
      let result = try await worker.load(url)
      for params in [["url": .string(url)], ["key": .string(url)]] as [JSON] {
        let found = try await worker.call("query", params)["result"]
        #expect(found["memory"] == true && found["disk"] == true && found["fresh"] == true)
        #expect(found["bytes"] == 10_000)
        #expect(found["path"] == result["path"])
        #expect(found["etag"] == "\"v1\"")
        #expect(found["storedAt"].string?.hasSuffix("Z") == true)
        #expect(found["expiresAt"].string?.hasSuffix("Z") == true)
        #expect(found["reason"].string?.isEmpty == false)
      }
      #expect(try await origin.counts()["requests"] == 1)
    }
  }

  @Test func `a stored image is served to later loads`() async throws {
    try await withOrigin { worker, origin in
      let source = try await worker.load(origin.url("image/7.png?bytes=5000"))
      let bytes = Data(try contents(of: source["path"].string))
      let url = "http://nobody.invalid/a.png"
      let byPath = try await worker.call("store", ["url": .string(url), "path": source["path"]])["result"]
      #expect(byPath["format"] == "png" && byPath["bytes"] == 5000)
      #expect(try contents(of: try await worker.load(url)["path"].string) == [UInt8](bytes))
      let data = JSON.string(bytes.base64EncodedString())
      let byData = try await worker.call("store", ["key": "mine", "data": data])["result"]
      #expect(byData["key"] == "mine")
      #expect(try await worker.load("http://nobody.invalid/b.png", ["key": "mine"])["bytes"] == 5000)
    }
  }

  @Test func `a running transfer does not replace an image that the host stores, unless the store fails`() async throws
  {
    try await withOrigin { worker, origin in
      let own = try await worker.load(origin.url("image/7.png?bytes=5000"))["path"]
      for (gate, content, expected) in [("a", ["path": own], 5000), ("b", ["data": "aGVsbG8="], 10_000)]
        as [(String, JSON, Int)]
      {
        let url = JSON.string(origin.url("image/8.png?bytes=10000&cache-control=max-age%3D60&hold=\(gate)"))
        let before = worker.request("load", ["url": url])
        try await origin.held(1, at: gate)
        let store = worker.request("store", content.merging(["url": url]))
        let after = worker.request("load", ["url": url])
        #expect(
          try await worker.response(to: store)["error"]["data"]["kind"] == (expected == 5000 ? .null : "notAnImage"))
        if expected == 5000 { #expect(try await worker.response(to: after)["result"]["bytes"] == 5000) }
        try await origin.release(gate)
        #expect(try await worker.response(to: before)["result"]["bytes"] == 10_000)
        #expect(try await worker.response(to: after)["result"]["bytes"] == .integer(expected))
        let last = try await worker.load(url.string!)
        #expect(last["bytes"] == .integer(expected) && last["cache"] == "memory")
      }
    }
  }

  @Test func `store echoes a data URL up to its comma`() async throws {
    try await withOrigin { worker, origin in
      let image = Data(try contents(of: try await worker.load(origin.url("image/1.png"))["path"].string))
      let encoded = image.base64EncodedString()
      let stored = try await worker.call(
        "store", ["url": .string("data:image/png;base64,\(encoded)"), "data": .string(encoded)])
      #expect(stored["result"]["url"] == "data:image/png;base64")
    }
  }

  @Test(arguments: ["0", "64M"]) func `a load sent directly after a store gets the stored image`(memoryLimit: String)
    async throws
  {
    try await withOrigin("--memory-limit", memoryLimit) { worker, origin in
      var paths: [JSON] = []
      for size in [5000, 6000] {
        paths.append(try await worker.load(origin.url("image/7.png?bytes=\(size)"))["path"])
      }
      for delivery in ["path", "data", "none"] {
        let url = JSON.string(origin.url("image/8.png?bytes=10000&cache-control=max-age%3D60&\(delivery)"))
        let load: JSON = ["url": url, "deliver": .string(delivery)]
        try await worker.call("load", load)
        // All lines are sent in one write.
        let lines = (0..<20).flatMap { number -> [JSON] in
          let store: JSON = ["url": url, "path": paths[number % 2]]
          return [
            requestLine("load", load, id: .string("\(delivery) before \(number)")),
            requestLine("store", store, id: .string("\(delivery) store \(number)")),
            requestLine("load", load, id: .string("\(delivery) after \(number)")),
          ]
        }
        worker.send(lines)
        for number in 0..<20 {
          let after = try await worker.response(to: .string("\(delivery) after \(number)"))
          #expect(after["result"]["bytes"] == .integer(number % 2 == 0 ? 5000 : 6000))
        }
      }
    }
  }

  @Test func `neither a waiting load, nor a retry, nor a failed store replaces a stored image`() async throws {
    try await withOrigin("--memory-limit", "0", "--max-per-host", "1", "--retries", "2") { worker, origin in
      let own = try await worker.load(origin.url("image/7.png?bytes=5000"))["path"]
      let image = "image/8.png?bytes=10000&cache-control=max-age%3D60"
      try await origin.script("tried", ["image/8.png?fail=1&status=500", image + "&hold=b"])
      let urls = ["tried", image + "&hold=a", image].map { JSON.string(origin.url($0)) }
      let ids = urls.map { worker.request("load", ["url": $0, "events": ["retrying"]]) }
      _ = try await worker.event("retrying", for: ids[0])
      try await origin.held(1, at: "a")
      for url in urls {
        #expect(
          try await worker.call("store", ["url": url, "data": "aGVsbG8="])["error"]["data"]["kind"] == "notAnImage")
        #expect(try await worker.call("store", ["url": url, "path": own])["result"]["bytes"] == 5000)
        #expect(try await worker.load(url.string!)["bytes"] == 5000)
      }
      for gate in ["a", "b"] { try await origin.release(gate) }
      for id in ids { #expect(try await worker.response(to: id)["result"]["bytes"] == 10_000) }
      for url in urls { #expect(try await worker.load(url.string!)["bytes"] == 5000) }
    }
  }

  @Test func `with verify always, the path of an altered file is never returned, even on a memory hit`() async throws {
    try await withOrigin("--verify", "always") { worker, origin in
      let url = origin.url("image/1.png?bytes=5000&cache-control=max-age%3D60")
      let path = try #require(try await worker.load(url)["path"].string)
      let content = try #require(FileManager.default.contents(atPath: path))
      var altered = content
      altered[4000] ^= 1
      try altered.write(to: URL(filePath: path))
      let again = try #require(try await worker.load(url)["path"].string)
      #expect(FileManager.default.contents(atPath: again) == content)
      #expect(try await origin.counts()["requests"] == 1, "memory has it")
    }
  }

  @Test func `a pipe in place of a file blocks nothing`() async throws {
    try await withOrigin("--memory-limit", "0", "--verify", "always") { worker, origin in
      let url = origin.url("image/1.png?cache-control=max-age%3D60")
      let path = try #require(try await worker.load(url)["path"].string)
      #expect(unlink(path) == 0 && mkfifo(path, 0o600) == 0)
      let again = try await worker.load(url, ["deliver": "data"])
      #expect(again["cache"] == "miss")
    }
  }

  @Test func `an empty key or prefix is refused`() async throws {
    try await withWorker { worker in
      for name in ["key", "prefix"] {
        let error = try await worker.call("clear", .object([name: ""]))["error"]
        #expect(error["code"] == -32602 && error["data"]["member"] == .string(name))
      }
    }
  }

  @Test func `store refuses content that is not an image, and a missing file`() async throws {
    try await withWorker { worker in
      let noImage = try await worker.call("store", ["key": "a", "data": "aGVsbG8="])["error"]
      #expect(noImage["data"]["kind"] == "notAnImage")
      let noFile = try await worker.call("store", ["key": "a", "path": "/nowhere/a.png"])["error"]
      #expect(noFile["data"]["kind"] == "io")
      for params in [["key": "a"], ["key": "a", "data": "aGVsbG8=", "path": "/a"], ["data": "aGVsbG8="]] as [JSON] {
        #expect(try await worker.call("store", params)["error"]["code"] == -32602)
      }
      #expect(try await worker.call("store", ["key": "a", "data": "?"])["error"]["data"]["member"] == "data")
    }
  }

  @Test(arguments: [1000, 1_000_000]) func `store enforces maxBytes like a load`(size: Int) async throws {
    try await withOrigin("--max-bytes", "\(size - 1)") { worker, origin in
      let source = try await worker.load(origin.url("image/7.png?bytes=\(size)"), ["maxBytes": .integer(size)])
      let error = try await worker.call("store", ["key": "a", "path": source["path"]])["error"]
      #expect(error["data"]["kind"] == "tooLarge")
    }
  }

  @Test(
    arguments: [
      ([:], 3), (["tier": "all"], 3), (["prefix": "http://127.0.0.1"], 3), (["host": "127.0.0.1"], 3),
      (["host": "127.0.0.2"], 0),
      (["olderThanSeconds": 3600], 0), (["expired": true], 1), (["key": "nothing"], 0),
    ] as [(JSON, Int)])
  func `clear removes the entries that match its filter`(params: JSON, count: Int) async throws {
    try await withOrigin { worker, origin in
      for age in [60, 60, 0] {
        let number = try await origin.counts()["requests"].integer ?? 0
        _ = try await worker.load(origin.url("image/\(number).png?bytes=1000&cache-control=max-age%3D\(age)"))
      }
      let result = try await worker.call("clear", params)["result"]
      #expect(result["removed"] == .integer(count))
      // The size on disk, which is allocated in blocks.
      let bytes = try #require(result["bytes"].integer)
      #expect(count == 0 ? bytes == 0 : bytes >= count * 1000)
      let stats = try await worker.call("stats")["result"]
      #expect(stats["disk"]["entries"] == .integer(3 - count))
      #expect(stats["memory"]["entries"] == .integer(3 - count))
    }
  }

  @Test func `clear can be limited to one URL and one tier`() async throws {
    try await withOrigin { worker, origin in
      let urls = (1...2).map { origin.url("image/\($0).png?cache-control=max-age%3D60") }
      for url in urls { _ = try await worker.load(url) }
      #expect(try await worker.call("clear", ["url": .string(urls[0])])["result"]["removed"] == 1)
      #expect(try await worker.call("clear", ["tier": "memory"])["result"]["removed"] == 1)
      #expect(try await worker.load(urls[1])["cache"] == "disk")
      #expect(try await worker.load(urls[0])["cache"] == "miss")
    }
  }

  @Test func `after clear of failures, a failed URL is requested again`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?fail=1&status=404")
      _ = try await worker.failure(url)
      #expect(try await worker.failure(url)["data"]["kind"] == "recentlyFailed")
      try await worker.call("clear", ["failures": true])
      #expect(try await worker.load(url)["format"] == "png")
    }
  }

  @Test func `clear accepts at most one filter`() async throws {
    try await withWorker { worker in
      for params in [
        ["url": "http://a/", "host": "a"], ["tier": "attic"], ["expired": false], ["host": "a#b"], ["host": "a:"],
        ["host": "/a"], ["host": "\\a"], ["host": "a/.."], ["host": "a/"], ["host": " a"], ["host": "a?"],
        ["host": "u@a"],
      ] as [JSON] {
        let response = try await worker.call("clear", params)
        #expect(response["error"]["code"] == -32602)
      }
    }
  }

  @Test func `a delivered path stays valid after clear`() async throws {
    try await withOrigin { worker, origin in
      let result = try await worker.load(origin.url("image/1.png?bytes=10000&cache-control=max-age%3D60"))
      try await worker.call("clear")
      #expect(try contents(of: result["path"].string).count == 10_000)
    }
  }

  @Test func `the disk limit is enforced while images arrive`() async throws {
    try await withOrigin("--disk-limit", "300K", "--memory-limit", "0") { worker, origin in
      let ids = (1...100).map { number in
        let url = origin.url("image/\(number).png?bytes=10000&cache-control=max-age%3D60")
        return worker.request("load", ["url": .string(url), "deliver": "none"])
      }
      for id in ids { _ = try await worker.response(to: id) }
      let disk = try await worker.call("stats")["result"]["disk"]
      #expect((disk["bytes"].integer ?? .max) <= 300 << 10)
      #expect((disk["evicted"].integer ?? 0) >= 70)
    }
  }

  @Test func `stats count requests, transfers and cache hits`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?bytes=10000&cache-control=max-age%3D60")
      for _ in 0..<3 { _ = try await worker.load(url) }
      _ = try await worker.failure(origin.url("image/1.png?status=404"))
      let stats = try await worker.call("stats")["result"]
      #expect(stats["transfers"]["started"] == 2)
      #expect(stats["transfers"]["succeeded"] == 1)
      #expect(stats["transfers"]["failed"] == 1)
      #expect(stats["cache"]["memoryHits"] == 2)
      #expect(stats["memory"]["entries"] == 1)
      #expect(stats["memory"]["bytes"] == 10_000)
      #expect(stats["disk"]["entries"] == 1)
      #expect(stats["requests"]["failed"] == 1)
      #expect(stats["queue"]["active"] == 0)
      #expect(stats["queue"]["waiting"].names == ["lowest", "low", "normal", "high", "highest"])
      #expect((stats["rssBytes"].integer ?? 0) > 1 << 20)
    }
  }

  @Test func `stats list the active origins`() async throws {
    try await withOrigin("--max-per-host", "2") { worker, origin in
      let ids = (1...5).map { worker.request("load", ["url": .string(origin.url("image/\($0).png?hold=a"))]) }
      try await origin.held(2, at: "a")
      let stats = try await worker.call("stats")["result"]
      #expect(stats["origins"][0]["origin"].string == origin.base)
      #expect(stats["origins"][0]["active"] == 2)
      #expect(stats["origins"][0]["waiting"] == 3)
      #expect(stats["queue"]["waiting"]["normal"] == 3)
      try await origin.release("a")
      for id in ids { _ = try await worker.response(to: id) }
    }
  }

  @Test func `configure returns the current options and changes the given ones`() async throws {
    try await withWorker("--max-concurrent", "8") { worker in
      let before = try await worker.call("configure")["result"]
      #expect(before["maxConcurrent"] == 8)
      #expect(before["maxAgeMs"] == 604_800_000)
      let after = try await worker.call("configure", ["memoryLimit": 1000, "timeoutMs": 500])["result"]
      #expect(after["memoryLimit"] == 1000 && after["timeoutMs"] == 500 && after["maxConcurrent"] == 8)
      #expect(try await worker.call("configure", ["cacheDir": "/tmp"])["error"]["data"]["member"] == "cacheDir")
      #expect(try await worker.call("configure", ["maxConcurrent": 0])["error"]["data"]["member"] == "maxConcurrent")
    }
  }

  @Test func `clear by URL removes the entry that a load of an equivalent URL would find`() async throws {
    try await withOrigin("--key-ignore-query", "x-signature") { worker, origin in
      let base = origin.url("image/1.png?cache-control=max-age=1000")
      for (stored, cleared) in [
        ("\(base)&x-signature=1", "\(base)&x-signature=2"), ("\(base)#a", base), (base, "\(base)#a"),
      ] {
        _ = try await worker.load(stored)
        let result = try await worker.call("clear", ["url": .string(cleared)])["result"]
        #expect(result["removed"] == 1)
        #expect(try await worker.load(cleared)["cache"] == "miss")
        try await worker.call("clear")
      }
    }
  }
}
