import Foundation
import Testing

/// Workers that share a cache directory.
struct PeerTests {
  /// Runs workers with a shared cache, and an origin. Each worker that was not killed must end with status 0.
  private func withCompany(
    of count: Int, _ options: String..., body: ([WorkerProcess], OriginProcess) async throws -> Void
  ) async throws {
    let directory = try TemporaryDirectory()
    try await turns.taking {
      let origin = try await OriginProcess()
      let workers = try (0..<count).map { _ in
        try WorkerProcess(["--retries", "0"] + options, directory: directory)
      }
      defer { for worker in workers { worker.child.kill() } }
      // All workers have started.
      for worker in workers { try await worker.call("initialize") }
      try await body(workers, origin)
      for worker in workers where worker.child.ending.value == nil { #expect(try await worker.end() == .exit(0)) }
    }
  }

  /// Waits until the worker waits for a transfer of a peer.
  private func waitsForOther(_ worker: WorkerProcess) async throws {
    for _ in 0..<10_000 {
      let origins = try await worker.call("stats")["result"]["origins"].array
      if origins.contains(where: { $0["reason"] == "otherWorker" }) { return }
    }
    throw NeverHappened(what: "a wait for another worker", seen: "\(worker.lines.suffix(3))")
  }

  /// Stops a worker between two transactions. Stopped within one, it would block the peers' writes to the index.
  private func stop(_ worker: WorkerProcess) async throws {
    let process = "/proc/\(worker.child.identifier)"
    func isStopped() throws -> Bool {
      try FileManager.default.contentsOfDirectory(atPath: process + "/task").allSatisfy { thread in
        // The state follows the name in parentheses (proc(5)).
        try String(contentsOfFile: "\(process)/task/\(thread)/stat", encoding: .utf8).contains(") T ")
      }
    }
    while true {
      worker.child.signal(SIGSTOP)
      while try !isStopped() { try await Task.sleep(for: .milliseconds(1)) }
      let locks = try String(contentsOfFile: "/proc/locks", encoding: .utf8).split(separator: "\n")
      let own = locks.filter { $0.split(separator: " ").dropFirst(4).first == "\(worker.child.identifier)" }
      if !own.contains(where: { $0.contains("POSIX") && $0.contains("WRITE") }) { return }
      worker.child.signal(SIGCONT)
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  /// Starts a transfer in the first worker and lets its peers wait for it.
  private func beginAndWait(
    _ url: String, _ workers: [WorkerProcess], _ origin: OriginProcess, at gate: String
  ) async throws -> [JSON] {
    var ids = [workers[0].request("load", ["url": .string(url)])]
    try await origin.held(1, at: gate)
    for worker in workers.dropFirst() {
      ids.append(worker.request("load", ["url": .string(url)]))
      try await waitsForOther(worker)
    }
    return ids
  }

  private func places(_ workers: [WorkerProcess], _ ids: [JSON]) async throws -> [JSON] {
    var places: [JSON] = []
    for (worker, id) in zip(workers, ids) { places.append(try await worker.response(to: id)["result"]["cache"]) }
    return places
  }

  @Test func `an image that was fetched with one cookie file is not served to a worker with another`() async throws {
    let directory = try TemporaryDirectory()
    try await turns.taking {
      let origin = try await OriginProcess()
      let url = origin.url("image/1.png?by=cookie&cache-control=max-age%3D3600")
      var seen: [[UInt8]] = []
      var places: [JSON] = []
      for cookies in ["a", "b", "", "elsewhere", "a", ""] {
        var options: [String] = []
        if !cookies.isEmpty {
          let file = directory.path + "/cookies-" + cookies
          let host = cookies == "elsewhere" ? "example.com" : "127.0.0.1"
          let byteOrderMark = cookies == "a" ? "\u{FEFF}" : ""
          let line = "\(byteOrderMark)\(host)\tFALSE\t/\tFALSE\t0\tuser\t\(cookies)\n"
          try Data(line.utf8).write(to: URL(fileURLWithPath: file))
          options = ["--cookies", file]
        }
        let worker = try WorkerProcess(options, directory: directory)
        defer { worker.child.kill() }
        let image = try await worker.load(url)
        seen.append(try contents(of: image["path"].string))
        places.append(image["cache"])
        #expect(try await worker.end() == .exit(0))
      }
      // A redirect can lead to a host to which the cookies are sent.
      #expect(places == ["miss", "miss", "miss", "miss", "disk", "disk"])
      #expect(Set(seen).count == 3 && seen[2] == seen[3] && seen[0] == seen[4] && seen[2] == seen[5])
    }
  }

  @Test func `four workers make 500 transfers for the same 500 images`() async throws {
    try await withCompany(of: 4) { workers, origin in
      let urls = (0..<500).map { origin.url("image/\($0).png?cache-control=max-age=600") }
      let requests = urls.enumerated().map { number, url in
        requestLine("load", ["url": .string(url), "deliver": "none"], id: .integer(number))
      }
      for worker in workers { worker.send(requests) }
      var misses = 0
      for worker in workers {
        let responses = try await worker.lines(500, "responses") { $0["id"].integer != nil }
        #expect(responses.allSatisfy { $0["error"] == .null })
        misses += responses.count { $0["result"]["cache"] == "miss" }
      }
      #expect(misses == 500)
      #expect(try await origin.counts()["requests"] == 500)
    }
  }

  @Test func `a load does not wait for another worker's transfer of another URL with the same key`() async throws {
    try await withCompany(of: 2) { workers, origin in
      let slow: JSON = ["url": .string(origin.url("text?status=403&hold=gate")), "key": "one"]
      let failing = workers[0].request("load", slow)
      try await origin.held(1, at: "gate")
      let other: JSON = ["url": .string(origin.url("image/1.png")), "key": "one"]
      #expect(try await workers[1].call("load", other)["result"]["cache"] == "miss")
      try await origin.release("gate")
      #expect(try await workers[0].response(to: failing)["error"]["data"]["status"] == 403)
    }
  }

  @Test func `waiting workers get the image from disk as soon as it is stored`() async throws {
    try await withCompany(of: 3) { workers, origin in
      let url = origin.url("image/1.png?hold=gate&cache-control=max-age=600")
      let ids = try await beginAndWait(url, workers, origin, at: "gate")
      for worker in workers {
        let report = try await worker.call("query", ["url": .string(url)])["result"]
        #expect(report["lease"] == ["pid": .integer(Int(workers[0].child.identifier))])
      }
      try await origin.release("gate")
      #expect(try await places(workers, ids) == ["miss", "disk", "disk"])
      #expect(try await workers[0].call("query", ["url": .string(url)])["result"]["lease"] == .null)
      #expect(try await origin.counts()["requests"] == 1)
    }
  }

  @Test func `a peer takes over the transfer of a killed worker`() async throws {
    try await withCompany(of: 3) { workers, origin in
      let url = origin.url("image/1.png?hold=gate&cache-control=max-age=600")
      let ids = try await beginAndWait(url, workers, origin, at: "gate")
      workers[0].child.signal(SIGKILL)
      try await origin.reaches("requests", 2)
      try await origin.release("gate")
      let places = try await places([WorkerProcess](workers[1...]), [JSON](ids[1...]))
      #expect(Set(places) == ["miss", "disk"])
      #expect(try await origin.counts()["requests"] == 2)
    }
  }

  @Test func `a stopped worker does not block its peers, and can continue later`() async throws {
    try await withCompany(of: 3) { workers, origin in
      let url = origin.url("image/1.png?hold=gate&cache-control=max-age=600")
      let ids = try await beginAndWait(url, workers, origin, at: "gate")
      try await stop(workers[0])
      try await origin.reaches("requests", 2)
      try await origin.release("gate")
      let others = try await places([WorkerProcess](workers[1...]), [JSON](ids[1...]))
      #expect(Set(others) == ["miss", "disk"])
      workers[0].child.signal(SIGCONT)
      #expect(try await places(workers, ids)[0] == "miss")
      #expect(try await origin.counts()["requests"] == 2)
    }
  }

  @Test func `peers wait once for a response that may not be stored, and then transfer it concurrently`() async throws {
    try await withCompany(of: 4) { workers, origin in
      let url = origin.url("image/1.png?hold=gate&cache-control=no-store")
      let ids = try await beginAndWait(url, workers, origin, at: "gate")
      try await origin.release("gate", count: 1)
      try await origin.held(3, at: "gate")
      try await origin.release("gate")
      #expect(try await places(workers, ids) == ["miss", "miss", "miss", "miss"])
    }
  }

  @Test func `one worker revalidates a stale image for all`() async throws {
    try await withCompany(of: 3) { workers, origin in
      let url = origin.url("s.png")
      try await origin.script(
        "s.png",
        [
          "image/1.png?etag=a&cache-control=max-age=0", "image/1.png?etag=a&cache-control=max-age=600&hold=gate",
        ])
      for worker in workers { _ = try await worker.load(url, ["cache": "force-cache"]) }
      let ids = try await beginAndWait(url, workers, origin, at: "gate")
      try await origin.release("gate")
      #expect(try await places(workers, ids) == ["revalidated", "memory", "memory"])
      #expect(try await origin.log("s.png").map { $0["status"] } == [200, 304])
    }
  }

  @Test func `a load that waits for a peer can be cancelled, and its deadline applies`() async throws {
    try await withCompany(of: 2) { workers, origin in
      let url = origin.url("image/1.png?hold=gate")
      let ids = try await beginAndWait(url, workers, origin, at: "gate")
      let late = workers[1].request("load", ["url": .string(url), "deadlineMs": 50])
      #expect(try await workers[1].response(to: late)["error"]["data"]["phase"] == "deadline")
      try await workers[1].call("cancel", ["url": .string(url)])
      #expect(try await workers[1].response(to: ids[1])["error"]["data"]["kind"] == "cancelled")
      try await origin.release("gate")
      #expect(try await places([workers[0]], [ids[0]]) == ["miss"])
      #expect(try await origin.counts()["requests"] == 1)
    }
  }

  @Test func `an image that one worker clears is served by no peer from any tier`() async throws {
    try await withCompany(of: 2) { workers, origin in
      let urls = (1...2).map { origin.url("image/\($0).png?cache-control=max-age=600") }
      for worker in workers {
        for url in urls { _ = try await worker.load(url) }
      }
      #expect(try await workers[1].load(urls[0])["cache"] == "memory")
      #expect(try await workers[0].call("clear", ["url": .string(urls[0])])["result"]["removed"] == 1)
      #expect(try await workers[1].load(urls[0])["cache"] == "miss")
      #expect(try await workers[1].load(urls[1])["cache"] == "memory")
      #expect(try await workers[0].call("clear")["result"]["removed"] == 2)
      #expect(try await workers[1].load(urls[1], ["store": "memory"])["cache"] == "miss")
      // An image that only the memory of the peer has is removed, too.
      #expect(try await workers[1].load(urls[1])["cache"] == "memory")
      try await workers[0].call("clear", ["prefix": .string(origin.base)])
      #expect(try await workers[1].load(urls[1])["cache"] == "miss")
    }
  }

  @Test func `a transfer of a peer that began before a clear is not stored`() async throws {
    try await withCompany(of: 2) { workers, origin in
      let url = origin.url("image/1.png?hold=gate&cache-control=max-age=600")
      let early = workers[1].request("load", ["url": .string(url), "deliver": "none"])
      try await origin.held(1, at: "gate")
      try await workers[0].call("clear")
      // The load joins no transfer that began before the clear.
      let late = workers[1].request("load", ["url": .string(url), "deliver": "none"])
      try await origin.held(2, at: "gate")
      try await origin.release("gate", count: 1)
      #expect(try await workers[1].response(to: early)["result"]["cache"] == "miss")
      #expect(try await workers[0].call("query", ["url": .string(url)])["result"]["disk"] == false)
      try await origin.release("gate")
      #expect(try await workers[1].response(to: late)["result"]["cache"] == "miss")
    }
  }

  @Test func `after a clear, a worker does not wait for a transfer that a peer began before`() async throws {
    try await withCompany(of: 3) { workers, origin in
      let url = origin.url("image/1.png?hold=gate&cache-control=max-age=600")
      let early = workers[0].request("load", ["url": .string(url)])
      try await origin.held(1, at: "gate")
      try await workers[1].call("clear", ["url": .string(url)])
      let late = workers[1...].map { $0.request("load", ["url": .string(url)]) }
      // One of the workers transfers it for both.
      try await origin.held(2, at: "gate")
      try await origin.release("gate")
      #expect(try await Set(places([WorkerProcess](workers[1...]), late)) == ["miss", "disk"])
      #expect(try await workers[0].response(to: early)["result"]["cache"] == "miss")
      #expect(try await origin.counts()["requests"] == 2)
    }
  }

  @Test func `the limit holds for four workers that fill the cache together`() async throws {
    try await withCompany(of: 4, "--disk-limit", "400K") { workers, origin in
      let folder = workers[0].directory.appending("cache/default")
      for (number, worker) in workers.enumerated() {
        let requests = (0..<100).map { image -> JSON in
          let bytes = image % 10 == 0 ? 300_000 : 5000
          let url = origin.url("image/\(number * 1000 + image).png?cache-control=max-age=600&bytes=\(bytes)&chunked")
          return requestLine("load", ["url": .string(url), "deliver": "none"], id: .integer(image))
        }
        worker.send(requests)
      }
      for worker in workers {
        var answered = 0
        while answered < 100 {
          answered += 1
          let responses = try await worker.lines(answered, "responses") { $0["id"].integer != nil }
          #expect(responses.allSatisfy { $0["error"] == .null })
          #expect(try allocatedBytes(under: folder) <= 400 << 10)
        }
      }
    }
  }

  /// The disk usage of image and temporary files.
  private func allocatedBytes(under folder: String) throws -> Int {
    let paths = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
    return paths.filter { $0.contains("/") && !$0.hasPrefix("workers/") }.reduce(0) { sum, path in
      var status = stat()
      return lstat(folder + "/" + path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        ? sum + Int(status.st_blocks) * 512 : sum
    }
  }
}
