import LineRPC
import Platform
import Testing
import Threads

@testable import Tracing

@Suite("A trace's recorder")
struct TraceRecorderTests {
  private let path = "/tmp/imageworker-trace-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"

  private func makeRecorder(limit: Int64 = 1 << 20, maxRecords: Int = 100_000) throws -> TraceRecorder {
    try TraceRecorder(path: path, limit: limit, label: "imageworker", maxRecords: maxRecords) { _ in }
  }

  private func events() throws -> [JSONObject] {
    defer { unlink(path) }
    guard case .array(let events) = try JSON(parsing: content()) else { return [] }
    return events.compactMap { if case .object(let event) = $0 { event } else { nil } }
  }

  private func content() -> [UInt8] {
    let file = open(path, O_RDONLY)
    defer { close(file) }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = read(file, &piece, piece.count), count > 0 { bytes += piece.prefix(count) }
    return bytes
  }

  @Test("records become events in their order, with names for their rows")
  func order() throws {
    let recorder = try makeRecorder()
    let now = Instant.now
    for number in 1...3 {
      recorder.add { writer in
        let group = writer.group(TraceGroupKey("a", 1), named: "https://a.example")
        let (start, end) = (writer.time(now), writer.time(now.advanced(by: .milliseconds(number))))
        guard let lane = writer.lane(named: "load", in: group, from: start, to: end) else { return }
        writer.span(
          TraceLabel(text: "\"\(number)\"", "load"), on: lane, from: start, to: end, ["bytes": .number(Int64(number))])
        writer.link(7, TraceLabel("shared", "flow"), on: lane, from: start)
      }
    }
    let summary = recorder.stop()
    let events = try events()
    #expect(summary.dropped == 0 && summary.error == nil)
    let spans = events.filter { $0["ph"] == .string("X") }
    #expect(spans.map { $0["name"] } == (1...3).map { .string("\"\($0)\"") })
    #expect(spans.map { $0["tid"] } == (0...2).map { .integer(1000 + $0) })
    #expect(spans.allSatisfy { $0["pid"] == .integer(2) })
    #expect(events.count { $0["ph"] == .string("s") } == 2)
    #expect(events.count { $0["ph"] == .string("f") } == 2)
    let names = events.compactMap { event in
      if event["name"] == .string("thread_name"), case .object(let arguments)? = event["args"] {
        arguments["name"]
      } else {
        nil
      }
    }
    #expect(names == (1...3).map { .string("load \($0)") })
  }

  @Test("records beyond the bound are dropped, and the trace tells it")
  func dropped() throws {
    let recorder = try makeRecorder(maxRecords: 10)
    let gate = Gate()
    recorder.add { _ in gate.wait() }
    // Until the thread of the trace waits there, the records are those of the same batch.
    gate.waitUntilReached()
    for _ in 0..<25 {
      recorder.add { $0.counter(TraceLabel("c", "counter"), in: $0.worker, at: 1, ["value": .number(1)]) }
    }
    gate.open()
    let summary = recorder.stop()
    let events = try events()
    #expect(summary.dropped == 15)
    #expect(events.count { $0["ph"] == .string("C") } == 10)
    let lost = events.first { $0["name"] == .string("records lost") }
    #expect(lost?["args"] == .object(["count": .integer(15)]))
  }

  @Test("the trace ends at its limit, and says so")
  func limit() throws {
    let ends = Locked<[String]>([])
    let recorder = try TraceRecorder(path: path, limit: 1 << 20, label: "", maxRecords: 100_000) { reason in
      ends.withLock { $0.append(reason) }
    }
    for number in 0..<30_000 {
      recorder.add { writer in
        let row = writer.row(1, named: "row", in: writer.worker)
        writer.span(
          TraceLabel("span", "test"), on: row, from: Int64(number), to: Int64(number + 1),
          ["n": .number(Int64(number))])
      }
    }
    let summary = recorder.stop()
    let size = content().count
    let events = try events()
    #expect(summary.isFull && summary.error == nil && summary.dropped == 0)
    #expect(ends.withLock { $0 } == ["the file has its maximum size"])
    #expect(size <= 1 << 20 && Int64(size) == summary.bytes)
    let spans = events.filter { $0["ph"] == .string("X") }
    #expect(spans.count > 1000 && spans.count < 30_000)
    #expect(spans.map { $0["ts"] } == spans.indices.map { .integer(Int64($0)) })
    let full = events.filter { $0["name"] == .string("trace full") }
    #expect(full.map { $0["ts"] } == [.integer(Int64(spans.count))])
  }

  @Test("a file that cannot be used is refused")
  func unusable() throws {
    #expect(throws: TraceError.self) { try TraceRecorder(path: "/", limit: 1 << 20, label: "") { _ in } }
    #expect(throws: TraceError.self) { try TraceRecorder(path: "/dev/null", limit: 1 << 20, label: "") { _ in } }
    let recorder = try makeRecorder()
    defer { unlink(path) }
    #expect(throws: TraceError.self) { try makeRecorder() }
    recorder.stop()
    try makeRecorder().stop()
    let file = open(path, O_WRONLY | O_TRUNC)
    _ = writeDescriptor(file, "[{\"name\":\"a host's own file\"}]", 30)
    close(file)
    #expect(throws: TraceError.self) { try makeRecorder() }
    #expect(content().count == 30)
  }
}

/// Holds one thread until another opens it.
private final class Gate: Sendable {
  private let state = Locked((isReached: false, isOpen: false))

  func wait() {
    state.withLock { $0.isReached = true }
    state.notify()
    _ = state.wait { $0.isOpen ? () : nil }
  }

  func waitUntilReached() { _ = state.wait { $0.isReached ? () : nil } }

  func open() {
    state.withLock { $0.isOpen = true }
    state.notify()
  }
}
