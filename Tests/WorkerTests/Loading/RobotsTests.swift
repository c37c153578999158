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

  @Test func `the target of a redirect is requested only if its robots.txt allows it`() async throws {
    try await withOrigin("--robots", "obey", origin: ["--origins", "2"]) { worker, origin in
      // Both origins answer with these lines.
      try await origin.script("robots.txt", [file("User-agent: *", "Disallow: /image/private")])
      let there = origin.bases[1]
      let error = try await worker.failure(origin.url("image/1.png?redirect=\(there)/image/private/1.png%3F_q"))
      #expect(error["code"] == 2012 && error["data"]["kind"] == "robots")
      #expect(error["data"]["rule"] == "Disallow: /image/private")
      #expect(
        error["message"].string
          == "robots.txt of \(there) does not allow the redirect to \(there)/image/private/1.png "
          + "(Disallow: /image/private)")
      #expect(try await origin.log("/image/private/").count == 1, "the request whose URL names the target")
      #expect(try await origin.log("robots.txt").count == 2)
      let result = try await worker.load(origin.url("image/2.png?redirect=\(there)/image/3.png"))
      #expect(result["finalURL"] == .string("\(there)/image/3.png"))
      #expect(try await origin.log("robots.txt").count == 2)
    }
  }

  @Test func `a redirect that waits for robots.txt of its target can be cancelled`() async throws {
    try await withOrigin("--robots", "obey", origin: ["--origins", "2"]) { worker, origin in
      try await origin.script("robots.txt", ["text?status=404", "text?status=404&hold=rules"])
      let url = origin.url("image/1.png?redirect=\(origin.bases[1])/image/2.png")
      let id = worker.request("load", ["url": .string(url)])
      try await origin.held(at: "rules")
      _ = try await worker.call("cancel", ["all": true])
      #expect(try await worker.response(to: id)["error"]["data"]["kind"] == "cancelled")
      try await origin.release("rules")
      #expect(try await worker.load(url)["width"] == 32)
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

  @Test func `a robots.txt that cannot be loaded fails the loads with its error`() async throws {
    try await withOrigin("--robots", "obey", "--retries", "1") { worker, origin in
      try await origin.script("robots.txt", ["text?status=500"])
      let error = try await worker.failure(origin.url("image/1.png"))
      #expect(error["data"]["kind"] == "http" && error["data"]["status"] == 500)
      #expect(error["data"]["retryable"] == true && error["data"]["attempts"] == 2)
      #expect(error["message"].string?.hasSuffix("cannot be loaded: the server answered 500") == true)
      #expect(try await origin.log("robots.txt").count == 2)
      #expect(try await origin.log("image").isEmpty)
    }
  }

  @Test func `a robots.txt is tried again for the loads that wait`() async throws {
    try await withOrigin("--robots", "obey", "--retries", "1") { worker, origin in
      try await origin.script("robots.txt", ["text?status=500", file("User-agent: *", "Disallow: /image/private")])
      #expect(try await worker.load(origin.url("image/1.png"))["width"] == 32)
      #expect(try await worker.failure(origin.url("image/private/1.png"))["data"]["kind"] == "robots")
      #expect(try await origin.log("robots.txt").count == 2)
    }
  }

  @Test func `a redirect needs no second permit for robots.txt of its target`() async throws {
    try await withOrigin("--robots", "obey", "--max-concurrent", "1", origin: ["--origins", "2"]) { worker, origin in
      try await origin.script("robots.txt", ["text?status=404"])
      let urls = (1...4).map { origin.url("image/\($0).png?redirect=\(origin.bases[1])/image/\($0)0.png") }
      for id in urls.map({ worker.request("load", ["url": .string($0)]) }) {
        #expect(try await worker.response(to: id)["result"]["width"] == 32)
      }
      #expect(try await origin.log("robots.txt").count == 2)
    }
  }

  @Test func `a robots.txt that no load waits for is given up`() async throws {
    try await withOrigin("--robots", "obey") { worker, origin in
      try await origin.script("robots.txt", ["text?status=404&hold=rules", "text?status=404"])
      let id = worker.request("load", ["url": .string(origin.url("image/1.png"))])
      try await origin.held(at: "rules")
      #expect(try await worker.call("stats")["result"]["origins"][0]["reason"] == "robots")
      _ = try await worker.call("cancel", ["all": true])
      #expect(try await worker.response(to: id)["error"]["data"]["kind"] == "cancelled")
      #expect(try await worker.load(origin.url("image/2.png"))["width"] == 32)
      #expect(try await origin.log("robots.txt").count == 2)
      try await origin.release("rules")
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
