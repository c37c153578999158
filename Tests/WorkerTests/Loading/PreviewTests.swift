import Foundation
import Testing

/// Previews of images during their transfer.
@Suite struct PreviewTests {
  private static func image(_ bytes: Int, _ rest: String) -> String {
    "image/1.jpg?progressive&width=64&height=48&bytes=\(bytes)&\(rest)"
  }

  @Test func `each scan of a progressive JPEG is previewed`() async throws {
    try await withOrigin { worker, origin in
      // First in memory, then in a spool file.
      for bytes in [100_000, 2_000_000] {
        let holds = [3, 6].map { "hold=\(bytes)-\($0)@\(bytes * $0 / 10)" }.joined(separator: "&")
        let url = origin.url("image/1.jpg?progressive&width=64&height=48&bytes=\(bytes)&\(holds)")
        let id = worker.request("load", ["url": .string(url), "events": ["preview"]])
        try await origin.held(at: "\(bytes)-3")
        let first = try await worker.event("preview", for: id)["params"]
        #expect(first["width"] == 64 && first["height"] == 48 && first["url"].string == url)
        let preview = try contents(of: first["path"].string)
        #expect(preview.count > 100)
        try await origin.release("\(bytes)-3")
        try await origin.release("\(bytes)-6")
        _ = try await worker.response(to: id)
        let scans = worker.events(for: id).compactMap(\.["params"]["scan"].integer)
        #expect(scans == Array(Set(scans)).sorted() && scans.first ?? 0 >= 1)
      }
    }
  }

  /// The partial body is in memory or on disk. The transfer breaks before the end of the first scan.
  @Test(arguments: [(200_000, 20_000), (2_000_000, 300_000)])
  func `a resumed transfer is previewed`(bytes: Int, broken: Int) async throws {
    try await withOrigin("--retries", "1") { worker, origin in
      try await origin.script(
        "p.jpg",
        [
          Self.image(bytes, "etag=a&truncate=\(broken)"),
          Self.image(bytes, "etag=a&hold=half@\(bytes / 2 - broken)"),
        ])
      let id = worker.request("load", ["url": .string(origin.url("p.jpg")), "events": ["preview"]])
      let preview = try await worker.event("preview", for: id)["params"]
      #expect(preview["width"] == 64 && (1...2).contains(preview["scan"].integer ?? 0))
      try await origin.release("half")
      #expect(try await worker.response(to: id)["result"]["attempts"] == 2)
      #expect(try await origin.log("p.jpg").map { $0["status"] } == [200, 206])
    }
  }

  @Test func `the partial body of an earlier load is previewed at once`() async throws {
    try await withOrigin { worker, origin in
      try await origin.script(
        "p.jpg",
        [
          Self.image(2_000_000, "etag=a&truncate=1000000"), Self.image(2_000_000, "etag=a&hold=early@1000"),
        ])
      #expect(try await worker.failure(origin.url("p.jpg"))["data"]["kind"] == "truncated")
      let id = worker.request("load", ["url": .string(origin.url("p.jpg")), "events": ["preview"]])
      #expect(try await worker.event("preview", for: id)["params"]["scan"] == 2)
      try await origin.release("early")
      #expect(try await worker.response(to: id)["result"]["bytes"] == 2_000_000)
      #expect(try await origin.log("p.jpg").map { $0["status"] } == [200, 206])
    }
  }
}
