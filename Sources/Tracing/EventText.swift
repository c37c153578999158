internal import LineRPC

/// The text of events in the Trace Event Format, as a list with commas.
///
/// Events are written in parts of text instead of members, because a trace has ten for each load.
struct EventText: ~Copyable {
  private var bytes = OutputText(capacity: TracePages.pageSize)

  borrowing func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result { bytes.withBytes(body) }

  mutating func removeAll() { bytes.removeAll() }

  mutating func appendSpan(
    _ label: TraceLabel, _ row: TraceRow, from start: Int64, to end: Int64, _ arguments: TraceArguments?
  ) {
    begin(label, "X", row, at: start)
    bytes.append(",\"dur\":")
    bytes.append(decimal: max(0, end - start))
    endEvent(arguments)
  }

  /// Appends the begin and the end of an async span.
  ///
  /// - Parameter id: the number of the span within the group.
  mutating func appendOverlappingSpan(
    _ label: TraceLabel, _ row: TraceRow, from start: Int64, to end: Int64, parts: [TraceWriter.Part], id: UInt64,
    _ arguments: TraceArguments?
  ) {
    begin(label, "b", row, at: start, id: id)
    endEvent(arguments)
    for part in parts {
      begin(part.label, "b", row, at: part.start, id: id)
      endEvent()
      begin(part.label, "e", row, at: part.end, id: id)
      endEvent()
    }
    begin(label, "e", row, at: end, id: id)
    endEvent()
  }

  mutating func appendCounter(_ label: TraceLabel, _ row: TraceRow, at time: Int64, _ values: TraceArguments) {
    begin(label, "C", row, at: time)
    endEvent(values)
  }

  mutating func appendArrow(_ label: TraceLabel, from start: TraceLinks.End, to end: TraceLinks.End, id: UInt64) {
    begin(label, "s", start.row, at: start.start)
    append(id: id)
    endEvent()
    begin(label, "f", end.row, at: end.start)
    append(id: id)
    // It ends at the span around it, not at the next one.
    bytes.append(",\"bp\":\"e\"")
    endEvent()
  }

  /// Begins an event. `endEvent` must follow.
  private mutating func begin(_ label: TraceLabel, _ phase: StaticString, _ row: TraceRow, at time: Int64) {
    bytes.append(bytes.count == 0 ? "{" : ",{")
    label.text.withUnsafeBytes { bytes.append($0) }
    bytes.append("\"ph\":\"")
    bytes.append(phase)
    bytes.append("\",")
    row.text.withUnsafeBytes { bytes.append($0) }
    bytes.append(decimal: time)
  }

  private mutating func begin(
    _ label: TraceLabel, _ phase: StaticString, _ row: TraceRow, at time: Int64, id: UInt64
  ) {
    begin(label, phase, row, at: time)
    bytes.append(",\"id2\":{\"local\":\"")
    bytes.append(hexadecimal: id)
    bytes.append("\"}")
  }

  private mutating func append(id: UInt64) {
    bytes.append(",\"id\":\"")
    bytes.append(hexadecimal: id)
    bytes.append("\"")
  }

  private mutating func endEvent(_ arguments: TraceArguments? = nil) {
    if let arguments, !arguments.text.isEmpty {
      bytes.append(",\"args\":{")
      arguments.text.withUnsafeBytes { bytes.append($0) }
      bytes.append("}")
    }
    bytes.append("}")
  }

  mutating func appendInstant(
    _ label: TraceLabel, _ row: TraceRow, at time: Int64, _ scope: TraceWriter.Scope, _ arguments: TraceArguments?
  ) {
    begin(label, "i", row, at: time)
    switch scope {
    case .row: bytes.append(",\"s\":\"t\"")
    case .group: bytes.append(",\"s\":\"p\"")
    case .all: bytes.append(",\"s\":\"g\"")
    }
    endEvent(arguments)
  }

  // MARK: - Names

  mutating func appendName(of group: TraceGroup) {
    appendMetadata("process_name", pid: group.pid, tid: 0, ["name": .text(group.name)])
    appendMetadata("process_sort_index", pid: group.pid, tid: 0, ["sort_index": .number(Int64(group.sortIndex))])
  }

  mutating func appendName(of row: TraceRow) {
    appendMetadata("thread_name", pid: row.pid, tid: row.tid, ["name": .text(row.name)])
    appendMetadata("thread_sort_index", pid: row.pid, tid: row.tid, ["sort_index": .number(Int64(row.tid))])
  }

  private mutating func appendMetadata(_ name: StaticString, pid: Int, tid: Int, _ arguments: TraceArguments) {
    bytes.append(bytes.count == 0 ? "{\"name\":\"" : ",{\"name\":\"")
    bytes.append(name)
    bytes.append("\",\"ph\":\"M\",\"pid\":")
    bytes.append(decimal: Int64(pid))
    bytes.append(",\"tid\":")
    bytes.append(decimal: Int64(tid))
    endEvent(arguments)
  }
}

extension OutputText {
  fileprivate mutating func append(hexadecimal value: UInt64) {
    let length = max(1, (67 - value.leadingZeroBitCount) / 4)
    append(atMost: 16) { end in
      for index in 0..<length {
        let digit = UInt8(truncatingIfNeeded: value >> UInt64(4 * (length - 1 - index))) & 0xF
        end[index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
      }
      return length
    }
  }
}
