import Foundation
import Testing

/// Transfers without remaining loads. A nearly complete transfer is finished for the cache.
@Suite struct CancellationTests {
  /// A new transfer would take twelve seconds, the remaining bytes almost none. The orphaned transfer may continue for
  /// twice as long plus a second, which is longer than the pause between two lines of a test on a busy machine.
  private static let image = image(delay: 12_000)

  private static func image(delay: Int) -> String {
    "image/7.png?bytes=200000&etag=a&cache-control=max-age=60&delay=\(delay)&hold=gate@199000"
  }

  /// A load of which only the last bytes are missing.
  private func nearlyComplete(
    _ worker: WorkerProcess, _ origin: OriginProcess, _ params: JSON = [:], image: String = image
  ) async throws -> JSON {
    let url = origin.url(image)
    let id = worker.request("load", JSON.object(["url": .string(url), "events": ["progress"]]).merging(params))
    try await origin.held(at: "gate")
    _ = try await worker.event("progress", for: id)
    return id
  }

  private func active(_ worker: WorkerProcess) async throws -> Int {
    try await worker.call("stats")["result"]["queue"]["active"].integer ?? -1
  }

  private func hasWork(_ worker: WorkerProcess) async throws -> Bool {
    let queue = try await worker.call("stats")["result"]["queue"]
    guard case .object(let waiting) = queue["waiting"] else { return true }
    return queue["active"] != 0 || waiting.values.contains { $0 != 0 }
  }

  @Test func `the load is cancelled at once, and the image is stored`() async throws {
    try await withOrigin { worker, origin in
      let id = try await nearlyComplete(worker, origin)
      #expect(try await worker.call("cancel", ["id": id])["result"]["cancelled"] == 1)
      #expect(try await worker.response(to: id)["error"]["data"]["kind"] == "cancelled")
      #expect(try await active(worker) == 1)
      try await origin.release("gate")
      while try await active(worker) > 0 {}
      let result = try await worker.load(origin.url(Self.image))
      #expect(result["cache"] != "miss")
      #expect(result["bytes"] == 200_000)
      #expect(try await origin.log("7.png").map { $0["ended"] } == ["complete"])
    }
  }

  @Test func `a later load can join the transfer`() async throws {
    try await withOrigin { worker, origin in
      let first = try await nearlyComplete(worker, origin)
      try await worker.call("cancel", ["id": first])
      let second = worker.request("load", ["url": .string(origin.url(Self.image)), "events": ["started"]])
      _ = try await worker.event("started", for: second)
      try await origin.release("gate")
      #expect(try await worker.response(to: second)["result"]["cache"] == "miss")
      #expect(try await origin.log("7.png").count == 1)
    }
  }

  static let unkept: [JSON] = [["store": "none"], ["cache": "no-store"]]

  @Test(arguments: unkept) func `a transfer that may not be stored is aborted`(params: JSON) async throws {
    try await withOrigin { worker, origin in
      let id = try await nearlyComplete(worker, origin, params)
      try await worker.call("cancel", ["id": id])
      try await origin.reaches("left", 1)
    }
  }

  @Test(arguments: ["&hold=gate@headers", "&chunked&hold=gate@199000", "&hold=gate"])
  func `a transfer that is not known to be nearly complete is aborted`(how: String) async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/7.png?bytes=200000&etag=a\(how)")
      let id = worker.request("load", ["url": .string(url)])
      try await origin.held(at: "gate")
      try await worker.call("cancel", ["id": id])
      try await origin.reaches("left", 1)
    }
  }

  @Test func `an image that is cleared meanwhile is not stored`() async throws {
    try await withOrigin { worker, origin in
      let id = try await nearlyComplete(worker, origin)
      try await worker.call("cancel", ["id": id])
      try await worker.call("clear", [:])
      try await origin.release("gate")
      while try await active(worker) > 0 {}
      #expect(try await worker.call("query", ["url": .string(origin.url(Self.image))])["result"]["disk"] == false)
    }
  }

  @Test func `the transfer counts against the concurrency limit`() async throws {
    try await withOrigin("--max-per-host", "1") { worker, origin in
      let id = try await nearlyComplete(worker, origin)
      try await worker.call("cancel", ["id": id])
      let next = worker.request("load", ["url": .string(origin.url("image/1.png"))])
      #expect(try await active(worker) == 1)
      #expect(try await origin.log("1.png").isEmpty)
      try await origin.release("gate")
      #expect(try await worker.response(to: next)["error"] == .null)
    }
  }

  @Test func `a stalled transfer is ended by its timeout and not retried`() async throws {
    try await withOrigin("--retries", "3") { worker, origin in
      // It could continue for five seconds. If the machine stalls for a second, it may be retried before the cancel.
      let id = try await nearlyComplete(worker, origin, ["timeoutMs": 3000], image: Self.image(delay: 2000))
      try await worker.call("cancel", ["id": id])
      let attempts = try await origin.log("7.png").count
      while try await hasWork(worker) {}
      #expect(try await origin.log("7.png").count == attempts)
    }
  }

  @Test(arguments: ["drain", "cancel", "SIGTERM", "end"]) func `the end of the worker does not wait for the transfer`(
    end: String
  )
    async throws
  {
    try await withOrigin { worker, origin in
      let id = try await nearlyComplete(worker, origin)
      try await worker.call("cancel", ["id": id])
      switch end {
      case "SIGTERM": worker.child.signal(SIGTERM)
      case "end": break
      default: #expect(try await worker.call("shutdown", ["mode": .string(end)])["result"] == [:])
      }
      #expect(try await worker.end() == .exit(0))
    }
  }
}
