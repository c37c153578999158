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
    begin(label, "\"ph\":\"X\",", row, at: start)
    bytes.append(",\"dur\":")
    bytes.append(decimal: max(0, end - start))
    close(arguments)
  }

  /// Appends the begin and the end of an async span.
  ///
  /// - Parameter id: the number of the span within the group.
  mutating func appendOverlappingSpan(
    _ label: TraceLabel, _ row: TraceRow, from start: Int64, to end: Int64, parts: [TraceWriter.Part], id: UInt64,
    _ arguments: TraceArguments?
  ) {
    begin(label, "\"ph\":\"b\",", row, at: start, id: id)
    close(arguments)
    for part in parts {
      appendComma()
      begin(part.label, "\"ph\":\"b\",", row, at: part.start, id: id)
      close(nil)
      appendComma()
      begin(part.label, "\"ph\":\"e\",", row, at: part.end, id: id)
      close(nil)
    }
    appendComma()
    begin(label, "\"ph\":\"e\",", row, at: end, id: id)
    close(nil)
  }

  mutating func appendCounter(_ label: TraceLabel, _ row: TraceRow, at time: Int64, _ values: TraceArguments) {
    begin(label, "\"ph\":\"C\",", row, at: time)
    close(values)
  }

  mutating func appendArrow(_ label: TraceLabel, from start: TraceLinks.End, to end: TraceLinks.End, id: UInt64) {
    begin(label, "\"ph\":\"s\",", start.row, at: start.start)
    append(id: id)
    close(nil)
    appendComma()
    // It ends at the span around it, not at the next one.
    begin(label, "\"ph\":\"f\",\"bp\":\"e\",", end.row, at: end.start)
    append(id: id)
    close(nil)
  }

  mutating func appendInstant(
    _ label: TraceLabel, _ row: TraceRow, at time: Int64, _ scope: TraceWriter.Scope, _ arguments: TraceArguments?
  ) {
    let phase: StaticString =
      switch scope {
      case .row: "\"ph\":\"i\",\"s\":\"t\","
      case .group: "\"ph\":\"i\",\"s\":\"p\","
      case .all: "\"ph\":\"i\",\"s\":\"g\","
      }
    begin(label, phase, row, at: time)
    close(arguments)
  }

  /// - Parameter phase: the members that depend on the type of the event.
  private mutating func begin(_ label: TraceLabel, _ phase: StaticString, _ row: TraceRow, at time: Int64) {
    label.text.withUnsafeBytes { bytes.append($0) }
    bytes.append(phase)
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

  private mutating func close(_ arguments: TraceArguments?) {
    guard let arguments, !arguments.text.isEmpty else { return bytes.append("}") }
    bytes.append(",\"args\":{")
    arguments.text.withUnsafeBytes { bytes.append($0) }
    bytes.append("}}")
  }

  /// Must be called between the events of one piece.
  mutating func appendComma() { bytes.append(",") }

  // MARK: - Names

  mutating func appendName(of group: TraceGroup) {
    appendMetadata("process_name", pid: group.pid, tid: 0, ["name": .text(group.name)])
    appendComma()
    appendMetadata("process_sort_index", pid: group.pid, tid: 0, ["sort_index": .number(Int64(group.sortIndex))])
  }

  mutating func appendName(of row: TraceRow) {
    appendMetadata("thread_name", pid: row.pid, tid: row.tid, ["name": .text(row.name)])
    appendComma()
    appendMetadata("thread_sort_index", pid: row.pid, tid: row.tid, ["sort_index": .number(Int64(row.tid))])
  }

  private mutating func appendMetadata(_ name: StaticString, pid: Int, tid: Int, _ arguments: TraceArguments) {
    bytes.append("{\"name\":\"")
    bytes.append(name)
    bytes.append("\",\"ph\":\"M\",\"pid\":")
    bytes.append(decimal: Int64(pid))
    bytes.append(",\"tid\":")
    bytes.append(decimal: Int64(tid))
    close(arguments)
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
