import Platform
import Testing

/// The `timing` of results and errors.
@Suite struct TimingTests {
  /// The phases in their order, as on the wire.
  private static let phases = [
    "lookupMs", "waitMs", "dnsMs", "connectMs", "tlsMs", "requestMs", "bodyMs", "storeMs", "decodeWaitMs", "decodeMs",
    "deliverMs",
  ]

  /// Requires that the phases are not negative and add up to the total, and returns those that happened.
  private func phases(of timing: JSON, sourceLocation: SourceLocation = #_sourceLocation) throws -> [String: Int] {
    func microseconds(_ name: String) throws -> Int? {
      guard timing[name] != .null else { return nil }
      let milliseconds = try #require(timing[name].number, sourceLocation: sourceLocation)
      return Int((milliseconds * 1000).rounded())
    }
    var durations: [String: Int] = [:]
    for phase in Self.phases { durations[phase] = try microseconds(phase) }
    #expect(durations.values.allSatisfy { $0 >= 0 }, sourceLocation: sourceLocation)
    #expect(try durations.values.reduce(0, +) == microseconds("totalMs"), sourceLocation: sourceLocation)
    #expect(timing.names.subtracting(Self.phases).isSubset(of: ["queuedMs", "firstByteMs", "totalMs"]))
    return durations
  }

  @Test(arguments: [("gate", "requestMs"), ("gate@5000", "bodyMs")])
  func `the time that a server holds a response is in the phase in which it does`(hold: String, phase: String)
    async throws
  {
    try await withOrigin { worker, origin in
      let id = worker.request("load", ["url": .string(origin.url("image/1.png?bytes=10000&hold=\(hold)"))])
      try await origin.held(at: "gate")
      let begin = Instant.now
      // Some work between the two times.
      for _ in 0..<20 { _ = try await worker.call("stats") }
      let held = begin.duration(to: .now) / Duration.microseconds(1)
      try await origin.release("gate")
      let timing = try await worker.response(to: id)["result"]["timing"]
      let durations = try phases(of: timing)
      // The worker may receive the bytes before the gate later than the origin says that it holds the others.
      let before = phase == "bodyMs" ? durations["requestMs"] ?? 0 : 0
      #expect(Double(try #require(durations[phase]) + before) >= held)
      #expect(try #require(timing["firstByteMs"].number) <= #require(timing["totalMs"].number))
    }
  }

  @Test func `a transform waits for a decoder and is decoded`() async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/1.png?width=400&height=300&cache-control=max-age=600")
      let transform: JSON = ["transform": ["width": 100]]
      let names = Set(try phases(of: try await worker.load(url, transform)["timing"]).keys)
      #expect(names.isSuperset(of: ["requestMs", "storeMs", "decodeWaitMs", "decodeMs", "deliverMs"]))
      let other: JSON = ["transform": ["width": 50]]
      let cached = Set(try phases(of: try await worker.load(url, other)["timing"]).keys)
      #expect(cached == ["lookupMs", "decodeWaitMs", "decodeMs", "deliverMs"])
    }
  }

  @Test func `an error has the phases until the one in which the load failed`() async throws {
    try await withOrigin { worker, origin in
      let timeout = try await worker.failure(origin.url("image/1.png?hold=never"), ["timeoutMs": 200])
      let durations = try phases(of: timeout["data"]["timing"])
      #expect(durations.keys.contains("requestMs") && !durations.keys.contains("bodyMs"))
      #expect(durations["requestMs"] ?? 0 >= 200_000)
      let refused = try await worker.failure("http://127.0.0.1:1/a.png")
      #expect(try phases(of: refused["data"]["timing"]).keys.contains("connectMs"))
      let absent = try await worker.failure(origin.url("image/2.png"), ["cache": "only-if-cached"])
      #expect(Set(try phases(of: absent["data"]["timing"]).keys) == ["lookupMs"])
    }
  }

  @Test func `the attempts before a retry are a wait`() async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      let result = try await worker.load(origin.url("image/1.png?fail=1&status=503"))
      let durations = try phases(of: result["timing"])
      #expect(result["attempts"] == 2)
      let untilLast = try #require(durations["lookupMs"]) + #require(durations["waitMs"])
      #expect(try #require(result["timing"]["queuedMs"].number) * 1000 < Double(untilLast))
    }
  }
}
