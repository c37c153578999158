import HTTPTypes
import Platform
import Testing
import Tracing

@testable import Loading

@Suite("A load in a trace")
struct TracedLoadTests {
  private let path = "/tmp/imageworker-traced-\(getpid())-\(UInt64.random(in: 0...UInt64.max)).json"

  /// The lines of a trace of these loads, each an event or a pair.
  private func lines(of loads: [TracedLoad]) throws -> [String] {
    let recorder = try TraceRecorder(path: path, limit: 16 << 20, label: "test") { _ in }
    for load in loads { recorder.add { load.write(to: $0) } }
    #expect(recorder.stop().dropped == 0)
    defer { unlink(path) }
    let file = open(path, O_RDONLY)
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 16 << 20)
    bytes.removeLast(bytes.count - max(0, read(file, &bytes, bytes.count)))
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// A load that waited for 1 ms and worked for 2 ms.
  private func load(_ number: UInt64, url: String, outcome: LoadReport.Outcome) throws -> TracedLoad {
    let start = Instant.now
    var timeline = LoadTimeline(acceptedAt: start)
    timeline.enter(.wait, at: start)
    timeline.enter(.store, at: start.advanced(by: .milliseconds(1)))
    timeline.end(at: start.advanced(by: .milliseconds(3)))
    let report = LoadReport(
      load: number, transfer: 1, requester: .host, url: url, origin: try ResourceURL(url).origin, outcome: outcome,
      attempts: 1, timeline: timeline)
    return TracedLoad(report, source: .http(try ResourceURL(url)), priority: .high)
  }

  @Test("its spans are its phases, without secrets")
  func spans() throws {
    let url = "https://ann:secret@a.example/b/c.png?secret=1#secret"
    let lines = try lines(of: [load(7, url: url, outcome: .image(.miss, byteCount: 11))])
    let text = lines.joined(separator: "\n")
    #expect(!text.contains("secret"))
    #expect(text.contains(#""args":{"name":"https://a.example"}"#))
    let span = lines.first { $0.contains(#""cat":"load""#) }
    #expect(span?.contains(#"{"name":"c.png","cat":"load","ph":"X","pid":2,"tid":1000,"ts":"#) == true)
    #expect(span?.contains(#""dur":2000"#) == true)
    let expected =
      #""args":{"url":"https://a.example/b/c.png","totalUs":3000,"load":7,"transfer":1,"priority":"high","#
      + #""result":"miss","bytes":11}"#
    #expect(span?.contains(expected) == true)
    #expect(lines.contains { $0.contains(#""name":"wait","cat":"phase","cname":"grey","ph":"b""#) })
    #expect(lines.contains { $0.contains(#""name":"store","cat":"phase","cname":"bad","ph":"X""#) })
  }

  @Test("loads at the same time have lanes of their own, and those beyond the last lane a common row")
  func lanes() throws {
    let loads = try (0..<130).map {
      try load($0, url: "http://a.example/\($0)", outcome: .failure(LoadError(.http, "")))
    }
    var aligned = loads
    for index in aligned.indices { aligned[index].timeline = loads[0].timeline }
    let lines = try lines(of: aligned)
    #expect(lines.count { $0.contains(#""cat":"load""#) } == 128)
    #expect(lines.count { $0.contains(#""name":"further loads""#) } == 2)
    // One arrow from the first load to each other one in a lane.
    #expect(lines.count { $0.contains(#""ph":"s""#) } == 127)
  }
}
