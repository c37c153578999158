import LineRPC
import Platform
import Testing

@testable import Worker

/// The JSON values of the worker. The tests have a `JSON` of their own.
private typealias WireJSON = LineRPC.JSON

/// The two forms of a line.
struct LogLineTests {
  private let time: Int64 = 1_795_694_400_123

  private func line(_ event: LogEvent, omitted: Int = 0) -> LogLine {
    LogLine(event: event, time: time, process: 42, omitted: omitted)
  }

  private func text(_ event: LogEvent, omitted: Int = 0) -> String {
    String(decoding: line(event, omitted: omitted).bytes(as: .text), as: UTF8.self)
  }

  private func json(_ event: LogEvent, omitted: Int = 0) throws -> JSON {
    let bytes = line(event, omitted: omitted).bytes(as: .json)
    #expect(bytes.last == 0x0A && bytes.count { $0 < 0x20 } == 1 && bytes.allSatisfy { $0 < 0x80 })
    #expect(bytes.count <= LogLine.maxLength)
    return try JSON(parsing: bytes)
  }

  @Test func `a line of JSON has the time, the level, the event, the message, the process and the fields`() throws {
    let event = LogEvent(
      .loadStarted, "attempt 2 starts",
      [(.requestId, .integer(7)), (.load, .integer(12)), (.traceId, nil), (.attempt, .integer(2))])
    #expect(
      try json(event) == [
        "time": "2026-11-26T12:00:00.123Z", "level": "debug", "event": "load.started", "message": "attempt 2 starts",
        "pid": 42, "requestId": 7, "load": 12, "attempt": 2,
      ])
    #expect(try json(event, omitted: 3)["omitted"] == 3)
  }

  @Test func `a line of text has the level, the ids and the message`() {
    let fields: [(LogEvent.Field, WireJSON?)] = [
      (.requestId, .string("a")), (.load, .integer(12)), (.traceId, .string("4b")),
    ]
    #expect(text(LogEvent(.loadStarted, "x", fields)) == "imageworker: debug: [request a, load 12, trace 4b] x\n")
    #expect(text(LogEvent(.loadFailed, level: .warning, "x")) == "imageworker: warning: x\n")
    #expect(text(LogEvent(.decoderMissing, "x"), omitted: 2).hasSuffix("x (2 more like this in the last minute)\n"))
    #expect(text(LogEvent(.workerFailed, "x")) == "imageworker: x\n")
  }

  @Test func `control characters in a text do not break the line`() throws {
    let event = LogEvent(.loadFailed, "a\nb\u{0}c\u{7F}", [(.requestId, .string("\r\n"))])
    #expect(text(event) == "imageworker: debug: [request   ] a b c \n")
    #expect(try json(event)["message"].string == "a\nb\u{0}c\u{7F}")
  }

  @Test(arguments: ["x", "é", "\u{0}", "\"", "👩‍👩‍👧", "\u{10FFFF}"])
  func `a long line is cut, and the ids are not`(piece: String) throws {
    let long = String(repeating: piece, count: LogLine.maxLength / piece.utf8.count + 1)
    let id = String(repeating: "\u{1}", count: 256)
    for name in LogEvent.Name.allCases {
      let fields = name.fields.map { field -> (LogEvent.Field, WireJSON?) in
        switch field {
        case .requestId: (field, .string(id))
        case .traceId: (field, .string("4bf92f3577b34da6a3ce929d0e0e4736"))
        case .changed: (field, .array(Array(repeating: .string("keyIgnoreQuery"), count: 40)))
        default: (field, .string(long))
        }
      }
      let event = LogEvent(name, long, fields)
      let cut = try json(event)
      #expect(cut["event"].string == name.rawValue)
      let message = try #require(cut["message"].string?.unicodeScalars)
      #expect(message.last == "…" && long.unicodeScalars.starts(with: message.dropLast()))
      if name.fields.contains(.requestId) { #expect(cut["requestId"].string == id) }
      #expect(cut.names == Set(name.fields.map(\.rawValue) + ["time", "level", "event", "message", "pid"]))
      let line = text(event)
      #expect(line.utf8.count <= LogLine.maxLength && line.hasSuffix("\n") && !line.contains("\u{FFFD}"))
    }
  }

  @Test func `short texts are whole although another is cut`() throws {
    let url = "http://example.com/" + String(repeating: "a", count: 200)
    let cut = try json(
      LogEvent(.loadFailed, String(repeating: "x", count: 9000), [(.url, .string(url)), (.kind, .string("http"))]))
    #expect(cut["url"].string == url && cut["kind"] == "http")
  }
}

/// The order and the limit of the lines.
struct LogLimiterTests {
  @Test func `an event is limited to ten lines a minute, and the next line counts those left out`() {
    var limiter = LogLimiter()
    let start = Instant.now
    for _ in 0..<10 { #expect(limiter.admit(.originDown, at: start) == 0) }
    for _ in 0..<5 { #expect(limiter.admit(.originDown, at: start + .seconds(59)) == nil) }
    #expect(limiter.admit(.decoderCrashed, at: start + .seconds(59)) == 0)
    #expect(limiter.admit(.originDown, at: start + .seconds(60)) == 5)
    #expect(limiter.admit(.originDown, at: start + .seconds(60)) == 0)
  }

  @Test func `the levels are ordered by severity`() {
    #expect(LogLevel.allCases.sorted() == [.error, .warning, .info, .debug])
  }
}

struct TraceParentTests {
  private static let id = "4bf92f3577b34da6a3ce929d0e0e4736"
  private static let parent = "00f067aa0ba902b7"

  @Test(arguments: [
    "00-\(id)-\(parent)-01", "00-\(id)-\(parent)-00", "cc-\(id)-\(parent)-01", "cc-\(id)-\(parent)-01-x",
  ])
  func `a valid field gives its trace id`(value: String) {
    #expect(TraceParent(value)?.traceID == Self.id)
  }

  @Test(arguments: [
    "", "00", "00-\(id)-\(parent)", "00-\(id)-\(parent)-1", "00-\(id)-\(parent)-01-x", "00-\(id)-\(parent)-01 ",
    "ff-\(id)-\(parent)-01", "00-\(id.uppercased())-\(parent)-01",
    "00-\(String(repeating: "0", count: 32))-\(parent)-01",
    "00-\(id)-0000000000000000-01", "0-\(id)-\(parent)-001", "cc-\(id)-\(parent)-01x", "00_\(id)_\(parent)_01",
    "00-\(id.dropLast())é-\(parent)-01", "00-\(id)-\(parent)-01, 00-\(id)-\(parent)-01", "zz-\(id)-\(parent)-01",
  ])
  func `a malformed field gives none`(value: String) { #expect(TraceParent(value) == nil) }
}
