import Testing

/// What an origin that refuses, keeps silent or is not there costs: its own loads, and nobody else's.
@Suite struct BadOriginTests {
  /// What `stats` tell of an origin.
  private func state(of base: String, _ worker: WorkerProcess) async throws -> JSON {
    let stats = try await worker.call("stats")["result"]
    return stats["origins"].array.first { $0["origin"].string == base } ?? .null
  }

  @Test func `Retry-After holds back the whole origin, and no other`() async throws {
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
      // What is held can be cancelled all the same.
      #expect(try await worker.call("cancel", ["all": true])["result"] == ["cancelled": 3])
      for id in ids { #expect(try await worker.response(to: id)["error"]["code"] == -32800) }
      #expect(try await origin.counts()["requests"] == 2)
    }
  }

  @Test(arguments: ["&retry-after=1", ""])
  func `an origin that refused is let in again one by one`(patience: String) async throws {
    try await withOrigin("--max-per-host", "4") { worker, origin in
      let refused = origin.url("image/0.png?fail=1&status=503\(patience)&hold=a")
      let first = worker.request("load", ["url": .string(refused), "retries": 1, "events": ["retrying"]])
      try await origin.held(at: "a")
      try await origin.release("a", count: 1)
      _ = try await worker.event("retrying", for: first)
      let ids = (1...9).map { worker.request("load", ["url": .string(origin.url("image/\($0).png?hold=a"))]) }
      for allowance in 1...4 {
        try await origin.held(allowance, at: "a")
        let state = try await state(of: origin.base, worker)
        #expect(state["active"] == .integer(allowance))
        #expect(state["reason"].string == (allowance < 4 ? "readmission" : "perHostLimit"))
        try await origin.release("a", count: 1)
      }
      try await origin.release("a")
      for id in [first] + ids { #expect(try await worker.response(to: id)["result"]["format"] == "png") }
      #expect(try await origin.counts()["mostActive"] == 4)
    }
  }

  @Test func `an origin that keeps silent has one slot in the end, and the others have the rest`() async throws {
    try await withOrigin("--max-concurrent", "6", origin: ["--origins", "2"]) { worker, origin in
      let (silent, good) = (origin.bases[0], origin.bases[1])
      let ids = (1...7).map { number in
        worker.request("load", ["url": .string("\(silent)/image/\(number).png?hold=never"), "timeoutMs": 500])
      }
      for id in ids.prefix(6) { #expect(try await worker.response(to: id)["error"]["data"]["kind"] == "timeout") }
      let more = (11...20).map { number in
        worker.request("load", ["url": .string("\(silent)/image/\(number).png?hold=never"), "timeoutMs": 0])
      }
      let others = (1...9).map { worker.request("load", ["url": .string("\(good)/image/\($0).png?hold=a")]) }
      try await origin.held(5, at: "a")
      let state = try await state(of: silent, worker)
      #expect(state["active"] == 1)
      #expect(state["reason"] == "readmission")
      try await origin.release("a")
      for id in others { #expect(try await worker.response(to: id)["result"]["format"] == "png") }
      try await worker.call("cancel", ["all": true])
      for id in more { #expect(try await worker.response(to: id)["error"]["code"] == -32800) }
    }
  }

  @Test func `an origin that takes every slot and keeps silent gives way to others, and its loads come to no harm`()
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
      // No time-out ends what is held: without giving way, nothing of this would ever come.
      for id in others { #expect(try await worker.response(to: id)["result"]["format"] == "png") }
      try await origin.reaches("left", 1)
      #expect(try await state(of: origin.bases[0], worker)["waiting"].integer ?? 0 > 4)
      try await origin.release("long")
      for id in silent {
        let result = try await worker.response(to: id)["result"]
        #expect(result["format"] == "png" && result["attempts"] == .null)
        #expect(worker.events(for: id).map { $0["method"] } == ["started"], "once, and it was not tried again")
      }
    }
  }

  @Test func `loads for a dead port end soon, with the attempts that were promised, and by few connections`()
    async throws
  {
    try await withOrigin("--retries", "2") { worker, origin in
      // Port 1 of the loopback interface: reserved, and nobody's.
      let dead = "http://127.0.0.1:1"
      let ids = (1...200).map { number in
        worker.request("load", ["url": .string("\(dead)/\(number).png"), "events": ["retrying"]])
      }
      // The last one waits; that it is tried again is the first probe's doing.
      let retrying = try await worker.event("retrying", for: ids[199])
      #expect(retrying["params"]["attempt"] == 2)
      #expect(retrying["params"]["kind"] == "connect")
      let state = try await state(of: dead, worker)
      // There is none where the machine stalled for the two seconds that they last.
      #expect(state == .null || state["reason"] == "unreachable")
      #expect(try await worker.load(origin.url("image/1.png"))["format"] == "png")
      for id in ids {
        let data = try await worker.response(to: id)["error"]["data"]
        #expect(data["kind"] == "connect")
        #expect(data["attempts"] == 3)
      }
      let transfers = try await worker.call("stats")["result"]["transfers"]
      #expect((transfers["started"].integer ?? .max) < 40)
    }
  }

  @Test
  func `loads for a server that never answers are tried once in the end, and one that it does answer gets through`()
    async throws
  {
    try await withOrigin("--retries", "2") { worker, origin in
      let ids = (1...60).map { number in
        let url = JSON.string(origin.url("image/\(number).png?hold=never"))
        return worker.request("load", ["url": url, "timeoutMs": 300])
      }
      let good = worker.request("load", ["url": .string(origin.url("image/0.png")), "priority": "lowest"])
      #expect(try await worker.response(to: good)["result"]["format"] == "png")
      for id in ids {
        let data = try await worker.response(to: id)["error"]["data"]
        #expect(data["kind"] == "timeout" && data["phase"] == "firstByte")
      }
      let transfers = try await worker.call("stats")["result"]["transfers"]
      #expect((61...120).contains(transfers["started"].integer ?? 0), "not 3 x 60")
    }
  }

  @Test func `a redirect is an answer: what is dead behind it closes no circuit`() async throws {
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
      #expect(state == .null, "nothing is held")
      #expect(try await worker.load(origin.url("image/9.png"))["format"] == "png")
    }
  }
}
