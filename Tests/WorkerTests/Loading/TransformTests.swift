import Foundation
import Testing

/// Loads that use the real decoder.
@Suite struct TransformTests {
  @Test func `the result for a variant describes the variant and its source`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?width=400&height=300&bytes=9000&cache-control=max-age%3D60")
      let result = try await worker.load(url, ["transform": ["width": 100], "placeholder": true])
      #expect(result["cache"] == "miss" && result["format"] == "png" && result["mediaType"] == "image/png")
      #expect(result["width"] == 100 && result["height"] == 75)
      #expect(result["source"] == ["bytes": 9000, "format": "png", "width": 400, "height": 300])
      #expect(result["placeholder"].names == ["thumbhash", "color"])
      let path = try #require(result["path"].string)
      let size = try contents(of: path).count
      #expect(result["bytes"].integer == size)
      let again = try await worker.load(url, ["transform": ["width": 100, "fit": "inside"]])
      #expect(again["cache"] == "memory" && again["path"].string == path && again["placeholder"] == .null)
      #expect(try await worker.load(url)["width"] == 400)
    }
  }

  @Test func `a variant is upright, and its source has the orientation, also from disk`() async throws {
    try await withOrigin("--memory-limit", "0") { worker, origin in
      let url = origin.url("image/1.jpg?width=40&height=30&orientation=6&cache-control=max-age%3D60")
      let source: JSON = [
        "format": "jpeg", "width": 40, "height": 30, "orientation": 6, "upright": ["width": 30, "height": 40],
      ]
      for cache in ["miss", "disk"] {
        let result = try await worker.load(url, ["transform": ["width": 15], "want": ["maxHeight": 40]])
        #expect(result["cache"].string == cache && result["width"] == 15 && result["height"] == 20)
        #expect(result["orientation"] == .null && result["upright"] == .null)
        for name in source.names { #expect(result["source"][name] == source[name]) }
      }
      let pixels = try await worker.load(url, ["deliver": "pixels"])
      #expect(pixels["pixels"]["width"] == 30 && pixels["pixels"]["height"] == 40)
      #expect(pixels["width"] == 40 && pixels["orientation"] == 6 && pixels["upright"] == ["width": 30, "height": 40])
      // The variant is judged by its upright original.
      let refused = try await worker.failure(url, ["transform": ["width": 15], "want": ["maxHeight": 39]])
      #expect(refused["data"]["wanted"] == "maxHeight" && refused["data"]["height"] == 40)
    }
  }

  @Test func `the part that a cover keeps belongs to the variant`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?width=400&height=100&cache-control=max-age%3D60")
      let crops: [JSON] = ["attention", "entropy", ["x": 0, "y": 0], ["x": 1, "y": 0.5]]
      var paths: Set<String?> = []
      for crop in crops {
        let transform: JSON = ["width": 50, "height": 50, "fit": "cover", "crop": crop]
        let result = try await worker.load(url, ["transform": transform])
        #expect(result["width"] == 50 && result["height"] == 50)
        paths.insert(result["path"].string)
        let again = try await worker.load(url, ["transform": transform])
        #expect(again["cache"] == "memory" && again["path"] == result["path"])
      }
      #expect(paths.count == crops.count)
      let center: JSON = ["width": 50, "height": 50, "fit": "cover"]
      let path = try await worker.load(url, ["transform": center])["path"]
      let point = center.merging(["crop": ["x": 0.5, "y": 0.5]])
      #expect(try await worker.load(url, ["transform": point])["path"] == path)
    }
  }

  @Test func `transforms of one URL share a transfer`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.jpg?width=200&height=100&hold=a&cache-control=max-age%3D60")
      let transforms: [JSON] = [
        [:], ["transform": ["width": 50]], ["transform": ["width": 60]], ["transform": ["width": 50]],
      ]
      let ids = transforms.map { worker.request("load", JSON.object(["url": .string(url)]).merging($0)) }
      try await origin.held(at: "a")
      try await origin.release("a")
      let widths = try await ids.asyncMap { try await worker.response(to: $0)["result"]["width"] }
      #expect(widths == [200, 50, 60, 50])
      let requests = try await origin.counts()["requests"]
      #expect(requests == 1)
      let stats = try await worker.call("stats")["result"]
      #expect(stats["decoders"]["decoded"] == 2)
    }
  }

  @Test func `format, data and saveTo are those of the variant`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.gif?frames=3&width=40&height=40&cache-control=max-age%3D60")
      let target = worker.directory.path + "/out.webp"
      let animated = try await worker.load(
        url, ["transform": ["frames": "all"], "deliver": "data", "saveTo": .string(target)])
      #expect(animated["format"] == "webp" && animated["frames"] == 3)
      let data = try #require(Data(base64Encoded: animated["data"].string ?? ""))
      let saved = try contents(of: target)
      #expect(saved == [UInt8](data))
      let still = try await worker.load(url, ["transform": ["format": "jpeg", "width": 10]])
      #expect(still["format"] == "jpeg" && still["frames"] == .null)
      #expect(still["path"].string?.hasSuffix(".jpg") == true)
    }
  }

  @Test func `an invalid member is named by its path`() async throws {
    try await withWorker { worker in
      let cases: [(JSON, String)] = [
        (["width": 0], "transform.width"), (["height": 70000], "transform.height"), (["fit": "crop"], "transform.fit"),
        (["fit": "cover", "width": 10], "transform.fit"),
        (["enlarge": 1], "transform.enlarge"), (["rotate": 90], "transform.rotate"),
        (["crop": ["x": 0, "y": 0, "width": 1]], "transform.crop.height"),
        (["crop": ["x": 0, "y": 0, "width": 1, "height": 0]], "transform.crop.height"),
        (["crop": ["z": 0]], "transform.crop.z"), (["crop": 1], "transform.crop"),
        (["crop": "attention"], "transform.crop"), (["crop": "middle"], "transform.crop"),
        (["crop": ["x": 0.5, "y": 0.5], "width": 10, "height": 10], "transform.crop"),
        (["crop": "entropy", "fit": "fill", "width": 10, "height": 10], "transform.crop"),
        (["crop": ["x": 0.5], "fit": "cover", "width": 10, "height": 10], "transform.crop.y"),
        (["crop": ["x": 10, "y": 0], "fit": "cover", "width": 10, "height": 10], "transform.crop.x"),
        (["format": "bmp"], "transform.format"), (["quality": 101], "transform.quality"),
        (["frames": "all", "format": "png"], "transform.frames"), (["background": "white"], "transform.background"),
        (["background": "#fffff"], "transform.background"), (["blur": -1], "transform.blur"),
        (["grayscale": "yes"], "transform.grayscale"), (["cornerRadius": -1], "transform.cornerRadius"),
        (["size": 1], "transform.size"),
      ]
      for (transform, member) in cases {
        let error = try await worker.failure("http://127.0.0.1:1/a.png", ["transform": transform])
        #expect(error["code"] == -32602 && error["data"]["member"] == .string(member))
      }
      let error = try await worker.failure("http://127.0.0.1:1/a.png", ["transform": 5])
      #expect(error["data"]["member"] == "transform")
      for crop in ["atention", 5] as [JSON] {
        let error = try await worker.failure("http://127.0.0.1:1/a.png", ["transform": ["crop": crop]])
        let forms = "transform.crop must be attention, entropy, a point {x, y} or a rectangle {x, y, width, height}"
        #expect(error["message"] == .string(forms))
      }
    }
  }

  @Test func `a crop outside the image is refused when the size is known`() async throws {
    try await withOrigin { worker, origin in
      let crop: JSON = ["x": 500, "y": 0, "width": 5, "height": 5]
      let error = try await worker.failure(origin.url("image/1.png"), ["transform": ["crop": crop]])
      #expect(error["code"] == -32602 && error["data"]["member"] == "transform.crop")
    }
  }

  @Test func `an image that the decoder does not support can be loaded untransformed`() async throws {
    try await withOrigin { worker, origin in
      // The size of a JPEG 2000 codestream, 16 x 8.
      let url = "data:image/jp2;base64,/0//UQApAAAAAAAQAAAACAAAAAAAAAAA"
      let error = try await worker.failure(url, ["transform": ["width": 5]])
      #expect(error["data"]["kind"] == "unsupportedFormat")
      #expect(try await worker.load(url)["format"] == "jp2")
      for format in ["svg", "bmp", "ico"] {
        let url = origin.url("image/1.\(format)")
        #expect(try await worker.load(url, ["transform": ["width": 5]])["width"] == 5)
        #expect(try await worker.load(url)["format"].string == format)
      }
    }
  }

  @Test func `an image over max-pixels is not decoded`() async throws {
    try await withOrigin("--max-pixels", "10000") { worker, origin in
      let url = origin.url("image/1.png?width=200&height=100")
      let error = try await worker.failure(url, ["transform": ["width": 5]])
      #expect(error["data"]["kind"] == "tooManyPixels")
      #expect(error["data"]["width"] == 200 && error["data"]["height"] == 100 && error["data"]["limit"] == 10_000)
      let drawing = origin.url("image/1.svg?width=20&height=10")
      let enlarged = try await worker.failure(drawing, ["transform": ["width": 1000, "enlarge": true]])["data"]
      #expect(enlarged["width"] == 1000 && enlarged["height"] == 500 && enlarged["limit"] == 10_000)
      #expect(try await worker.failure(url, ["deliver": "pixels"])["data"]["kind"] == "tooManyPixels")
      #expect(try await worker.load(url)["width"] == 200)
      #expect(try await worker.call("stats")["result"]["decoders"]["decoded"] == 0)
    }
  }

  @Test func `validate decode checks every pixel`() async throws {
    try await withOrigin { worker, origin in
      let whole = origin.url("image/1.jpg?width=200&height=100&cache-control=max-age%3D60")
      #expect(try await worker.load(whole, ["validate": "decode"])["cache"] == "miss")
      #expect(try await worker.load(whole, ["validate": "decode"])["cache"] == "memory")
      #expect(try await worker.call("stats")["result"]["decoders"]["decoded"] == 1)
      let path = worker.directory.path + "/cut.png"
      let source = try await worker.load(origin.url("image/2.png?width=300&height=300"))
      let bytes = try contents(of: source["path"].string)
      try Data(bytes.prefix(bytes.count / 2)).write(to: URL(filePath: path))
      _ = try await worker.call("store", ["key": "cut", "path": .string(path)])
      let params: JSON = ["key": "cut", "validate": "decode"]
      #expect(try await worker.failure("http://127.0.0.1:1/", params)["data"]["kind"] == "corrupt")
    }
  }

  @Test func `pixels can be mapped until they are released`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?width=30&height=20&cache-control=max-age%3D60")
      let pixels = try await worker.load(url, ["deliver": "pixels"])["pixels"]
      #expect(pixels["width"] == 30 && pixels["height"] == 20 && pixels["offset"] == 0)
      let path = try #require(pixels["path"].string)
      let channels = try #require(pixels["channels"].integer)
      #expect(pixels["stride"].integer == 30 * channels && pixels["bytes"].integer == 600 * channels)
      let size = try contents(of: path).count
      #expect(size == 600 * channels)
      let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
      #expect(mode == 0o600)
      let region = try await worker.call("stats")["result"]["pixels"]
      #expect(region["regions"] == 1 && region["bytes"] == pixels["bytes"])
      #expect(try await worker.call("release", ["path": .string(path)])["result"]["released"] == 1)
      #expect(try await worker.call("release", ["path": .string(path)])["result"]["released"] == 0)
      #expect(!FileManager.default.fileExists(atPath: path))
      let second = try await worker.load(url, ["deliver": "pixels", "transform": ["width": 15]])
      #expect(second["width"] == 15 && second["source"]["width"] == 30)
      #expect(try await worker.call("release", ["all": true])["result"]["released"] == 1)
      let left = try #require(try await worker.load(url, ["deliver": "pixels"])["pixels"]["path"].string)
      _ = try await worker.end()
      #expect(!FileManager.default.fileExists(atPath: left))
    }
  }

  @Test func `the pixels of a killed worker are removed when the next worker starts`() async throws {
    var path = ""
    try await withOrigin { worker, origin in
      path = try #require(
        try await worker.load(origin.url("image/1.png"), ["deliver": "pixels"])["pixels"]["path"].string)
      // Check before the kill: afterwards the worker of another test may be the next and remove them.
      #expect(FileManager.default.fileExists(atPath: path))
      worker.child.kill()
      _ = try await worker.child.ended()
    }
    // Another worker that has just started may be removing them.
    for _ in 0..<50 where FileManager.default.fileExists(atPath: path) {
      try await withWorker { worker in _ = try await worker.call("stats") }
    }
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test func `prefetch and query support variants`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?bytes=5000&cache-control=max-age%3D60")
      let transform: JSON = ["width": 8]
      let done = try await worker.call("prefetch", ["urls": [.string(url)], "transform": transform])["result"]
      #expect(done["downloaded"] == 1 && done["bytes"] == 5000)
      let found = try await worker.call("query", ["url": .string(url), "transform": transform])["result"]
      #expect(found["memory"] == true && found["disk"] == true && found["bytes"] != 5000)
      let other = try await worker.call("query", ["url": .string(url), "transform": ["width": 9]])["result"]
      #expect(other["memory"] == false && other["disk"] == false)
      #expect(try await worker.call("clear", ["url": .string(url)])["result"]["removed"] == 2)
      #expect(try await worker.call("query", ["url": .string(url), "transform": transform])["result"]["disk"] == false)
    }
  }

  @Test func `initialize lists the formats that can be decoded and encoded`() async throws {
    try await withWorker { worker in
      let result = try await worker.call("initialize", ["formats": true])["result"]
      #expect(result["sandbox"].array.contains("noNewPrivileges"))
      let formats = result["formats"]
      #expect(formats["decode"].array.contains("jpeg") && formats["encode"].array.contains("webp"))
    }
  }
}

extension Sequence {
  fileprivate func asyncMap<Result>(_ transform: (Element) async throws -> Result) async rethrows -> [Result] {
    var results: [Result] = []
    for element in self { results.append(try await transform(element)) }
    return results
  }
}
