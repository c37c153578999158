import Testing

/// Origins that refuse, do not answer or are unreachable. They affect only their own loads.
@Suite struct BadOriginTests {
  /// The entry of an origin in `stats`.
  private func state(of base: String, _ worker: WorkerProcess) async throws -> JSON {
    let stats = try await worker.call("stats")["result"]
    return stats["origins"].array.first { $0["origin"].string == base } ?? .null
  }

  @Test func `Retry-After suspends the whole origin and no other`() async throws {
    try await withOrigin(origin: ["--origins", "2"]) { worker, origin in
      let (bad, good) = (origin.bases[0], origin.bases[1])
      let error = try await worker.failure("\(bad)/image/0.png?status=503&retry-after=100")
      #expect(error["data"]["retryAfterMs"] == 100_000)
      let ids = (1...3).map { worker.request("load", ["url": .string("\(bad)/image/\($0).png")]) }
      #expect(try await worker.load("\(good)/image/4.png")["cache"] == "miss")
      let state = try await state(of: bad, worker)
      #expect(state["active"] == 0 && state["waiting"] == 3)
      #expect(state["reason"] == "retryAfter")
      #expect(state["heldUntil"].string != nil)
      // A suspended load can be cancelled.
      #expect(try await worker.call("cancel", ["all": true])["result"] == ["cancelled": 3])
      for id in ids { #expect(try await worker.response(to: id)["error"]["code"] == -32800) }
      #expect(try await origin.counts()["requests"] == 2)
    }
  }

  @Test(arguments: ["&retry-after=1", ""])
  func `an origin that refused is probed with one transfer, and gets half the refused number after an answer`(
    patience: String
  )
    async throws
  {
    try await withOrigin("--max-per-host", "4") { worker, origin in
      let refused = (1...4).map { "image/\($0).png?fail=1&status=503\(patience)&hold=a" }
      let others = (5...12).map { "image/\($0).png?hold=a" }
      let ids = (refused + others).map {
        worker.request("load", ["url": .string(origin.url($0)), "retries": 1, "events": ["retrying"]])
      }
      try await origin.held(4, at: "a")
      try await origin.release("a", count: 4)
      for id in ids.prefix(4) { _ = try await worker.event("retrying", for: id) }
      try await origin.held(1, at: "a")
      let probing = try await state(of: origin.base, worker)
      #expect(probing["active"] == 1 && probing["health"] == "probing")
      #expect(probing["reason"].string == (patience.isEmpty ? "unavailable" : "retryAfter"))
      try await origin.release("a", count: 1)
      try await origin.held(2, at: "a")
      let limited = try await state(of: origin.base, worker)
      #expect(limited["active"] == 2 && limited["window"] == 2 && limited["health"] == "limited")
      #expect(limited["reason"] == "perHostLimit")
      try await origin.release("a")
      for id in ids { #expect(try await worker.response(to: id)["result"]["format"] == "png") }
      #expect(try await origin.counts()["mostActive"] == 4)
    }
  }

  @Test func `an unresponsive origin gets one transfer at a time, and the other origins get the rest`() async throws {
    try await withOrigin("--max-concurrent", "6", origin: ["--origins", "2"]) { worker, origin in
      let (silent, good) = (origin.bases[0], origin.bases[1])
      let ids = (1...6).map { number in
        worker.request("load", ["url": .string("\(silent)/image/\(number).png?hold=never"), "timeoutMs": 500])
      }
      let more = (11...20).map { number in
        worker.request("load", ["url": .string("\(silent)/image/\(number).png?hold=never"), "timeoutMs": 0])
      }
      for id in ids { #expect(try await worker.response(to: id)["error"]["data"]["kind"] == "timeout") }
      let others = (1...9).map { worker.request("load", ["url": .string("\(good)/image/\($0).png?hold=a")]) }
      try await origin.held(5, at: "a")
      let state = try await state(of: silent, worker)
      #expect(state["active"].integer ?? 9 <= 1)
      #expect(["suspended", "probing"].contains(state["health"].string ?? ""))
      #expect(state["reason"] == "unresponsive")
      try await origin.release("a")
      for id in others { #expect(try await worker.response(to: id)["result"]["format"] == "png") }
      try await worker.call("cancel", ["all": true])
      for id in more { #expect(try await worker.response(to: id)["error"]["code"] == -32800) }
    }
  }

  @Test func `an unresponsive origin with all transfers is preempted for other origins, and its loads continue later`()
    async throws
  {
    try await withOrigin("--max-concurrent", "4", origin: ["--origins", "3"]) { worker, origin in
      let silent = (1...8).map { number in
        worker.request(
          "load",
          [
            "url": .string("\(origin.bases[0])/image/\(number).png?hold=long"), "timeoutMs": 0,
            "events": ["started", "retrying"],
          ])
      }
      try await origin.held(4, at: "long")
      let others = (11...30).map { number in
        worker.request("load", ["url": .string("\(origin.bases[1 + number % 2])/image/\(number).png")])
      }
      // No timeout ends the held transfers. Without preemption, none of these loads would finish.
      for id in others { #expect(try await worker.response(to: id)["result"]["format"] == "png") }
      try await origin.release("long")
      for id in silent {
        let result = try await worker.response(to: id)["result"]
        #expect(result["format"] == "png" && result["attempts"] == .null)
        #expect(worker.events(for: id).map { $0["method"] } == ["started"], "it was started once and not retried")
      }
      #expect(try await origin.counts()["mostActive"].integer ?? 99 <= 8)
    }
  }

  @Test func `loads for an unreachable port fail together after three epochs, and later ones at once`() async throws {
    try await withOrigin("--retries", "2") { worker, origin in
      // Port 1 of the loopback interface is reserved and has no listener.
      let dead = "http://127.0.0.1:1"
      let ids = (1...200).map { worker.request("load", ["url": .string("\(dead)/\($0).png")]) }
      #expect(try await worker.load(origin.url("image/1.png"))["format"] == "png")
      var isDown = 0
      for id in ids {
        let data = try await worker.response(to: id)["error"]["data"]
        #expect(data["kind"] == "connect")
        if data["originDown"] == true { isDown += 1 }
      }
      #expect(isDown >= 190)
      let state = try await state(of: dead, worker)
      #expect(state["health"] == "down" && state["heldUntil"].string != nil)
      let late = try await worker.failure("\(dead)/late.png")
      #expect(late["data"]["kind"] == "connect" && late["data"]["originDown"] == true)
      let transfers = try await worker.call("stats")["result"]["transfers"]
      #expect((transfers["started"].integer ?? .max) < 20)
    }
  }

  @Test func `loads for a server that never answers fail after three timeouts`() async throws {
    try await withOrigin("--retries", "2") { worker, origin in
      let ids = (1...60).map { number in
        let url = JSON.string(origin.url("image/\(number).png?hold=never"))
        return worker.request("load", ["url": url, "timeoutMs": 300])
      }
      for id in ids {
        let data = try await worker.response(to: id)["error"]["data"]
        #expect(data["kind"] == "timeout" && data["phase"] == "firstByte")
      }
      let transfers = try await worker.call("stats")["result"]["transfers"]
      #expect((transfers["started"].integer ?? .max) < 20)
    }
  }

  @Test func `a redirect counts as an answer, so an unreachable target does not suspend the redirecting origin`()
    async throws
  {
    try await withOrigin { worker, origin in
      let ids = (1...8).map { number in
        worker.request(
          "load", ["url": .string(origin.url("image/\(number).png?redirect=http://127.0.0.1:1/\(number).png"))])
      }
      for id in ids {
        let data = try await worker.response(to: id)["error"]["data"]
        #expect(data["kind"] == "connect")
      }
      let state = try await state(of: origin.base, worker)
      #expect(state == .null, "no load is suspended")
      #expect(try await worker.load(origin.url("image/9.png"))["format"] == "png")
    }
  }
}
