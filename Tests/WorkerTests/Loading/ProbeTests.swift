import Foundation
import Testing

/// `probe` and `want`, observed at the origin and the host.
@Suite struct ProbeTests {
  /// A body that is large enough for its end not to be received with its header.
  private static let large = "bytes=3000000&etag=a&cache-control=max-age=60"

  @Test(arguments: ["webp", "avif", "tiff", "heic"])
  func `a probe ends with the first bytes, and a load continues from there`(format: String) async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/5.\(format)?width=70&height=50&\(Self.large)")
      let probed = try await worker.call("probe", ["url": .string(url)])["result"]
      #expect(probed["format"] == .string(format))
      #expect(probed["width"] == 70 && probed["height"] == 50)
      #expect(probed["bytes"] == 3_000_000)
      #expect(probed["etag"] == "\"a\"")
      #expect(probed["cache"] == "miss")
      let received = try #require(probed["received"].integer)

      let loaded = try await worker.load(url)
      #expect(loaded["bytes"] == 3_000_000 && loaded["width"] == 70)
      let log = try await origin.log("image/5")
      #expect(log.map { $0["status"] } == [206, 206])
      #expect(received == 32_768)
      #expect(OriginProcess.header("range", of: log[0]) == ["bytes=0-32767"])
      #expect(OriginProcess.header("range", of: log[1]) == ["bytes=32768-"])
      #expect(log.map { $0["connection"] } == [1, 1], "the probe leaves its connection open")

      let again = try await worker.call("probe", ["url": .string(url)])["result"]
      #expect(again["cache"] == "memory" || again["cache"] == "disk")
      #expect(again["received"] == .null && again["bytes"] == 3_000_000 && again["etag"] == "\"a\"")
      #expect(try await origin.log("image/5").count == 2)
    }
  }

  @Test func `a repeated probe receives no further body`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/5.webp?\(Self.large)")
      let first = try await worker.call("probe", ["url": .string(url)])["result"]
      let second = try await worker.call("probe", ["url": .string(url)])["result"]
      #expect(second["received"] == first["received"] && second["bytes"] == 3_000_000)
      #expect(try await origin.log("image/5").map { $0["status"] } == [206, 206])
    }
  }

  @Test func `a server that ignores ranges sends the whole, one that answers another range is asked for it`()
    async throws
  {
    try await withOrigin { worker, origin in
      let whole = "image/5.webp?ranges=off&\(Self.large)"
      try await origin.script("whole", [whole])
      try await origin.script("other", ["\(whole)&status=206&header=content-range:bytes%201-3000000/3000001", whole])
      try await origin.script("unsatisfied", ["empty?status=416", whole])
      for (target, statuses) in [("whole", [200]), ("other", [206, 200]), ("unsatisfied", [416, 200])] {
        let probed = try await worker.call("probe", ["url": .string(origin.url(target))])["result"]
        #expect(probed["width"] == 32 && probed["bytes"] == 3_000_000)
        #expect(try await origin.log(target).map { $0["status"].integer } == statuses)
      }
    }
  }

  @Test func `a probe of an image that is shorter than its range brings the whole image`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/5.png?etag=a&cache-control=max-age=60")
      let probed = try await worker.call("probe", ["url": .string(url)])["result"]
      #expect(probed["width"] == 32 && probed["received"] == .null)
      #expect(try await worker.load(url)["cache"] == "memory")
      #expect(try await origin.log("image/5").map { $0["status"] } == [206])
    }
  }

  @Test func `an image that is too large is one for a probe, too`() async throws {
    try await withOrigin("--max-bytes", "1M") { worker, origin in
      let url = origin.url("image/5.webp?\(Self.large)")
      let answer = try await worker.call("probe", ["url": .string(url)])
      #expect(answer["error"]["data"]["kind"] == "tooLarge")
    }
  }

  @Test func `a load that joins the transfer of a probe goes on from its range`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/5.webp?hold=start&\(Self.large)")
      let probe = worker.request("probe", ["url": .string(url)])
      try await origin.held(at: "start")
      let load = worker.request("load", ["url": .string(url)])
      _ = try await worker.call("stats")
      try await origin.release("start")
      #expect(try await worker.response(to: probe)["result"]["received"] == 32_768)
      #expect(try await worker.response(to: load)["result"]["bytes"] == 3_000_000)
      let log = try await origin.log("image/5")
      #expect(log.map { OriginProcess.header("range", of: $0) } == [["bytes=0-32767"], ["bytes=32768-"]])
    }
  }

  @Test func `at an origin with a rate a probe makes one request`() async throws {
    try await withOrigin("--rate", "1000/s") { worker, origin in
      let url = origin.url("image/5.webp?\(Self.large)")
      let probed = try await worker.call("probe", ["url": .string(url)])["result"]
      #expect(probed["width"] == 32)
      #expect(try await origin.log("image/5").map { $0["status"] } == [200])
    }
  }

  @Test func `a probe of an image without a validator leaves nothing to resume`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/5.webp?bytes=3000000")
      let probed = try await worker.call("probe", ["url": .string(url)])["result"]
      #expect(probed["width"] == 32)
      #expect(try await worker.load(url)["bytes"] == 3_000_000)
      #expect(try await origin.log("image/5").map { $0["status"] } == [206, 200])
    }
  }

  @Test func `a probe leaves the transfer to a load that shares it`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/5.webp?hold=start&\(Self.large)")
      let load = worker.request("load", ["url": .string(url)])
      try await origin.held(at: "start")
      let probe = worker.request("probe", ["url": .string(url)])
      _ = try await worker.call("stats")
      try await origin.release("start")
      #expect(try await worker.response(to: probe)["result"]["width"] == 32)
      #expect(try await worker.response(to: load)["result"]["bytes"] == 3_000_000)
      #expect(try await origin.log("image/5").count == 1)
    }
  }

  @Test func `a probe that joins a transfer whose header has arrived is answered at once`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/5.webp?hold=rest@200000&\(Self.large)")
      let load = worker.request("load", ["url": .string(url), "want": ["minWidth": 10], "events": ["progress"]])
      try await origin.held(at: "rest")
      #expect(try await worker.call("probe", ["url": .string(url)])["result"]["width"] == 32)
      let unwanted = try await worker.call("load", ["url": .string(url), "want": ["minWidth": 33]])
      #expect(unwanted["error"]["data"]["kind"] == "unwanted")
      try await origin.release("rest")
      #expect(try await worker.response(to: load)["result"]["bytes"] == 3_000_000)
      #expect(try await origin.log("image/5").count == 1)
    }
  }

  @Test func `a header that comes after other data is waited for`() async throws {
    // The test's JPEG and PNG have their padding before the pixels.
    try await withOrigin { worker, origin in
      for format in ["jpg", "png", "gif"] {
        let url = origin.url("image/5.\(format)?\(Self.large)")
        let probed = try await worker.call("probe", ["url": .string(url)])["result"]
        #expect(probed["width"] == 32 && probed["bytes"] == 3_000_000)
        let loaded = try await worker.load(url)
        #expect(loaded["cache"] != "miss")
      }
    }
  }

  @Test func `a probe of something else fails like a load`() async throws {
    try await withOrigin { worker, origin in
      for (target, kind) in [("html", "notAnImage"), ("image/1.png?status=404", "http"), ("empty", "truncated")] {
        let answer = try await worker.call("probe", ["url": .string(origin.url(target))])
        #expect(answer["error"]["data"]["kind"] == .string(kind))
      }
      let refused = try await worker.call("probe", ["url": "http://127.0.0.1/", "saveTo": "/tmp/x"])
      #expect(refused["error"]["data"]["member"] == "saveTo")
    }
  }

  @Test(
    arguments: [
      ("webp", #"{"minWidth": 33}"#, "the image is 32 pixels wide, and minWidth is 33", ["limit": 33]),
      ("webp", #"{"formats": ["png", "jpeg"]}"#, "the format is webp, and png, jpeg is wanted", ["format": "webp"]),
      ("avif", #"{"maxAspectRatio": 1.2}"#, "the image is 32 x 24 pixels, and maxAspectRatio is 1.2", ["limit": 1.2]),
      // Its header is known with the complete body only.
      ("gif", #"{"minHeight": 25}"#, "the image is 24 pixels high, and minHeight is 25", ["height": 24]),
    ] as [(String, String, String, JSON)])
  func `an unwanted image ends its load`(format: String, want: String, message: String, data: JSON) async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/5.\(format)?\(Self.large)")
      let want = try JSON(parsing: Array(want.utf8))
      let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
      let params: JSON = ["url": .string(url), "want": want, "saveTo": .string(folder)]
      for _ in 1...2 {
        let error = try await worker.call("load", params)["error"]
        #expect(error["code"] == 4008 && error["data"]["kind"] == "unwanted")
        #expect(error["message"] == .string(message))
        #expect(error["data"]["wanted"].string == want.names.first)
        for name in data.names { #expect(error["data"][name] == data[name]) }
      }
      #expect(!FileManager.default.fileExists(atPath: folder))
      let prefetched = try await worker.call("prefetch", ["urls": [.string(url)], "want": want])["result"]
      #expect(prefetched["errors"][0]["kind"] == "unwanted" && prefetched["failed"] == 1)
      // Whoever wants it gets it.
      #expect(try await worker.load(url)["width"] == 32)
      // A cached original and its variant are judged, too.
      let small: JSON = ["url": .string(url), "want": want, "transform": ["width": 8]]
      if format == "webp" {
        #expect(
          try await worker.call("load", ["url": .string(url), "transform": ["width": 8]])["result"]["width"] == 8)
      }
      #expect(try await worker.call("load", small)["error"]["data"]["kind"] == "unwanted")
    }
  }

  @Test(arguments: [
    (#"{"minWidth": 0}"#, "want.minWidth", "want.minWidth must be an integer from 1 to 2147483647"),
    (#"{"maxAspectRatio": 0.5}"#, "want.maxAspectRatio", "want.maxAspectRatio must be a number from 1.0 to 1000000.0"),
    (#"{"formats": []}"#, "want.formats", "want.formats must be an array of one or more of jpeg, png"),
    (#"{"minwidth": 1}"#, "want.minwidth", "unknown parameter want.minwidth (did you mean minWidth?)"),
    ("[]", "want", "want must be an object (members: minWidth, minHeight, "),
  ]) func `an invalid wish is refused`(want: String, member: String, message: String) async throws {
    try await withWorker { worker in
      for (method, target) in [("load", "url"), ("prefetch", "urls")] {
        let url: JSON = method == "load" ? "http://127.0.0.1:1/" : ["http://127.0.0.1:1/"]
        let error = try await worker.call(method, [target: url, "want": try JSON(parsing: Array(want.utf8))])["error"]
        #expect(error["data"]["member"] == .string(member))
        #expect(error["message"].string?.hasPrefix(message) == true)
      }
    }
  }
}
