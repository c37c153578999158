import Foundation
import Testing

/// `--robots obey`, observed at the origin and the host.
@Suite struct RobotsTests {
  /// A target that answers with these lines as robots.txt.
  private func file(_ lines: String...) -> String {
    let body = lines.joined(separator: "\n")
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)"
    return "text?raw=" + (answer.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")
  }

  @Test func `a target that robots.txt disallows is not requested`() async throws {
    try await withOrigin("--robots", "obey") { worker, origin in
      try await origin.script("robots.txt", [file("User-agent: *", "Disallow: /image/private")])
      let urls = ["image/private/1.png", "image/2.png", "image/private/3.png"].map(origin.url)
      let ids = urls.map { worker.request("load", ["url": .string($0)]) }
      for (index, id) in ids.enumerated() {
        let answer = try await worker.response(to: id)
        if index == 1 {
          #expect(answer["result"]["width"] == 32)
        } else {
          #expect(answer["error"]["code"] == 2012)
          #expect(answer["error"]["data"]["kind"] == "robots")
          #expect(answer["error"]["data"]["rule"] == "Disallow: /image/private")
        }
      }
      // A later load is refused by the rules that are known.
      #expect(try await worker.failure(origin.url("image/private/4.png"))["data"]["kind"] == "robots")
      #expect(try await origin.log("robots.txt").count == 1)
      #expect(try await origin.log("private").isEmpty)
    }
  }

  @Test func `without robots.txt everything is allowed`() async throws {
    try await withOrigin("--robots", "obey") { worker, origin in
      try await origin.script("robots.txt", ["text?status=404"])
      let result = try await worker.load(origin.url("image/1.png"))
      #expect(result["width"] == 32)
      #expect(try await origin.log("robots.txt").count == 1)
    }
  }

  @Test func `a robots.txt that cannot be loaded allows nothing for a while`() async throws {
    try await withOrigin("--robots", "obey") { worker, origin in
      try await origin.script("robots.txt", ["text?status=500"])
      for number in 1...2 {
        let error = try await worker.failure(origin.url("image/\(number).png"))
        #expect(error["data"]["kind"] == "robots" && error["data"]["rule"] == .null)
        #expect(error["data"]["retryAfterMs"] == 60_000)
        #expect(error["message"].string?.hasSuffix("cannot be loaded: the server answered 500") == true)
      }
      #expect(try await origin.log("image").isEmpty)
    }
  }

  @Test(arguments: ["x-robots-tag:noai", "content-usage:train-ai%3Dn"])
  func `a header field that refuses the use ends the load`(field: String) async throws {
    try await withOrigin("--robots", "obey") { worker, origin in
      try await origin.script("robots.txt", ["text?status=404"])
      let error = try await worker.failure(origin.url("image/1.png?header=\(field)"))
      #expect(error["data"]["kind"] == "robots")
      #expect(error["data"]["rule"].string?.isEmpty == false)
    }
  }

  @Test func `by default robots.txt is not requested`() async throws {
    try await withOrigin { worker, origin in
      let result = try await worker.load(origin.url("image/1.png?header=x-robots-tag:noai"))
      #expect(result["width"] == 32)
      #expect(try await origin.log("robots.txt").isEmpty)
    }
  }
}
