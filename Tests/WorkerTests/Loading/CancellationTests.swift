import Foundation
import Testing

/// Transfers whose last load has left: those that are nearly complete go on for the cache.
@Suite struct CancellationTests {
  /// Beginning again would cost twelve seconds, the last bytes at this pace nothing. It goes on for twice as long
  /// and a second more: longer than a busy machine takes from one line of a test to the next.
  private static let image = image(delay: 12_000)

  private static func image(delay: Int) -> String {
    "image/7.png?bytes=200000&etag=a&cache-control=max-age=60&delay=\(delay)&hold=gate@199000"
  }

  /// A load whose image has come but for its end.
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

  @Test func `the load is told at once, the image is kept`() async throws {
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

  @Test func `it can be joined`() async throws {
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

  @Test(arguments: unkept) func `what may not be kept is aborted`(params: JSON) async throws {
    try await withOrigin { worker, origin in
      let id = try await nearlyComplete(worker, origin, params)
      try await worker.call("cancel", ["id": id])
      try await origin.reaches("left", 1)
    }
  }

  @Test(arguments: ["&hold=gate@headers", "&chunked&hold=gate@199000", "&hold=gate"])
  func `what is not known to be nearly complete is aborted`(how: String) async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/7.png?bytes=200000&etag=a\(how)")
      let id = worker.request("load", ["url": .string(url)])
      try await origin.held(at: "gate")
      try await worker.call("cancel", ["id": id])
      try await origin.reaches("left", 1)
    }
  }

  @Test func `one that is cleared meanwhile is not kept`() async throws {
    try await withOrigin { worker, origin in
      let id = try await nearlyComplete(worker, origin)
      try await worker.call("cancel", ["id": id])
      try await worker.call("clear", [:])
      try await origin.release("gate")
      while try await active(worker) > 0 {}
      #expect(try await worker.call("query", ["url": .string(origin.url(Self.image))])["result"]["disk"] == false)
    }
  }

  @Test func `it takes its place among the transfers`() async throws {
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

  @Test func `one that stops is ended by its time-out, and not tried again`() async throws {
    try await withOrigin("--retries", "3") { worker, origin in
      // It would go on for five seconds. A machine that stalls for a second may have it tried again before the cancel.
      let id = try await nearlyComplete(worker, origin, ["timeoutMs": 3000], image: Self.image(delay: 2000))
      try await worker.call("cancel", ["id": id])
      let attempts = try await origin.log("7.png").count
      while try await hasWork(worker) {}
      #expect(try await origin.log("7.png").count == attempts)
    }
  }

  @Test(arguments: ["drain", "cancel", "SIGTERM", "end"]) func `the end of the worker does not wait for it`(end: String)
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
