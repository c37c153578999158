import Foundation
import Testing

/// Transfers without remaining loads are aborted.
@Suite struct CancellationTests {
  @Test(arguments: ["&hold=gate@headers", "&chunked&hold=gate@199000", "&hold=gate", "&hold=gate@199000"])
  func `a transfer ends with its last load`(how: String) async throws {
    try await withOrigin { worker, origin in
      let url = origin.url("image/7.png?bytes=200000&etag=a\(how)")
      let ids = (0..<2).map { _ in worker.request("load", ["url": .string(url)]) }
      try await origin.held(at: "gate")
      for id in ids {
        #expect(try await worker.call("stats")["result"]["queue"]["active"] == 1)
        #expect(try await worker.call("cancel", ["id": id])["result"]["cancelled"] == 1)
        #expect(try await worker.response(to: id)["error"]["data"]["kind"] == "cancelled")
      }
      try await origin.reaches("left", 1)
    }
  }

  @Test(arguments: ["drain", "cancel", "SIGTERM", "end"]) func `the end of the worker does not wait for the transfer`(
    end: String
  )
    async throws
  {
    try await withOrigin { worker, origin in
      let url = origin.url("image/7.png?bytes=200000&hold=gate@199000")
      let id = worker.request("load", ["url": .string(url)])
      try await origin.held(at: "gate")
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
