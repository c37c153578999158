import Testing

/// The order of loads: limits, priorities, joining, cancel and slots. Gates at the origin control the progress.
@Suite struct SchedulingTests {
  @Test func `the number of concurrent transfers stays within the limits`() async throws {
    try await withOrigin("--max-concurrent", "5", "--max-per-host", "3", origin: ["--origins", "2"]) { worker, origin in
      let ids = (1...20).map { number in
        worker.request("load", ["url": .string("\(origin.bases[number % 2])/image/\(number).png?hold=a")])
      }
      try await origin.held(5, at: "a")
      try await origin.release("a")
      for id in ids { _ = try await worker.response(to: id) }
      #expect(
        5...6 ~= (try await origin.counts()["mostActive"].integer ?? 0), "a transfer that waits long may be preempted")
    }
  }

  @Test func `the highest priority is first, and loads of equal priority start in the order of their lines`()
    async throws
  {
    let priorities = ["low", "normal", "lowest", "highest", "high", "highest", "normal"]
    let order = try await arrivals(priorities.map { ["priority": .string($0)] })
    #expect(order == [3, 5, 4, 1, 6, 0, 2])
  }

  @Test func `with --order lifo, the last load of equal priority is first`() async throws {
    let order = try await arrivals(["low", "high", "low", "high"].map { ["priority": .string($0)] }, "--order", "lifo")
    #expect(order == [3, 1, 2, 0])
  }

  @Test func `prioritize moves waiting loads`() async throws {
    let moves = [requestLine("prioritize", ["group": "b", "priority": "high"], id: "move")]
    let order = try await arrivals([["group": "a"], ["group": "b"], ["group": "a"], ["group": "b"]], then: moves)
    #expect(order == [1, 3, 0, 2])
  }

  @Test func `prioritize counts the changed requests`() async throws {
    try await withOrigin("--max-per-host", "1") { worker, origin in
      worker.request("load", ["url": .string(origin.url("image/0.png?hold=a"))])
      let url = origin.url("image/1.png")
      worker.request("load", ["url": .string(url), "slot": "s"], id: "x")
      let ways: [JSON] = [["id": "x"], ["url": .string(url)], ["slot": "s"]]
      for (way, priority) in zip(ways, ["low", "high", "highest"]) {
        let changed = try await worker.call("prioritize", way.merging(["priority": .string(priority)]))
        #expect(changed["result"] == ["changed": 1])
      }
      #expect(try await worker.call("prioritize", ["id": "nobody", "priority": "low"])["result"] == ["changed": 0])
      try await origin.release("a")
    }
  }

  @Test(arguments: ["low", "highest"], ["fifo", "lifo"]) func `a group keeps its order when its priority changes`(
    to: String, order: String
  ) async throws {
    try await withOrigin("--max-per-host", "1", "--order", order) { worker, origin in
      worker.request("load", ["url": .string(origin.url("image/1000.png?hold=a"))])
      try await origin.held(at: "a")
      let targets = (0..<6).map { "image/\($0).png" }
      let ids = targets.map { target in
        worker.request("load", ["url": .string(origin.url(target)), "group": "g", "priority": "high"])
      }
      // When this is answered, all loads wait in the queue.
      try await worker.call("stats")
      let changed = try await worker.call("prioritize", ["group": "g", "priority": .string(to)])
      #expect(changed["result"] == ["changed": 6])
      try await origin.release("a")
      for id in ids { _ = try await worker.response(to: id) }
      let inOrder = (order == "fifo" ? targets : targets.reversed()).map { "/" + $0 }
      #expect(try await origin.log().dropFirst().map { $0["target"].string } == inOrder)
    }
  }

  @Test func `a prefetch keeps its order when its priority changes`() async throws {
    try await withOrigin("--max-per-host", "1") { worker, origin in
      worker.request("load", ["url": .string(origin.url("image/1000.png?hold=a"))])
      try await origin.held(at: "a")
      let targets = (0..<20).map { "image/\($0).png" }
      worker.request("prefetch", ["urls": .array(targets.map { .string(origin.url($0)) })], id: "all")
      try await worker.call("stats")
      for priority in ["high", "low"] {
        let changed = try await worker.call("prioritize", ["id": "all", "priority": .string(priority)])
        #expect(changed["result"] == ["changed": 1])
      }
      try await origin.release("a")
      _ = try await worker.response(to: "all")
      #expect(try await origin.log().dropFirst().map { $0["target"].string } == targets.map { "/" + $0 })
    }
  }

  // MARK: - Joining

  @Test func `equal loads share a transfer, and each gets its events and its response`() async throws {
    try await withOrigin { worker, origin in
      let url = JSON.string(origin.url("image/1.png?bytes=10000&hold=a"))
      let ids = (1...50).map { _ in worker.request("load", ["url": url, "events": ["started"]]) }
      try await origin.held(at: "a")
      try await origin.release("a")
      for id in ids {
        #expect(try await worker.response(to: id)["result"]["bytes"] == 10_000)
        #expect(worker.events(for: id).map { $0["method"] } == ["started"])
      }
      #expect(try await origin.counts()["requests"] == 1)
    }
  }

  @Test func `a joining load raises the priority of the transfer`() async throws {
    let same = JSON.string("image/99.png?hold=a")
    let order = try await arrivals([
      ["target": same, "priority": "low"], [:], ["target": same, "priority": "highest"],
    ])
    #expect(order == [0, 1])
  }

  @Test func `loads with different credentials do not share`() async throws {
    try await withOrigin { worker, origin in
      let url = JSON.string(origin.url("image/1.png?by=authorization&hold=a"))
      let ids = ["Basic a", "Basic b"].map { user in
        worker.request("load", ["url": url, "headers": ["Authorization": .string(user)]])
      }
      try await origin.held(2, at: "a")
      try await origin.release("a")
      var images: [[UInt8]] = []
      for id in ids { images.append(try contents(of: try await worker.response(to: id)["result"]["path"].string)) }
      #expect(images[0] != images[1])
    }
  }

  // MARK: - Cancel

  @Test(arguments: ["id", "url", "group", "slot", "all"])
  func `each form of cancel ends the exchange`(way: String) async throws {
    try await withOrigin { worker, origin in
      let url = JSON.string(origin.url("image/1.png?hold=a"))
      worker.request("load", ["url": url, "group": "g", "slot": "s"], id: "x")
      try await origin.held(at: "a")
      let params: [String: JSON] = ["id": "x", "url": url, "group": "g", "slot": "s", "all": true]
      let result = try await worker.call("cancel", .object([way: params[way] ?? .null]))["result"]
      #expect(result == ["cancelled": 1])
      let error = try await worker.response(to: "x")["error"]
      #expect(error["code"] == -32800)
      #expect(error["data"]["kind"] == "cancelled")
      try await origin.reaches("left", 1)
    }
  }

  @Test func `cancel without a matching request returns 0`() async throws {
    try await withWorker { worker in
      for params in [["id": 5], ["url": "http://a/"], ["group": "g"], ["slot": "s"], ["all": true]] as [JSON] {
        let response = try await worker.call("cancel", params)
        #expect(response["result"] == ["cancelled": 0])
      }
      for params in [[:], ["id": 5, "group": "g"], ["all": false]] as [JSON] {
        let response = try await worker.call("cancel", params)
        #expect(response["error"]["code"] == -32602)
      }
    }
  }

  @Test func `if one of two coalesced loads is cancelled, the other gets its image`() async throws {
    try await withOrigin { worker, origin in
      let url = JSON.string(origin.url("image/1.png?hold=a"))
      worker.request("load", ["url": url], id: "leaves")
      worker.request("load", ["url": url], id: "stays")
      try await origin.held(at: "a")
      try await worker.call("cancel", ["id": "leaves"])
      #expect(try await worker.response(to: "leaves")["error"]["code"] == -32800)
      try await origin.release("a")
      #expect(try await worker.response(to: "stays")["result"]["format"] == "png")
      #expect(try await origin.counts()["requests"] == 1)
    }
  }

  @Test func `a waiting load is cancelled without a request`() async throws {
    try await withOrigin("--max-per-host", "1") { worker, origin in
      let first = worker.request("load", ["url": .string(origin.url("image/1.png?hold=a"))])
      try await origin.held(at: "a")
      let second = worker.request("load", ["url": .string(origin.url("image/2.png"))])
      try await worker.call("cancel", ["id": second])
      #expect(try await worker.response(to: second)["error"]["code"] == -32800)
      try await origin.release("a")
      _ = try await worker.response(to: first)
      #expect(try await origin.counts()["requests"] == 1)
    }
  }

  // MARK: - Slots

  @Test func `a load with another URL in the same slot cancels the previous one`() async throws {
    try await withOrigin { worker, origin in
      let urls = (1...2).map { JSON.string(origin.url("image/\($0).png?hold=a")) }
      let first = worker.request("load", ["url": urls[0], "slot": "s"])
      try await origin.held(at: "a")
      let second = worker.request("load", ["url": urls[1], "slot": "s"])
      #expect(try await worker.response(to: first)["error"]["code"] == -32800)
      try await origin.release("a")
      #expect(try await worker.response(to: second)["result"]["url"] == urls[1])
    }
  }

  @Test func `a load with the same URL in the same slot joins the previous one`() async throws {
    try await withOrigin { worker, origin in
      let url = JSON.string(origin.url("image/1.png?hold=a"))
      let ids = (1...2).map { _ in worker.request("load", ["url": url, "slot": "s"]) }
      try await origin.held(at: "a")
      try await origin.release("a")
      for id in ids { #expect(try await worker.response(to: id)["result"]["format"] == "png") }
    }
  }

  @Test func `loads of A, B and A in one slot end with the image of A`() async throws {
    try await withOrigin { worker, origin in
      let (a, b) = (JSON.string(origin.url("image/1.png?hold=a")), JSON.string(origin.url("image/2.png?hold=a")))
      let ids = [a, b, a].map { worker.request("load", ["url": $0, "slot": "s"]) }
      for id in ids.prefix(2) { #expect(try await worker.response(to: id)["error"]["code"] == -32800) }
      try await origin.release("a")
      #expect(try await worker.response(to: ids[2])["result"]["url"] == a)
    }
  }

  // MARK: - Pause, and the limit of the queue

  @Test func `while the worker is paused, running transfers finish and none starts`() async throws {
    try await withOrigin { worker, origin in
      let running = worker.request(
        "load", ["url": .string(origin.url("image/1.png?hold=a&cache-control=max-age%3D60"))])
      try await origin.held(at: "a")
      #expect(try await worker.call("pause")["result"] == ["paused": true])
      let waiting = worker.request("load", ["url": .string(origin.url("image/2.png"))])
      try await origin.release("a")
      _ = try await worker.response(to: running)
      // Cached images are still served.
      _ = try await worker.load(origin.url("image/1.png?hold=a&cache-control=max-age%3D60"))
      #expect(try await worker.call("stats")["result"]["queue"]["paused"] == true)
      #expect(try await origin.counts()["requests"] == 1)
      #expect(try await worker.call("resume")["result"] == ["paused": false])
      _ = try await worker.response(to: waiting)
    }
  }

  @Test func `a load beyond the limit of the queue fails with overloaded`() async throws {
    try await withOrigin("--max-per-host", "1", "--max-queued", "2") { worker, origin in
      let first = worker.request("load", ["url": .string(origin.url("image/0.png?hold=a"))])
      try await origin.held(at: "a")
      let waiting = (1...2).map { worker.request("load", ["url": .string(origin.url("image/\($0).png"))]) }
      let error = try await worker.failure(origin.url("image/3.png"))
      #expect(error["code"] == 5002)
      #expect(error["data"]["kind"] == "overloaded")
      // A load that joins a transfer does not count.
      let joined = worker.request("load", ["url": .string(origin.url("image/1.png"))])
      try await origin.release("a")
      for id in [first, joined] + waiting { #expect(try await worker.response(to: id)["result"]["format"] == "png") }
    }
  }

  /// Sends loads while the only transfer is held, and returns their indices in the order of their requests at the
  /// origin. A member `target` replaces the URL of the load.
  private func arrivals(_ loads: [JSON], _ options: String..., then more: [JSON] = []) async throws -> [Int] {
    var order: [Int] = []
    try await turns.taking {
      let origin = try await OriginProcess()
      let worker = try WorkerProcess(["--max-per-host", "1", "--retries", "0"] + options)
      worker.request("load", ["url": .string(origin.url("image/1000.png?hold=a"))], id: "blocker")
      try await origin.held(at: "a")
      let targets = loads.indices.map { loads[$0]["target"].string ?? "image/\($0).png" }
      worker.send(
        zip(loads.indices, loads).map { index, load in
          let url: JSON = .object(["url": .string(origin.url(targets[index]))])
          guard case .object(var members) = url.merging(load) else { return .null }
          members["target"] = nil
          return requestLine("load", .object(members), id: .integer(index))
        } + more)
      // The answer to a later line shows that all earlier lines have taken effect.
      try await worker.call("stats", [:])
      try await origin.release("a")
      for index in loads.indices { _ = try await worker.response(to: .integer(index)) }
      let seen = try await origin.log().dropFirst().compactMap(\.["target"].string)
      order = seen.compactMap { target in targets.firstIndex { "/\($0)" == target } }
      #expect(try await worker.end() == .exit(0))
    }
    return order
  }

  @Test func `the worker raises the descriptor limit for many concurrent transfers`() async throws {
    try await turns.taking {
      let origin = try await OriginProcess()
      let directory = try TemporaryDirectory()
      let script = #"ulimit -S -n 48; exec "$0" --cache-dir "$1" --max-concurrent 100 --max-per-host 100"#
      let shell = try ChildProcess(
        "/bin/sh", ["-c", script, try WorkerProcess.binary(), directory.path], environment: plainEnvironment)
      for number in 1...100 {
        let load = requestLine("load", ["url": .string(origin.url("image/\(number).png?hold=a"))], id: .integer(number))
        shell.write((load.line + "\n").utf8)
      }
      try await origin.held(100, at: "a")
      try await origin.release("a")
      shell.closeInput()
      #expect(try await shell.ended() == .exit(0))
      _ = try await shell.output.until("the end of its output") { $0.isClosed ? true : nil }
      #expect(shell.output.value.lines.count == 100)
      #expect(!shell.output.value.text.contains("\"error\""))
    }
  }

  @Test func `a load starts at once if a transfer is free, even if further loads follow quickly`() async throws {
    try await withOrigin("--max-per-host", "2", "--max-queued", "1") { worker, origin in
      let lines = (1...4).map { number in
        requestLine("load", ["url": .string(origin.url("image/\(number).png?hold=a"))], id: .integer(number))
      }
      worker.send(lines)
      #expect(try await worker.response(to: 4)["error"]["data"]["kind"] == "overloaded")
      try await origin.held(2, at: "a")
      try await origin.release("a")
      for id in 1...3 { #expect(try await worker.response(to: .integer(id))["result"]["format"] == "png") }
    }
  }

  @Test(
    arguments: [
      (
        "raised to the back", [("1", "normal", "default"), ("2", "high", "default"), ("3", "high", "default")],
        ["prioritize": ["id": "1", "priority": "high"]], ["2", "3", "1"]
      ),
      (
        "lowered to the front", [("1", "low", "default"), ("2", "low", "default"), ("3", "high", "default")],
        ["prioritize": ["id": "3", "priority": "low"]], ["3", "1", "2"]
      ),
      (
        "past the cache, in its turn",
        [
          ("1", "normal", "default"), ("2", "normal", "reload"), ("3", "normal", "default"),
          ("4", "normal", "no-store"),
        ], [:], ["1", "2", "3", "4"]
      ),
    ] as [(String, [(String, String, String)], [String: JSON], [String])])
  func `the lines of one write take effect in their order`(
    name: String, loads: [(String, String, String)], then: [String: JSON], order: [String]
  ) async throws {
    try await withOrigin("--max-per-host", "1") { worker, origin in
      worker.request("load", ["url": .string(origin.url("image/0.png?hold=a"))])
      try await origin.held(at: "a")
      let lines: [JSON] =
        loads.map { id, priority, mode in
          let url = JSON.string(origin.url("image/\(id).png"))
          return [
            "id": .string(id), "method": "load",
            "params": ["url": url, "priority": .string(priority), "cache": .string(mode)],
          ]
        } + then.map { method, params in ["id": "then", "method": .string(method), "params": params] }
      worker.send(lines)
      try await worker.call("stats")
      try await origin.release("a")
      for (id, _, _) in loads { _ = try await worker.response(to: .string(id)) }
      let seen = try await origin.log().compactMap { $0["target"].string }.dropFirst()
      #expect(Array(seen) == order.map { "/image/\($0).png" }, "\(name)")
    }
  }
}
