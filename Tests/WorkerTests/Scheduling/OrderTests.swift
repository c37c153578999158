import Testing

/// Lines take effect in the order in which they are sent. Each test sends all its lines in one write.
@Suite struct OrderTests {
  @Test func `cancel affects all earlier loads and no later ones`() async throws {
    try await withOrigin { worker, origin in
      let url = JSON.string(origin.url("image/1.png"))
      var lines: [JSON] = []
      for round in 0..<100 {
        lines += [
          requestLine("load", ["url": url, "group": "g", "cache": "no-store"], id: .string("before \(round)")),
          requestLine("cancel", ["group": "g"], id: .string("cancel \(round)")),
        ]
      }
      lines.append(requestLine("load", ["url": url, "group": "g"], id: "after"))
      worker.send(lines)
      #expect(try await worker.response(to: "after")["result"]["format"] == "png")
      for round in 0..<100 {
        let cancelled = try await worker.response(to: .string("cancel \(round)"))["result"]["cancelled"]
        let answer = try await worker.response(to: .string("before \(round)"))
        // The load may have finished before the next line was read, but both answers must agree.
        #expect(cancelled == (answer["error"]["code"] == -32800 ? 1 : 0))
      }
    }
  }

  @Test func `a load after a clear does not get an older image`() async throws {
    try await withOrigin { worker, origin in
      let load = requestLine(
        "load", ["url": .string(origin.url("image/1.png?cache-control=max-age%3D60"))], id: "again")
      _ = try await worker.load(origin.url("image/1.png?cache-control=max-age%3D60"))
      worker.send([requestLine("clear", [:], id: "clear"), load])
      #expect(try await worker.response(to: "again")["result"]["cache"] == "miss")
      #expect(try await worker.response(to: "clear")["result"]["removed"] == 1)
    }
  }

  @Test func `a load after a clear joins no older transfer`() async throws {
    try await withOrigin { worker, origin in
      try await origin.script(
        "s", ["image/1.png?hold=a&cache-control=max-age%3D60", "image/2.png?cache-control=max-age%3D60"])
      let url = origin.url("s")
      let first = worker.request("load", ["url": .string(url)])
      try await origin.held(at: "a")
      _ = try await worker.call("clear")
      let second = try await worker.load(url)
      try await origin.release("a")
      let old = try await worker.response(to: first)["result"]
      #expect(try contents(of: old["path"].string) != contents(of: second["path"].string))
      // The response of the older transfer does not replace that of the newer one.
      #expect(try await worker.load(url)["path"] == second["path"])
    }
  }

  @Test func `configure takes effect for the next line`() async throws {
    try await withOrigin { worker, origin in
      worker.send([
        requestLine("configure", ["maxBytes": 100], id: 1),
        requestLine("load", ["url": .string(origin.url("image/1.png?bytes=1000"))], id: 2),
        requestLine("configure", ["maxBytes": 10_000], id: 3),
        requestLine("load", ["url": .string(origin.url("image/2.png?bytes=1000"))], id: 4),
      ])
      let response = try await worker.response(to: 2)
      #expect(response["error"]["data"]["kind"] == "tooLarge")
      let second = try await worker.response(to: 4)
      #expect(second["result"]["bytes"] == 1000)
      let third = try await worker.response(to: 3)
      #expect(third["result"]["maxBytes"] == 10_000)
    }
  }

  @Test func `responses are sent in the order of completion`() async throws {
    try await withOrigin { worker, origin in
      let slow = worker.request("load", ["url": .string(origin.url("image/1.png?hold=a"))])
      _ = try await worker.load(origin.url("image/2.png"))
      #expect(!worker.lines.contains { $0["id"] == slow })
      try await origin.release("a")
      _ = try await worker.response(to: slow)
    }
  }
}
