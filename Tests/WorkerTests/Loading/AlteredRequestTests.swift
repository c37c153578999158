import Foundation
import Testing

/// Requests to which the worker has added a range or conditions: an answer that refuses these is no answer about the
/// image.
@Suite struct AlteredRequestTests {
  private static let image = "image/7.png?bytes=900000&etag=a"

  /// Answers by which servers and proxies refuse a request. A login page comes after a redirect to itself.
  static let refusals = [
    "text?status=400", "text?status=403", "text?status=404", "text?status=412", "text?status=416",
    "text?status=429&retry-after=60", "text?status=500", "text?status=501", "text?status=503&retry-after=60", "html",
    "html?hops=1", "image/7.png?circle",
    "image/7.png?redirect=http://127.0.0.1:1/", "image/7.png?redirect=http://nowhere.invalid/",
    "html?header-bytes=300000", "text?status=202", "empty", "empty?status=204", "text?close=start",
    "text?reset=start", "text?close=mid-headers", "text?status=403&truncate=1", "image/7.png?encoding=br",
  ]

  private func statuses(_ log: [JSON]) -> [JSON] { log.map { $0["status"] } }

  private func ranges(_ log: [JSON]) -> [[String]] { log.map { OriginProcess.header("range", of: $0) } }

  @Test(arguments: refusals) func `a server that refuses to resume is asked for the whole in the same attempt`(
    refusal: String
  ) async throws {
    try await withOrigin("--retries", "1", "--failed-ttl", "10m") { worker, origin in
      try await origin.script("s.png", ["\(Self.image)&truncate=500000", refusal, Self.image])
      let result = try await worker.load(origin.url("s.png"))
      #expect(result["bytes"] == 900_000 && result["attempts"] == 2 && result["cache"] == "miss")
      let log = try await origin.log("s.png")
      #expect(ranges(log).first == [] && ranges(log).last == [])
      #expect(ranges(log).contains { $0.first?.hasPrefix("bytes=") == true })
      #expect(try await worker.call("stats")["result"]["origins"][0]["state"] != "suspended")
    }
  }

  @Test func `a partial body of an earlier load costs no attempt`() async throws {
    try await withOrigin { worker, origin in
      try await origin.script("s.png", ["\(Self.image)&truncate=500000", "text?status=503", Self.image])
      #expect(try await worker.failure(origin.url("s.png"))["data"]["kind"] == "truncated")
      #expect(try await worker.load(origin.url("s.png"))["attempts"] == .null)
      #expect(statuses(try await origin.log("s.png")) == [200, 503, 200])
    }
  }

  @Test func `a partial body whose rest does not come is given up after one attempt`() async throws {
    try await withOrigin("--retries", "2", "--timeout", "1s") { worker, origin in
      try await origin.script("s.png", ["\(Self.image)&truncate=500000", "\(Self.image)&hold=never", Self.image])
      let result = try await worker.load(origin.url("s.png"))
      #expect(result["bytes"] == 900_000 && result["attempts"] == 3)
      #expect(ranges(try await origin.log("s.png")).last == [])
      try await origin.release("never")
    }
  }

  @Test(arguments: refusals) func `a server that refuses the range of a probe is asked for the whole`(refusal: String)
    async throws
  {
    try await withOrigin { worker, origin in
      try await origin.script("s.png", [refusal, Self.image])
      let url = origin.url("s.png")
      #expect(try await worker.call("probe", ["url": .string(url)])["result"]["bytes"] == 900_000)
      #expect(ranges(try await origin.log("s.png")).first?.first == "bytes=0-32767")
      #expect(try await worker.load(url)["bytes"] == 900_000)
    }
  }

  @Test func `only the answer to the whole request is the error of a probe, and is remembered`() async throws {
    try await withOrigin { worker, origin in
      try await origin.script("s.png", ["text?status=403", "text?status=404"])
      let error = try await worker.call("probe", ["url": .string(origin.url("s.png"))])["error"]
      #expect(error["data"]["status"] == 404)
      let again = try await worker.failure(origin.url("s.png"))
      #expect(again["data"]["kind"] == "recentlyFailed" && again["data"]["status"] == 404)
    }
  }

  // Conditions are for one URL only; and a connection that is closed when it is used again is no answer.
  @Test(
    arguments: refusals.filter { name in !["circle", "hops", "redirect", "=start"].contains { name.contains($0) } })
  func `a server that refuses a condition is asked without it`(refusal: String) async throws {
    try await withOrigin { worker, origin in
      try await origin.script("s.png", ["\(Self.image)&cache-control=no-cache", refusal, "image/8.png?bytes=1000"])
      #expect(try await worker.load(origin.url("s.png"))["bytes"] == 900_000)
      let result = try await worker.load(origin.url("s.png"))
      #expect(result["bytes"] == 1000 && result["cache"] == "miss")
      let conditions = try await origin.log("s.png").map { OriginProcess.header("if-none-match", of: $0) }
      #expect(conditions.first == [] && conditions[1] == ["\"a\""] && conditions.last == [])
    }
  }
}

/// Failures and running transfers belong to the request that was sent, not to the cache key.
@Suite struct RequestIdentityTests {
  @Test func `a new URL of a key is requested although the old one failed`() async throws {
    try await withOrigin { worker, origin in
      let key: JSON = ["key": "one"]
      let old = origin.url("text?status=403&x-sig=old")
      let (first, second) = (try await worker.failure(old, key), try await worker.failure(old, key))
      #expect(first["data"]["status"] == 403 && second["data"]["kind"] == "recentlyFailed")
      #expect(try await worker.load(origin.url("image/1.png?x-sig=new"), key)["width"] == 32)
    }
  }

  @Test func `a failure is remembered for the header fields that were sent`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?require=Referer:%20x")
      let failure = try await worker.failure(url)
      #expect(failure["data"]["status"] == 401)
      #expect(try await worker.load(url, ["headers": ["referer": "x"]])["width"] == 32)
    }
  }

  @Test func `a new URL of a key does not wait for the transfer of the old one`() async throws {
    try await withOrigin { worker, origin in
      let old = worker.request(
        "load", ["url": .string(origin.url("text?status=403&hold=old")), "key": "one"])
      try await origin.held(at: "old")
      let url = origin.url("image/1.png?cache-control=max-age=60")
      #expect(try await worker.load(url, ["key": "one"])["width"] == 32)
      try await origin.release("old")
      #expect(try await worker.response(to: old)["error"]["data"]["status"] == 403)
      #expect(try await worker.load(origin.url("image/1.png?x-sig=newer"), ["key": "one"])["cache"] == "memory")
    }
  }

  @Test(arguments: ["empty", "text?status=202", "text?status=202&retry-after=0"])
  func `an image that is not ready yet is requested again`(answer: String) async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      try await origin.script("s.png", [answer, "image/1.png"])
      #expect(try await worker.load(origin.url("s.png"))["attempts"] == 2)
    }
  }

  @Test func `an image that never gets ready fails with a retryable error`() async throws {
    try await withOrigin { worker, origin in
      let waits = try await worker.failure(origin.url("text?status=202"))["data"]
      #expect(waits["kind"] == "http" && waits["status"] == 202 && waits["retryable"] == true)
      let empty = try await worker.failure(origin.url("empty"))["data"]
      #expect(empty["kind"] == "truncated" && empty["retryable"] == true)
      #expect(try await worker.failure(origin.url("empty?status=204"))["data"]["kind"] == "notAnImage")
      #expect(try await worker.load(origin.url("image/1.png?status=202"))["width"] == 32)
    }
  }
}
