internal import LineRPC

/// The name of an event: a constant, or a text of any content.
public enum TraceName: Sendable, ExpressibleByStringLiteral {
  case constant(StaticString)
  case text(String)

  public init(stringLiteral value: StaticString) { self = .constant(value) }
}

/// The arguments of an event, which viewers show when it is selected.
public struct TraceArguments: Sendable, ExpressibleByDictionaryLiteral {
  public enum Value: Sendable {
    case number(Int64)
    case text(String)
  }

  var members: [(name: StaticString, value: Value)]

  public init(dictionaryLiteral members: (StaticString, Value)...) { self.members = members }

  public init(capacity: Int) {
    members = []
    members.reserveCapacity(capacity)
  }

  public mutating func append(_ name: StaticString, _ value: Value) { members.append((name, value)) }
}

/// The number that the events of a span or of an arrow have in common: within their group, or in the whole trace.
enum TraceID {
  case local(UInt64), global(UInt64)
}

/// A number as the format has it in ids.
private func hexadecimal(_ number: UInt64) -> String {
  let length = max(1, (67 - number.leadingZeroBitCount) / 4)
  return String(unsafeUninitializedCapacity: length) { digits in
    for index in 0..<length {
      let digit = UInt8(truncatingIfNeeded: number >> UInt64(4 * (length - 1 - index))) & 0xF
      digits[index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
    }
    return length
  }
}

/// The longest text of an argument, in characters. An event with several of this length fits into a page.
private let maxTextLength = 400

extension JSONWriter {
  /// Begins an event. `end` must follow.
  ///
  /// It is written in parts of text instead of members: a trace has ten events for each load.
  mutating func begin(
    _ name: TraceName, _ phase: StaticString, _ category: StaticString, _ track: TraceTrack, at time: Int64,
    id: TraceID? = nil
  ) {
    beginObject()
    append(verbatim: "\"name\":")
    switch name {
    case .constant(let text):
      append(verbatim: "\"")
      append(verbatim: text)
      append(verbatim: "\"")
    case .text(let text): value(text.cut)
    }
    append(verbatim: ",\"cat\":\"")
    append(verbatim: category)
    append(verbatim: "\",\"ph\":\"")
    append(verbatim: phase)
    append(verbatim: "\",\"pid\":")
    append(verbatim: track.pid)
    append(verbatim: ",\"tid\":")
    append(verbatim: track.tid)
    append(verbatim: ",\"ts\":")
    value(time)
    switch id {
    case .local(let number): object("id2") { $0.member("local", hexadecimal(number)) }
    case .global(let number): member("id", hexadecimal(number))
    case nil: break
    }
  }

  mutating func end(_ arguments: TraceArguments) {
    if !arguments.members.isEmpty {
      object("args") { json in
        for (name, value) in arguments.members {
          switch value {
          case .number(let number): json.member(name, number)
          case .text(let text): json.member(name, text.cut)
          }
        }
      }
    }
    endObject()
  }

  mutating func instant(
    _ name: TraceName, _ category: StaticString, _ track: TraceTrack, at time: Int64, _ scope: TraceWriter.Scope,
    _ arguments: TraceArguments
  ) {
    begin(name, "i", category, track, at: time)
    switch scope {
    case .thread: member("s", constant: "t")
    case .process: member("s", constant: "p")
    case .all: member("s", constant: "g")
    }
    end(arguments)
  }

  mutating func metadata(_ name: StaticString, _ track: TraceTrack, _ arguments: (inout JSONWriter) -> Void) {
    beginObject()
    member("name", constant: name)
    member("ph", constant: "M")
    member("pid", track.pid)
    member("tid", track.tid)
    object("args", arguments)
    endObject()
  }

  /// Names a group of rows.
  mutating func name(of pid: Int, _ name: String, sortIndex: Int) {
    let track = TraceTrack(pid: pid, tid: 0)
    metadata("process_name", track) { $0.member("name", name.cut) }
    metadata("process_sort_index", track) { $0.member("sort_index", sortIndex) }
  }
}

extension String {
  fileprivate var cut: String {
    utf8.count <= maxTextLength ? self : String(unicodeScalars.prefix(maxTextLength - 1)) + "…"
  }
}
