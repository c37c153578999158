import Foundation
import Testing

/// The members of a `load` result, and the effects of the parameters on them.
@Suite struct LoadTests {
  @Test func `a result has exactly the members that apply`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/17.png?bytes=10000")
      let result = try await worker.load(url)
      #expect(
        result.names == [
          "url", "key", "cache", "bytes", "mediaType", "format", "width", "height", "path", "expiresAt", "kept",
          "timing",
        ])
      #expect(result["url"].string == url)
      #expect(result["key"].string == url)
      #expect(result["cache"] == "miss")
      #expect(result["bytes"] == 10_000)
      #expect(result["mediaType"] == "image/png")
      #expect(result["format"] == "png")
      #expect(result["width"] == 32)
      #expect(result["height"] == 24)
      #expect(
        result["timing"].names == [
          "queuedMs", "lookupMs", "waitMs", "connectMs", "requestMs", "bodyMs", "storeMs", "deliverMs", "firstByteMs",
          "totalMs",
        ])
      let path = try #require(result["path"].string)
      #expect(path.hasPrefix("/") && path.hasSuffix(".png"))
      #expect(try contents(of: path).count == 10_000)
    }
  }

  @Test(arguments: ["png", "jpg", "gif", "webp", "bmp", "ico", "tiff", "avif", "heic", "jxl"])
  func `the format and the size of an image are detected from its content`(fileExtension: String) async throws {
    try await withOrigin { worker, origin in
      let target = "image/1.\(fileExtension)?width=40&height=30&bytes=6000&type=text/plain"
      let result = try await worker.load(origin.url(target))
      #expect(result["format"].string == (fileExtension == "jpg" ? "jpeg" : fileExtension))
      #expect(result["width"] == 40)
      #expect(result["height"] == 30)
      #expect(result["path"].string?.hasSuffix(".\(fileExtension)") == true)
      #expect(result["mediaType"].string?.hasPrefix("image/") == true)
    }
  }

  @Test func `an SVG is detected`() async throws {
    try await withOrigin { worker, origin in
      let result = try await worker.load(origin.url("image/1.svg"))
      #expect(result["format"] == "svg")
      #expect(result["mediaType"] == "image/svg+xml")
      #expect(result["width"].integer ?? 0 > 0 && result["height"].integer ?? 0 > 0)
    }
  }

  @Test func `a result has frames and orientation if they are not 1`() async throws {
    try await withOrigin { worker, origin in
      #expect(try await worker.load(origin.url("image/1.gif?frames=3"))["frames"] == 3)
      #expect(try await worker.load(origin.url("image/1.webp?frames=4"))["frames"] == 4)
      let refused = try await worker.failure(origin.url("image/2.gif?frames=3"), ["want": ["maxFrames": 2]])["data"]
      #expect(refused["wanted"] == "maxFrames" && refused["frames"] == 3 && refused["limit"] == 2)
      let turned = try await worker.load(origin.url("image/1.jpg?orientation=6"))
      #expect(turned["orientation"] == 6)
      #expect(turned["width"] == 32 && turned["height"] == 24 && turned["upright"] == ["width": 24, "height": 32])
      let probed = try await worker.call("probe", ["url": .string(origin.url("image/2.jpg?orientation=6"))])["result"]
      #expect(probed["width"] == 32 && probed["upright"] == ["width": 24, "height": 32])
      #expect(turned["width"] == 32)
    }
  }

  // MARK: - deliver, saveTo, validate, digest

  @Test func `deliver data puts the bytes into the response`() async throws {
    try await withOrigin(longLines: true) { worker, origin in
      let url = origin.url("image/1.png?bytes=100000")
      let result = try await worker.load(url, ["deliver": "data"])
      #expect(result["path"] == .null)
      let data = try #require(Data(base64Encoded: result["data"].string ?? ""))
      let file = try contents(of: try await worker.load(url)["path"].string)
      #expect([UInt8](data) == file)
    }
  }

  @Test func `deliver none gives neither a path nor data`() async throws {
    try await withOrigin { worker, origin in
      let result = try await worker.load(origin.url("image/1.png"), ["deliver": "none"])
      #expect(result["path"] == .null && result["data"] == .null)
      #expect(result["format"] == "png")
    }
  }

  @Test func `saveTo writes a copy of the image to a path`() async throws {
    try await withOrigin { worker, origin in
      let place = worker.directory.appending("copy.png")
      for _ in 0..<2 {
        let result = try await worker.load(origin.url("image/1.png"), ["saveTo": .string(place)])
        #expect(try contents(of: place) == contents(of: result["path"].string))
        try FileManager.default.removeItem(atPath: place)
      }
    }
  }

  @Test func `a failed load writes nothing to the path of saveTo`() async throws {
    try await withOrigin { worker, origin in
      let place = worker.directory.appending("copy.png")
      for target in ["image/1.png?bytes=10000&truncate=5000", "html", "image/1.png?status=404"] {
        _ = try await worker.failure(origin.url(target), ["saveTo": .string(place)])
        #expect(!FileManager.default.fileExists(atPath: place))
      }
    }
  }

  @Test func `an unwritable path of saveTo is an io error`() async throws {
    try await withOrigin { worker, origin in
      let place = worker.directory.appending("no/such/folder/copy.png")
      let error = try await worker.failure(origin.url("image/1.png"), ["saveTo": .string(place)])
      #expect(error["data"]["kind"] == "io")
    }
  }

  @Test func `saveTo replaces only regular files`() async throws {
    try await withOrigin { worker, origin in
      let place = worker.directory.appending("pipe")
      #expect(mkfifo(place, 0o600) == 0)
      let error = try await worker.failure(origin.url("image/1.png"), ["saveTo": .string(place)])
      #expect(error["data"]["kind"] == "io")
      #expect(try FileManager.default.attributesOfItem(atPath: place)[.type] as? FileAttributeType == .typeUnknown)
    }
  }

  @Test func `an overlong or empty media type is ignored`() async throws {
    try await withOrigin { worker, origin in
      let long = "data:a/" + String(repeating: "b", count: 100_000) + ",x"
      let result = try await worker.load(long, ["validate": "none"])
      #expect(result["mediaType"] == "application/octet-stream")
      #expect(try await worker.load("data:a/b,y", ["validate": "none"])["mediaType"] == "a/b")
    }
  }

  @Test func `validate none accepts any content and returns the response`() async throws {
    try await withOrigin { worker, origin in
      let result = try await worker.load(origin.url("html?cookie=a=1&cookie=b=2&vary=Accept"), ["validate": "none"])
      #expect(result["format"] == .null && result["width"] == .null)
      #expect(result["response"]["status"] == 200)
      #expect(result["response"]["headers"]["content-type"] == "text/html; charset=utf-8")
      #expect(result["response"]["headers"]["set-cookie"] == ["a=1", "b=2"])
      #expect(result["response"]["headers"]["vary"] == "Accept")
      #expect(try contents(of: result["path"].string).starts(with: "<!DOCTYPE".utf8))
    }
  }

  @Test func `the response head is returned on request, with repeated fields joined`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?header=X-Twice:a&header=X-Twice:b")
      let result = try await worker.load(url, ["response": true])
      #expect(result["response"]["headers"]["x-twice"] == "a, b")
      let again = try await worker.load(url, ["response": true])
      #expect(again["response"]["headers"]["x-twice"] == "a, b")
      let error = try await worker.failure(
        origin.url("image/1.png?status=418&header=X-Tea:pot"), ["response": true])
      #expect(error["data"]["response"]["headers"]["x-tea"] == "pot")
    }
  }

  @Test func `the content must match the digest`() async throws {
    try await withOrigin { worker, origin in
      // The digest of an empty body.
      let empty: JSON = "sha256-e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
      let result = try await worker.load(origin.url("empty"), ["digest": empty, "validate": "none"])
      #expect(result["bytes"] == 0)
      let error = try await worker.failure(origin.url("image/1.png"), ["digest": empty])
      #expect(error["data"]["kind"] == "digestMismatch")
      #expect(error["code"] == 4007)
      _ = try await worker.load(origin.url("image/1.png"))
    }
  }

  // MARK: - The request

  @Test func `header fields are sent as given`() async throws {
    try await withOrigin(
      "--user-agent", "tests/1", "--header", "X-Always: yes", "--header", "X-Twice: 1", "--header", "X-Twice: 2",
      "--header", "X-Own: usual"
    ) { worker, origin in
      let headers: JSON = ["Authorization": "Basic abc", "X-Own": "value", "Accept": "image/png"]
      let result = try await worker.load(origin.url("echo"), ["validate": "none", "headers": headers])
      let told = try JSON(parsing: contents(of: result["path"].string))["headers"]
      #expect(told["authorization"] == "Basic abc")
      #expect(told["x-own"] == "value")
      #expect(told["accept"] == "image/png")
      #expect(told["user-agent"] == "tests/1")
      #expect(told["x-always"] == "yes")
      #expect(told["x-twice"] == "1, 2")
    }
  }

  private func sent(_ worker: WorkerProcess, _ origin: OriginProcess, _ params: JSON = [:]) async throws -> JSON {
    let echo: JSON = ["validate": "none", "cache": "no-store"]
    let result = try await worker.load(origin.url("echo"), echo.merging(params))
    return try JSON(parsing: contents(of: result["path"].string))["headers"]
  }

  @Test func `a header option with a colon and no value leaves the field out, and with a semicolon sends it empty`()
    async throws
  {
    try await withOrigin(
      "--header", "X-Empty;", "--header", "X-None:", "--header", "Accept: ", "--header", "accept-encoding:",
      "--header", "User-Agent:"
    ) { worker, origin in
      let bare = try await sent(worker, origin)
      #expect(bare["x-empty"] == "")
      for name in ["x-none", "accept", "accept-encoding", "user-agent"] { #expect(bare[name] == .null, "\(name)") }
      // The fields of a load are sent anyway.
      let own = try await sent(worker, origin, ["headers": ["Accept": "image/png", "X-None": "", "User-Agent": "me"]])
      #expect(own["accept"] == "image/png" && own["x-none"] == "" && own["user-agent"] == "me")
      #expect(own["accept-encoding"] == .null)
      let options: JSON = ["header": ["Accept-Encoding;", "Accept:", "Accept: image/gif"], "userAgent": ""]
      #expect(try await worker.call("configure", options)["result"]["header"] == options["header"])
      let configured = try await sent(worker, origin)
      #expect(configured["accept"] == "image/gif" && configured["accept-encoding"] == "")
      #expect(configured["x-empty"] == .null && configured["user-agent"] == .null)
      _ = try await worker.call("configure", ["header": [], "userAgent": "tests/1"])
      let usual = try await sent(worker, origin)
      #expect(usual["accept"].string?.hasPrefix("image/") == true && usual["user-agent"] == "tests/1")
      #expect(usual["accept-encoding"].string?.contains("gzip") == true)
    }
  }

  @Test func `compressed bodies are decompressed`() async throws {
    try await withOrigin { worker, origin in
      for coding in ["gzip", "deflate", "raw-deflate"] {
        let result = try await worker.load(origin.url("image/1.png?bytes=20000&encoding=\(coding)"))
        #expect(result["bytes"] == 20_000)
        #expect(try contents(of: result["path"].string).count == 20_000)
      }
    }
  }

  @Test func `each framing of the body is accepted`() async throws {
    try await withOrigin { worker, origin in
      for framing in ["chunked=100", "length=none", "http=1.0", "informational=103,103", "drip=3000", "close=after"] {
        let result = try await worker.load(origin.url("image/1.png?bytes=10000&\(framing)"))
        #expect(result["bytes"] == 10_000)
      }
    }
  }

  @Test func `connections are reused`() async throws {
    try await withOrigin { worker, origin in
      for number in 1...20 { _ = try await worker.load(origin.url("image/\(number).png")) }
      #expect(try await origin.counts()["connections"] == 1)
    }
  }

  @Test func `a redirect is followed, and the result has the final URL`() async throws {
    try await withOrigin { worker, origin in
      let result = try await worker.load(origin.url("image/1.png?hops=3"))
      #expect(result["url"].string == origin.url("image/1.png?hops=3"))
      #expect(result["finalURL"].string == origin.url("image/1.png?hops=0"))
    }
  }

  @Test func `a final URL that is too long for an answer is left out`() async throws {
    try await withOrigin { worker, origin in
      let long = "image/1.png?script=" + String(repeating: "x", count: 50_000)
      try await origin.script("s", ["image/1.png?redirect=/\(long)"])
      try await origin.script(long, ["image/1.png"])
      let result = try await worker.load(origin.url("s"), ["response": true])
      #expect(result["format"] == "png" && result["finalURL"] == .null)
      #expect(try await origin.counts()["requests"] == 2)
    }
  }

  @Test func `credentials are not sent after a redirect to another origin`() async throws {
    try await withOrigin(origin: ["--origins", "2"]) { worker, origin in
      let there = "\(origin.bases[1])/echo"
      let url = origin.url("image/1.png?redirect=\(there)")
      let headers: JSON = ["Authorization": "Basic abc", "Cookie": "a=1", "X-Own": "x"]
      let result = try await worker.load(url, ["validate": "none", "headers": headers])
      let told = try JSON(parsing: contents(of: result["path"].string))["headers"]
      #expect(told["authorization"] == .null && told["cookie"] == .null && told["x-own"] == "x")
    }
  }

  @Test func `certificates are verified with the usual environment variables, and not verified with --insecure`()
    async throws
  {
    try await withOrigin(origin: ["--tls"]) { worker, origin in
      let result = try await worker.load(origin.url("image/1.png"))
      #expect(result["format"] == "png")
    }
    try await withOrigin("--insecure", origin: ["--tls", "--tls-name", "elsewhere.example"]) { worker, origin in
      let result = try await worker.load(origin.url("image/1.png"))
      #expect(result["format"] == "png")
    }
  }

  @Test func `a data URL is loaded without a transfer and echoed up to its comma`() async throws {
    try await withWorker { worker in
      let gif = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
      let result = try await worker.load(gif)
      #expect(result["format"] == "gif")
      #expect(result["width"] == 1)
      #expect(result["url"] == "data:image/gif;base64")
    }
  }

  @Test func `a fragment is not part of the key and is not sent`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png")
      let result = try await worker.load(url + "#part")
      #expect(result["key"].string == url)
      let answer = try await origin.log()
      #expect(answer[0]["target"] == "/image/1.png")
    }
  }

  @Test func `a result has attempts if there was more than one`() async throws {
    try await withOrigin("--retries", "2") { worker, origin in
      let result = try await worker.load(origin.url("image/1.png?fail=1"), ["events": ["retrying"]])
      #expect(result["attempts"] == 2)
      let retrying = try await worker.event("retrying")["params"]
      #expect(retrying["attempt"] == 2)
      #expect(retrying["kind"] == "http")
    }
  }

  @Test func `started and progress come before the response, and progress only increases`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?bytes=300000&hold=a@1000&hold=b@200000")
      let id = worker.request("load", ["url": .string(url), "events": ["started", "progress"]])
      try await origin.held(at: "a")
      let started = try await worker.event("started", for: id)
      #expect(started["params"]["attempt"] == 1)
      #expect(started["params"]["url"].string == url)
      try await origin.release("a")
      try await origin.held(at: "b")
      _ = try await worker.event("progress", for: id)
      try await origin.release("b")
      _ = try await worker.response(to: id)
      let progress = worker.events(for: id).filter { $0["method"] == "progress" }.map { $0["params"] }
      let received = progress.compactMap(\.["received"].integer)
      #expect(received == Array(Set(received)).sorted())
      #expect(progress.allSatisfy { $0["total"] == 300_000 })
    }
  }
}
