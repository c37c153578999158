import Testing

/// The failures that `stats` counts, and the warning that most loads fail.
@Suite struct FailureStatsTests {
  @Test func `each kind has its count, its latest example and a hint`() async throws {
    try await withOrigin { worker, origin in
      for number in 1...2 { _ = try await worker.failure(origin.url("image/\(number).png?status=404&x-token=secret")) }
      _ = try await worker.failure(origin.url("image/3.png?hold=never"), ["timeoutMs": 200])
      let items: JSON = [.string("no url?x-token=secret"), .string(origin.url("html?x-token=secret"))]
      _ = try await worker.call("prefetch", ["urls": items])
      let id = worker.request("load", ["url": .string(origin.url("image/4.png?hold=gate"))])
      try await origin.held(at: "gate")
      _ = try await worker.call("cancel", ["id": id])
      _ = try await worker.load(origin.url("image/5.png"))
      let failures = try await worker.call("stats")["result"]["failures"].array
      #expect(failures.map { $0["kind"].string } == ["http", "invalidParams", "notAnImage", "timeout"])
      #expect(failures.map { $0["count"].integer } == [2, 1, 1, 1])
      let latest = failures.map { $0["latest"] }
      let base = origin.url("")
      #expect(latest.map { $0["url"].string } == ["\(base)image/2.png", "no url", "\(base)html", "\(base)image/3.png"])
      #expect(latest[0]["status"] == 404 && latest[0]["message"] == "the server answered 404")
      #expect(latest[3]["phase"] == "firstByte")
      #expect(failures.allSatisfy { $0["hint"].string?.isEmpty == false })
    }
  }

  @Test func `if most loads fail, the log says with which kind and what to do`() async throws {
    try await withOrigin { worker, origin in
      for number in 0..<9 { _ = try await worker.load(origin.url("image/\(number).png")) }
      for number in 0..<10 { _ = try await worker.failure(origin.url("image/\(number).png?status=404")) }
      _ = try await worker.call("stats")
      #expect(worker.child.errors.value.text.isEmpty)
      _ = try await worker.failure(origin.url("html"))
      #expect(try await worker.end() == .exit(0))
      let log = worker.child.errors.value.text
      let share = "11 of the 20 loads of the last minute failed, 10 of them with http, such as from \(origin.url(""))"
      #expect(log.hasPrefix("imageworker: warning: \(share.dropLast()). Look at the status."))
      #expect(log.split(separator: "\n").count == 1)
    }
  }
}
