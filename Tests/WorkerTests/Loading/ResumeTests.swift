import Foundation
import Platform
import Testing

/// Resumption of interrupted transfers, observed at the origin and the host.
@Suite struct ResumeTests {
  private static let image = "image/7.png?bytes=900000"
  /// The bytes after which the first transfer breaks: one value for a partial body in memory, one for a body on disk.
  static let places = [100_000, 500_000]

  /// The same image without interruption.
  private func original(_ worker: WorkerProcess, _ origin: OriginProcess, _ target: String = image) async throws -> Data
  {
    let result = try await worker.load(origin.url("\(target)&x-original=1"))
    return try Data(contentsOf: URL(filePath: result["path"].string ?? ""))
  }

  private func content(_ result: JSON) throws -> Data {
    try Data(contentsOf: URL(filePath: result["path"].string ?? ""))
  }

  private func ranges(_ log: [JSON]) -> [[String]] { log.map { OriginProcess.header("range", of: $0) } }

  @Test(arguments: places, ["truncate", "reset"])
  func `an interrupted transfer is resumed at its offset`(place: Int, how: String) async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      let target = "\(Self.image)&etag=a&cache-control=max-age=60"
      try await origin.script("s.png", ["\(target)&\(how)=\(place)", target])
      let id = worker.request("load", ["url": .string(origin.url("s.png")), "events": ["progress", "retrying"]])
      let result = try await worker.response(to: id)["result"]
      #expect(try content(result) == (try await original(worker, origin)))
      #expect(result["bytes"] == 900_000)
      #expect(result["attempts"] == 2)
      #expect(result["cache"] == "miss")

      let log = try await origin.log("s.png")
      #expect(log.map { $0["status"] } == [200, 206])
      #expect(OriginProcess.header("range", of: log[1]) == ["bytes=\(900_000 - (log[1]["sent"].integer ?? 0))-"])
      #expect(OriginProcess.header("if-range", of: log[1]) == ["\"a\""])

      // Progress counts the whole body, and only increases except after `retrying`.
      let events = worker.events(for: id)
      let retrying = try #require(events.firstIndex { $0["method"] == "retrying" })
      for part in [events[..<retrying], events[(retrying + 1)...]] {
        let received = part.map { $0["params"]["received"].integer ?? -1 }
        #expect(received == received.sorted())
      }
      #expect(events[(retrying + 1)...].allSatisfy { $0["params"]["total"] == 900_000 })
      #expect(events.last?["params"]["received"] == 900_000)

      // It is stored as a complete 200 response.
      let again = try await worker.load(origin.url("s.png"), ["response": true])
      #expect(again["cache"] != "miss")
      #expect(again["response"]["status"] == 200)
      #expect(again["response"]["headers"]["content-length"] == "900000")
      #expect(again["response"]["headers"]["content-range"] == .null)
      #expect(try content(again) == (try content(result)))
    }
  }

  @Test func `only received bytes count as transferred`() async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      let target = "\(Self.image)&etag=a"
      try await origin.script("s.png", ["\(target)&truncate=500000", target])
      _ = try await worker.load(origin.url("s.png"))
      #expect(try await worker.call("stats")["result"]["transfers"]["bytes"] == 900_000)
    }
  }

  @Test(arguments: ["200000000", "9223372036854775807"])
  func `a range response that announces more than maxBytes leads to the plain request`(length: String) async throws {
    try await withOrigin("--retries", "1", "--disk-limit", "300M") { worker, origin in
      let target = "\(Self.image)&etag=a"
      let last = length.hasSuffix("7") ? "9223372036854775806" : "199999999"
      let range = "header=content-range:bytes%20100000-\(last)/\(length)"
      try await origin.script(
        "s.png", ["\(target)&chunked&truncate=100000", "\(target)&chunked&status=206&\(range)", target])
      let result = try await worker.load(origin.url("s.png"))
      #expect(try content(result) == (try await original(worker, origin)))
      #expect(try await origin.log("s.png").map { $0["status"] } == [200, 206, 200])
    }
  }

  @Test(arguments: places) func `two interruptions cause two resumptions`(place: Int) async throws {
    try await withOrigin("--retries", "2") { worker, origin in
      let target = "\(Self.image)&etag=a"
      try await origin.script("s.png", ["\(target)&truncate=\(place)", "\(target)&truncate=200000", target])
      let result = try await worker.load(origin.url("s.png"))
      #expect(try content(result) == (try await original(worker, origin)))
      let log = try await origin.log("s.png")
      #expect(log.map { $0["status"] } == [200, 206, 206])
      #expect(log[2]["sent"].integer ?? 0 < 900_000 - place)
    }
  }

  struct Change: CustomTestStringConvertible, Sendable {
    var what: String
    /// The targets of the first response and of the second.
    var first: String
    var second: String
    /// The statuses of the origin, including that of the complete response after a range mismatch.
    var statuses: [JSON]
    /// Whether the second request must have Range and If-Range.
    var asks = true

    var testDescription: String { what }
  }

  static let changes = [
    Change(what: "another ETag", first: "etag=a", second: "etag=b", statuses: [200, 200]),
    Change(
      what: "another ETag that the server ignores", first: "etag=a", second: "ranges=blind&etag=b",
      statuses: [200, 206, 200]),
    Change(what: "a weak ETag", first: "etag=W/a", second: "etag=W/a", statuses: [200, 200], asks: false),
    Change(what: "no validator", first: "", second: "", statuses: [200, 200], asks: false),
    Change(
      what: "a recent Last-Modified", first: "last-modified=-5", second: "last-modified=-5",
      statuses: [200, 200], asks: false),
    Change(
      what: "a content coding", first: "etag=a&encoding=gzip", second: "etag=a&encoding=gzip",
      statuses: [200, 200], asks: false),
    Change(
      what: "Accept-Ranges: none", first: "etag=a&ranges=off&header=accept-ranges:none", second: "etag=a",
      statuses: [200, 200], asks: false),
    Change(what: "a server without ranges", first: "etag=a", second: "etag=a&ranges=off", statuses: [200, 200]),
    Change(what: "another offset", first: "etag=a", second: "etag=a&ranges=shifted", statuses: [200, 206, 200]),
    Change(what: "an unsatisfiable range", first: "etag=a", second: "etag=a&status=416", statuses: [200, 416, 200]),
    Change(
      what: "several parts", first: "etag=a", second: "etag=a&status=206&type=multipart/byteranges",
      statuses: [200, 206, 200]),
  ]

  @Test(arguments: changes, places) func `a transfer that cannot be resumed is restarted`(
    change: Change, place: Int
  ) async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      // The compressed body is short.
      let place = change.first.contains("gzip") ? 500 : place
      let other = "image/8.png?bytes=900000"
      try await origin.script(
        "s.png",
        ["\(Self.image)&\(change.first)&truncate=\(place)", "\(other)&\(change.second)", "\(other)&etag=b"])
      let result = try await worker.load(origin.url("s.png"))
      #expect(try content(result) == (try await original(worker, origin, other)))
      #expect(result["attempts"] == 2)
      let log = try await origin.log("s.png")
      #expect(log.map { $0["status"] } == change.statuses)
      #expect(ranges(log)[1].isEmpty == !change.asks)
      if log.count > 2 { #expect(ranges(log)[2].isEmpty) }
    }
  }

  @Test(arguments: places) func `another length restarts the transfer`(place: Int) async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      let other = "image/8.png?bytes=800000"
      try await origin.script("s.png", ["\(Self.image)&etag=a&truncate=\(place)", "\(other)&etag=a"])
      let result = try await worker.load(origin.url("s.png"))
      #expect(try content(result) == (try await original(worker, origin, other)))
      #expect(try await origin.log("s.png").map { $0["status"] } == [200, 206, 200])
    }
  }

  @Test func `an error between two attempts keeps the partial body`() async throws {
    try await withOrigin("--retries", "3") { worker, origin in
      let target = "\(Self.image)&etag=a"
      try await origin.script(
        "s.png", ["\(target)&truncate=500000", "\(target)&status=503", "\(target)&close=start", target])
      let result = try await worker.load(origin.url("s.png"))
      #expect(try content(result) == (try await original(worker, origin)))
      let log = try await origin.log("s.png")
      #expect(log.last?["status"] == 206)
      #expect(ranges(log) == [[], ["bytes=500000-"], [], ["bytes=500000-"]])
    }
  }

  @Test func `a transfer is resumed after a timeout`() async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      let target = "\(Self.image)&etag=a"
      try await origin.script("s.png", ["\(target)&hold=never@500000", target])
      let result = try await worker.load(origin.url("s.png"), ["timeoutMs": 2000])
      #expect(try content(result) == (try await original(worker, origin)))
      #expect(ranges(try await origin.log("s.png")) == [[], ["bytes=500000-"]])
    }
  }

  @Test func `a Last-Modified date is used as a validator if it is old enough`() async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      let target =
        "\(Self.image)&last-modified=Sun, 06 Nov 1994 08:49:37 GMT"
        .addingPercentEncoding(withAllowedCharacters: .urlQueryAllowed) ?? ""
      try await origin.script("s.png", ["\(target)&truncate=500000", target])
      let result = try await worker.load(origin.url("s.png"))
      #expect(try content(result) == (try await original(worker, origin)))
      let log = try await origin.log("s.png")
      #expect(log.map { $0["status"] } == [200, 206])
      #expect(OriginProcess.header("if-range", of: log[1]) == ["Sun, 06 Nov 1994 08:49:37 GMT"])
    }
  }

  @Test func `the range request goes to the final URL of the partial body, with the same header fields`() async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      let target = "\(Self.image)&etag=a"
      try await origin.script("end.png", ["\(target)&truncate=500000", target])
      let escaped = origin.url("end.png")
      try await origin.script("s.png", ["image/1.png?redirect=\(escaped)"])
      let result = try await worker.load(
        origin.url("s.png"), ["headers": ["authorization": "Bearer a", "accept": "image/png"]])
      #expect(try content(result) == (try await original(worker, origin)))
      #expect(result["finalURL"].string == escaped)
      #expect(ranges(try await origin.log("s.png")) == [[], []])
      let log = try await origin.log("end.png")
      #expect(ranges(log) == [[], ["bytes=500000-"]])
      for name in ["authorization", "accept"] {
        #expect(OriginProcess.header(name, of: log[1]) == OriginProcess.header(name, of: log[0]))
      }
    }
  }

  @Test func `a redirect to another URL restarts the transfer`() async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      let target = "\(Self.image)&etag=a"
      try await origin.script("one.png", ["\(target)&truncate=500000"])
      try await origin.script("two.png", ["image/8.png?bytes=900000&etag=a"])
      try await origin.script(
        "s.png", ["one.png", "two.png"].map { "image/1.png?redirect=\(origin.url($0))" })
      let result = try await worker.load(origin.url("s.png"))
      #expect(try content(result) == (try await original(worker, origin, "image/8.png?bytes=900000")))
      #expect(ranges(try await origin.log("two.png")) == [[]])
    }
  }

  @Test func `maxBytes limits the whole body`() async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      // The length is unknown until the 206.
      let target = "\(Self.image)&etag=a"
      try await origin.script("s.png", ["\(target)&chunked&truncate=500000", target])
      let error = try await worker.failure(origin.url("s.png"), ["maxBytes": 800_000])
      #expect(error["data"]["kind"] == "tooLarge")
      // The refused range leads to the plain request, whose length is over the limit, too.
      #expect(try await origin.log("s.png").map { $0["status"] } == [200, 206, 200])
      #expect(try await worker.call("stats")["result"]["disk"]["bytes"] == 0)
    }
  }

  static let stores: [JSON] = [["store": "none"], ["store": "memory"], ["cache": "no-store"]]

  @Test(arguments: stores, places)
  func `a transfer without storage is resumed as well`(params: JSON, place: Int) async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      let target = "\(Self.image)&etag=a"
      try await origin.script("s.png", ["\(target)&truncate=\(place)", target])
      let result = try await worker.load(origin.url("s.png"), params)
      #expect(try content(result) == (try await original(worker, origin)))
      #expect(try await origin.log("s.png").map { $0["status"] } == [200, 206])
    }
  }

  @Test(arguments: places) func `digest and saveTo apply to the whole body`(place: Int) async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      let target = "\(Self.image)&etag=a"
      try await origin.script("s.png", ["\(target)&truncate=\(place)", target])
      try await origin.script("t.png", ["\(target)&truncate=\(place)", target])
      let copy = worker.directory.appending("copy.png")
      let result = try await worker.load(origin.url("s.png"), ["saveTo": .string(copy)])
      #expect(try Data(contentsOf: URL(filePath: copy)) == (try await original(worker, origin)))
      #expect(try content(result) == (try await original(worker, origin)))
      let wrong = "sha256-" + String(repeating: "0", count: 64)
      let error = try await worker.failure(origin.url("t.png"), ["digest": .string(wrong)])
      #expect(error["data"]["kind"] == "digestMismatch")
      let right = (error["message"].string ?? "").split(separator: " ").last.map(String.init) ?? ""
      try await origin.script("u.png", ["\(target)&truncate=\(place)", target])
      _ = try await worker.load(origin.url("u.png"), ["digest": .string(right)])
    }
  }

  @Test func `a stale image is not revalidated again while its replacement is resumed`() async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      let target = "\(Self.image)&etag=a"
      try await origin.script(
        "s.png", ["image/1.png?etag=old&cache-control=no-cache", "\(target)&truncate=500000", target])
      _ = try await worker.load(origin.url("s.png"))
      let result = try await worker.load(origin.url("s.png"))
      #expect(try content(result) == (try await original(worker, origin)))
      let log = try await origin.log("s.png")
      #expect(log.map { OriginProcess.header("if-none-match", of: $0) } == [[], ["\"old\""], []])
      #expect(log.map { $0["status"] } == [200, 200, 206])
    }
  }

  @Test func `a Range field of the host is sent unchanged`() async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      let target = "\(Self.image)&etag=a"
      try await origin.script("s.png", ["\(target)&truncate=1000", target])
      let result = try await worker.load(
        origin.url("s.png"), ["headers": ["range": "bytes=0-99999"], "response": true])
      #expect(result["response"]["status"] == 206)
      #expect(result["bytes"] == 100_000)
      #expect(ranges(try await origin.log("s.png")) == [["bytes=0-99999"], ["bytes=0-99999"]])
    }
  }
}

/// Partial files, which outlive their load and their worker.
@Suite struct PartialFileTests {
  private static let image = "image/7.png?bytes=900000"

  private func content(_ result: JSON) throws -> Data {
    try Data(contentsOf: URL(filePath: result["path"].string ?? ""))
  }

  private func original(_ worker: WorkerProcess, _ origin: OriginProcess, _ target: String = image) async throws -> Data
  {
    try content(try await worker.load(origin.url("\(target)&x-original=1")))
  }

  /// The first transfer is held after 500,000 bytes of 900,000, later ones are not.
  ///
  /// - Parameter isSized: whether the response has a length. Without one, a cancelled transfer never counts as nearly
  ///   complete.
  private func script(
    _ origin: OriginProcess, _ name: String = "s.png", isSized: Bool = false, then: [String] = ["\(image)&etag=a"]
  ) async throws {
    try await origin.script(name, ["\(Self.image)&etag=a&hold=gate@500000\(isSized ? "" : "&chunked")"] + then)
  }

  /// Waits until the bytes before the gate are on disk, except for less than one piece. There is no event for it, so
  /// this polls; the interval does not matter.
  private func waitForPartialBody(_ worker: WorkerProcess, besides others: Int = 0) async throws {
    let patienceEnds = Instant.now.advanced(by: patience)
    while try sizes(ofTemporariesOf: worker).count(where: { $0 > 300_000 }) <= others {
      if Instant.now > patienceEnds { throw NeverHappened(what: "a beginning", seen: "nothing") }
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  /// The size of the temporary files in the cache and in the scratch folder.
  private func sizes(ofTemporariesOf worker: WorkerProcess) throws -> [Int] {
    let parent = FileManager.default.temporaryDirectory.appending(path: "imageworker-\(geteuid())").path
    let scratch = (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? []
    let folders =
      [worker.directory.path]
      + scratch.filter { $0.hasPrefix("\(worker.child.identifier)-") }.map { "\(parent)/\($0)" }
    return folders.flatMap { folder in
      ((try? FileManager.default.subpathsOfDirectory(atPath: folder)) ?? []).filter { $0.hasSuffix(".tmp") }.map {
        (try? FileManager.default.attributesOfItem(atPath: "\(folder)/\($0)")[.size] as? Int) ?? 0
      }
    }
  }

  /// Loads a URL with a held body, and cancels the load when the partial body is on disk.
  private func cancelMidway(_ url: String, _ worker: WorkerProcess, _ params: JSON = [:]) async throws {
    worker.request("load", JSON.object(["url": .string(url)]).merging(params))
    try await waitForPartialBody(worker)
    try await worker.call("cancel", ["all": true])
    try await failures(1, worker)
  }

  /// Waits until transfers have failed and their partial bodies are on disk.
  private func failures(_ count: Int, _ worker: WorkerProcess) async throws {
    let patienceEnds = Instant.now.advanced(by: patience)
    while try await worker.call("stats")["result"]["transfers"]["failed"].integer ?? 0 < count {
      if Instant.now > patienceEnds { throw NeverHappened(what: "\(count) failures", seen: "fewer") }
    }
    // The disk thread handles this after all earlier work.
    try await worker.call("stats")
  }

  private func temporaries(_ worker: WorkerProcess) throws -> [String] {
    try worker.directory.files().filter { $0.hasSuffix(".tmp") }
  }

  private func askedOffset(_ log: [JSON]) -> Int? {
    log.last.flatMap { OriginProcess.header("range", of: $0).first }.flatMap {
      Int($0.dropFirst("bytes=".count).dropLast())
    }
  }

  @Test func `after the last load is cancelled, the next one resumes the transfer`() async throws {
    try await withOrigin { worker, origin in
      try await script(origin)
      let url = origin.url("s.png")
      try await cancelMidway(url, worker)
      #expect(try temporaries(worker).count == 1)
      let next = worker.request("load", ["url": .string(url), "events": ["progress", "started"]])
      let result = try await worker.response(to: next)["result"]
      #expect(try content(result) == (try await original(worker, origin)))
      #expect(result["attempts"] == .null)
      let log = try await origin.log("s.png")
      #expect(log.map { $0["status"] } == [200, 206])
      let offset = try #require(askedOffset(log))
      #expect(offset > 262_144)
      let events = worker.events(for: next)
      #expect(events.map { $0["method"] }.filter { $0 == "started" }.count == 1)
      let received: [Int] = events.compactMap { $0["params"]["received"].integer }
      #expect(received.allSatisfy { $0 > offset })
      #expect(try temporaries(worker).isEmpty)
    }
  }

  @Test func `after the last load is cancelled between two attempts, the next one resumes the transfer`() async throws {
    try await withOrigin("--retries", "5") { worker, origin in
      let target = "\(Self.image)&etag=a"
      try await origin.script("s.png", ["\(target)&hold=gate@500000&truncate=500000", target])
      let url = origin.url("s.png")
      let id = worker.request("load", ["url": .string(url), "events": ["retrying"]])
      try await origin.held(at: "gate")
      // No further attempt starts.
      try await worker.call("pause")
      try await origin.release("gate")
      _ = try await worker.event("retrying", for: id)
      try await worker.call("cancel", ["id": id])
      try await worker.call("resume")
      let result = try await worker.load(url)
      #expect(try content(result) == (try await original(worker, origin)))
      #expect(OriginProcess.header("range", of: try await origin.log("s.png")[1]) == ["bytes=500000-"])
    }
  }

  @Test func `a load that waits behind the cancelled one resumes its transfer`() async throws {
    try await withOrigin("--max-per-host", "1") { worker, origin in
      try await script(origin)
      let url = origin.url("s.png")
      worker.request("load", ["url": .string(url)])
      try await waitForPartialBody(worker)
      // The second load has finished its cache lookup before the first connection is closed.
      worker.request("cancel", ["all": true])
      let id = worker.request("load", ["url": .string(url)])
      let result = try await worker.response(to: id)["result"]
      #expect(try content(result) == (try await original(worker, origin)))
      #expect(try await origin.log("s.png").map { $0["status"] } == [200, 206])
    }
  }

  @Test func `a partial body is kept after a deadline`() async throws {
    try await withOrigin { worker, origin in
      try await script(origin)
      let url = origin.url("s.png")
      let error = try await worker.failure(url, ["deadlineMs": 1000])
      #expect(error["data"]["phase"] == "deadline")
      try await failures(1, worker)
      let result = try await worker.load(url)
      #expect(try content(result) == (try await original(worker, origin)))
      #expect(try await origin.log("s.png").map { $0["status"] } == [200, 206])
    }
  }

  @Test func `a partial body is kept after the last retry`() async throws {
    try await withOrigin { worker, origin in
      let target = "\(Self.image)&etag=a"
      let refusal = "\(target)&status=503"
      try await origin.script("s.png", ["\(target)&truncate=500000", refusal, refusal, target])
      let url = origin.url("s.png")
      #expect(try await worker.failure(url)["data"]["kind"] == "truncated")
      #expect(try await worker.failure(url)["data"]["kind"] == "http")
      let result = try await worker.load(url)
      #expect(try content(result) == (try await original(worker, origin)))
      #expect(try await origin.log("s.png").map { $0["status"] } == [200, 503, 503, 206])
    }
  }

  @Test func `a 404 of the server removes the partial body`() async throws {
    try await withOrigin("--failed-ttl", "0") { worker, origin in
      let target = "\(Self.image)&etag=a"
      let refusal = "\(target)&status=404"
      try await origin.script("s.png", ["\(target)&truncate=500000", refusal, refusal, target])
      let url = origin.url("s.png")
      for _ in 0..<2 { _ = try await worker.failure(url) }
      _ = try await worker.load(url)
      #expect(try await origin.log("s.png").map { $0["status"] } == [200, 404, 404, 200])
    }
  }

  enum End: String, CaseIterable { case kill, signal, cancel }

  @Test(arguments: End.allCases) func `a later worker resumes the transfer`(end: End) async throws {
    let directory = try TemporaryDirectory()
    try await turns.taking {
      let origin = try await OriginProcess()
      try await script(origin, isSized: true)
      let url = origin.url("s.png")
      let first = try WorkerProcess(["--retries", "0", "--eof", "cancel"], directory: directory)
      first.request("load", ["url": .string(url)])
      try await waitForPartialBody(first)
      switch end {
      case .kill: first.child.signal(SIGKILL)
      case .signal: first.child.signal(SIGTERM)
      case .cancel: first.child.closeInput()
      }
      _ = try await first.child.ended()

      let second = try WorkerProcess(["--retries", "0"], directory: directory)
      defer { second.child.kill() }
      let result = try await second.load(url)
      #expect(try content(result) == (try await original(second, origin)))
      let log = try await origin.log("s.png")
      #expect(log.map { $0["status"] } == [200, 206])
      #expect(askedOffset(log) ?? 0 > 262_144)
      let wrong = "sha256-" + String(repeating: "0", count: 64)
      #expect(try await second.failure(url, ["digest": .string(wrong)])["data"]["kind"] == "digestMismatch")
      #expect(try await second.end() == .exit(0))
      #expect(try temporaries(second).isEmpty)
    }
  }

  @Test(arguments: ["etag=b", "etag=b&ranges=blind", "etag=a&ranges=off", "etag=a&ranges=shifted"])
  func `a later worker restarts a transfer that does not match`(second: String) async throws {
    let directory = try TemporaryDirectory()
    try await turns.taking {
      let origin = try await OriginProcess()
      let other = "image/8.png?bytes=900000"
      try await script(origin, isSized: true, then: ["\(other)&\(second)", "\(other)&etag=b"])
      let url = origin.url("s.png")
      let first = try WorkerProcess(["--retries", "0"], directory: directory)
      first.request("load", ["url": .string(url)])
      try await waitForPartialBody(first)
      first.child.signal(SIGKILL)
      _ = try await first.child.ended()
      let worker = try WorkerProcess(["--retries", "0"], directory: directory)
      defer { worker.child.kill() }
      let result = try await worker.load(url)
      #expect(try content(result) == (try await original(worker, origin, other)))
      #expect(OriginProcess.header("range", of: try await origin.log("s.png")[1]).count == 1)
      #expect(try await worker.end() == .exit(0))
      #expect(try temporaries(worker).isEmpty)
    }
  }

  struct Other: CustomTestStringConvertible, Sendable {
    var what: String
    var first: JSON = [:]
    var second: JSON
    var testDescription: String { what }
  }

  static let others = [
    Other(
      what: "another user", first: ["headers": ["authorization": "a"]], second: ["headers": ["authorization": "b"]]),
    Other(what: "no credentials", first: ["headers": ["authorization": "a"]], second: [:]),
    Other(what: "other cookies", first: ["headers": ["cookie": "a=1"]], second: ["headers": ["cookie": "a=2"]]),
    Other(what: "other headers", second: ["headers": ["accept": "image/webp"]]),
    Other(what: "reload", second: ["cache": "reload"]),
    Other(what: "no-store", second: ["cache": "no-store"]),
    Other(what: "another key", second: ["key": "other"]),
    Other(what: "a range", second: ["headers": ["range": "bytes=0-"]]),
    Other(what: "a first load with store none", first: ["store": "none"], second: [:]),
    Other(what: "a first load with store memory", first: ["store": "memory"], second: [:]),
    Other(what: "a first load with no-store", first: ["cache": "no-store"], second: [:]),
  ]

  @Test(arguments: others) func `a load that differs does not use the partial body`(other: Other)
    async throws
  {
    try await withOrigin { worker, origin in
      // Each user has another image, of the same length and ETag.
      let target = "\(Self.image)&etag=a&by=authorization,cookie,accept"
      try await origin.script("s.png", ["\(target)&hold=gate@500000&chunked", target])
      try await origin.script("t.png", [target])
      try await cancelMidway(origin.url("s.png"), worker, other.first)
      let result = try await worker.load(origin.url("s.png"), other.second)
      let log = try await origin.log("s.png")
      #expect(log.count == 2)
      #expect(OriginProcess.header("if-range", of: log[1]).isEmpty)
      #expect(try content(result) == (try content(try await worker.load(origin.url("t.png"), other.second))))
    }
  }

  @Test(arguments: ["no-cache", "refresh", "force-cache", "default"])
  func `cache modes that store resume the transfer`(mode: String) async throws {
    try await withOrigin { worker, origin in
      try await script(origin)
      let url = origin.url("s.png")
      try await cancelMidway(url, worker)
      let result = try await worker.load(url, ["cache": .string(mode)])
      #expect(try content(result) == (try await original(worker, origin)))
      #expect(try await origin.log("s.png").map { $0["status"] } == [200, 206])
    }
  }

  @Test func `clear removes partial bodies, also those of running transfers`() async throws {
    try await withOrigin { worker, origin in
      for (number, clearsFirst) in [true, false].enumerated() {
        let name = "s\(number).png"
        try await script(origin, name)
        let url = origin.url(name)
        worker.request("load", ["url": .string(url)])
        try await waitForPartialBody(worker)
        if clearsFirst { try await worker.call("clear", ["url": .string(url)]) }
        try await worker.call("cancel", ["all": true])
        try await failures(number + 1, worker)
        if !clearsFirst { try await worker.call("clear", ["url": .string(url)]) }
        #expect(try temporaries(worker).isEmpty)
        _ = try await worker.load(url)
        #expect(try await origin.log(name).map { $0["status"] } == [200, 200])
      }
    }
  }

  @Test func `partial bodies are counted and limited`() async throws {
    try await withOrigin("--disk-limit", "10M") { worker, origin in
      let most = 10 << 20 / 4
      for number in 0..<7 {
        let name = "s\(number).png"
        try await script(origin, name)
        worker.request("load", ["url": .string(origin.url(name))])
        try await waitForPartialBody(worker, besides: min(number, 5))
        try await worker.call("cancel", ["all": true])
        try await failures(number + 1, worker)
        let sizes = try sizes(ofTemporariesOf: worker)
        #expect(sizes.count == min(number + 1, 5))
        #expect(sizes.reduce(0, +) <= most)
        let bytes = try await worker.call("stats")["result"]["disk"]["bytes"].integer ?? 0
        #expect(bytes >= sizes.reduce(0, +) && bytes <= most)
      }
    }
  }

  @Test func `a load with a smaller maxBytes keeps the partial body for other loads`() async throws {
    try await withOrigin { worker, origin in
      try await script(origin)
      let url = origin.url("s.png")
      try await cancelMidway(url, worker)
      #expect(try await worker.failure(url, ["maxBytes": 300_000])["data"]["kind"] == "tooLarge")
      let result = try await worker.load(url)
      #expect(try content(result) == (try await original(worker, origin)))
      #expect(try await origin.log("s.png").map { $0["status"] } == [200, 200, 206])
    }
  }

  @Test func `a stored image is revalidated although a partial body of its replacement exists`() async throws {
    try await withOrigin { worker, origin in
      let old = "image/1.png?etag=old&cache-control=no-cache"
      let url = origin.url("s.png")
      try await origin.script("s.png", [old, "\(Self.image)&etag=a&hold=gate@500000&chunked", old])
      let first = try await worker.load(url)
      try await cancelMidway(url, worker)
      let result = try await worker.load(url)
      #expect(try content(result) == (try content(first)))
      #expect(try await origin.log("s.png").map { $0["status"] } == [200, 200, 304])
    }
  }

  @Test func `the partial body is removed when the whole body is stored`() async throws {
    try await withOrigin { worker, origin in
      try await script(origin)
      let url = origin.url("s.png")
      try await cancelMidway(url, worker)
      let result = try await worker.load(url, ["cache": "reload"])
      #expect(try content(result) == (try await original(worker, origin)))
      #expect(try temporaries(worker).isEmpty)
    }
  }

  @Test func `two workers with one cache do not resume the same partial body`() async throws {
    let directory = try TemporaryDirectory()
    try await turns.taking {
      let origin = try await OriginProcess()
      let held = "\(Self.image)&etag=a&hold=later"
      try await script(origin, then: [held])
      let url = origin.url("s.png")
      let first = try WorkerProcess(["--retries", "0"], directory: directory)
      first.request("load", ["url": .string(url)])
      try await waitForPartialBody(first)
      first.child.signal(SIGKILL)
      _ = try await first.child.ended()
      let workers = try (0..<2).map { _ in try WorkerProcess(["--retries", "0"], directory: directory) }
      defer { for worker in workers { worker.child.kill() } }
      // Each worker transfers the bytes that it needs from the server.
      let ids = workers.map { $0.request("load", ["url": .string(url), "cache": "no-cache"]) }
      try await origin.held(2, at: "later")
      try await origin.release("later")
      let original = try await original(workers[0], origin)
      for (worker, id) in zip(workers, ids) {
        #expect(try content(try await worker.response(to: id)["result"]) == original)
      }
      let asked = try await origin.log("s.png").dropFirst().map { OriginProcess.header("range", of: $0).count }
      #expect(asked.reduce(0, +) <= 1)
      for worker in workers { #expect(try await worker.end() == .exit(0)) }
    }
  }
}
