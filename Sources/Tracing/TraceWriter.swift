public import Platform

/// Writes the events of a trace, in the Trace Event Format of Chromium, which Perfetto and chrome://tracing read.
///
/// A span is a complete event (`X`) on a row whose spans nest, or a pair of nestable async events (`b`, `e`) on a row
/// whose spans overlap. Times are microseconds since the start of the trace. Used on the thread of the trace only.
public final class TraceWriter {
  private let start: Instant
  private var output: TraceOutput
  private var tracks: TraceTracks
  private var links = TraceLinks()
  private var lastID: UInt64 = 0

  /// - Parameter label: describes the process, as the name of its group.
  init(file: consuming TraceFile, limit: Int64, start: Instant, label: String) throws(TraceError) {
    let tracks = TraceTracks(name: label)
    output = try TraceOutput(file: file, limit: limit, worker: tracks.worker)
    (self.start, self.tracks) = (start, tracks)
  }

  var eventCount: Int { output.eventCount }
  var refusedCount: Int { output.refusedCount }
  var byteCount: Int64 { output.byteCount }
  var isFull: Bool { output.isFull }
  var error: TraceError? { output.error }
  /// Why nothing more is written.
  var reasonOfEnd: String? { error?.message ?? (isFull ? "the file has its maximum size" : nil) }

  // MARK: - Rows

  /// The group of the process itself.
  public var worker: TraceGroup { tracks.worker }

  /// Returns the group with this key, which is created if needed.
  public func group(_ key: TraceGroupKey, named name: @autoclosure () -> String) -> TraceGroup {
    let (group, isNew) = tracks.group(key, named: name)
    if isNew { output.write(count: 2) { $0.appendName(of: group) } }
    return group
  }

  /// Returns a group that belongs to another, and comes after all of those. It is created if needed.
  public func companion(of group: TraceGroup, named name: @autoclosure () -> String) -> TraceGroup {
    let (companion, isNew) = tracks.companion(of: group, named: name)
    if isNew { output.write(count: 2) { $0.appendName(of: companion) } }
    return companion
  }

  /// Returns the row with this number, less than 1000, which is created if needed.
  public func row(_ number: Int, named name: @autoclosure () -> String, in group: TraceGroup) -> TraceRow {
    let (row, isNew) = tracks.row(number, named: name, in: group)
    if isNew { output.write(count: 2) { $0.appendName(of: row) } }
    return row
  }

  /// Returns a row of the group that is free from `start` on; nil if too many are in use. Must be called in the order
  /// of the ends.
  public func lane(named name: String, in group: TraceGroup, from start: Int64, to end: Int64) -> TraceRow? {
    guard let (row, isNew) = tracks.lane(in: group, named: name, from: start, to: end) else { return nil }
    if isNew { output.write(count: 2) { $0.appendName(of: row) } }
    return row
  }

  // MARK: - Events

  /// The microseconds from the start of the trace; 0 for earlier instants.
  public func time(_ instant: Instant) -> Int64 {
    let (seconds, attoseconds) = start.duration(to: instant).components
    return max(0, seconds * 1_000_000 + attoseconds / 1_000_000_000_000)
  }

  /// Writes a span on a row whose spans nest.
  public func span(
    _ label: TraceLabel, on row: TraceRow, from start: Int64, to end: Int64, _ arguments: TraceArguments? = nil
  ) {
    output.write(endingAt: end) { $0.appendSpan(label, row, from: start, to: end, arguments) }
  }

  /// A span within an overlapping one.
  public struct Part {
    var label: TraceLabel
    var start: Int64
    var end: Int64

    public init(_ label: TraceLabel, from start: Int64, to end: Int64) {
      (self.label, self.start, self.end) = (label, start, end)
    }
  }

  /// Writes a span on a row whose spans overlap, with parts that follow each other.
  public func overlappingSpan(
    _ label: TraceLabel, on row: TraceRow, from start: Int64, to end: Int64, parts: [Part] = [],
    _ arguments: TraceArguments? = nil
  ) {
    lastID += 1
    output.write(endingAt: end, count: 2 + 2 * parts.count) {
      $0.appendOverlappingSpan(label, row, from: start, to: end, parts: parts, id: lastID, arguments)
    }
  }

  /// The events that an instant applies to.
  public enum Scope {
    case row, group, all
  }

  public func instant(
    _ label: TraceLabel, on row: TraceRow, at time: Int64, scope: Scope, _ arguments: TraceArguments? = nil
  ) {
    output.write(endingAt: time) { $0.appendInstant(label, row, at: time, scope, arguments) }
  }

  /// Writes the values of a chart, which has one series for each name.
  public func counter(_ label: TraceLabel, in group: TraceGroup, at time: Int64, _ values: TraceArguments) {
    let row = TraceRow(pid: group.pid, tid: 0, name: "")
    output.write(endingAt: time) { $0.appendCounter(label, row, at: time, values) }
  }

  /// Writes an arrow from the earlier of two spans to the later one, if a span with the same key was linked before.
  ///
  /// The arrow leaves and reaches the innermost spans at their starts.
  public func link(_ key: UInt64, _ label: TraceLabel, on row: TraceRow, from start: Int64) {
    let end = TraceLinks.End(row: row, start: start)
    guard let other = links.link(key, end) else { return }
    lastID += 1
    let (first, second) = other.start <= start ? (other, end) : (end, other)
    output.write(endingAt: second.start, count: 2) { $0.appendArrow(label, from: first, to: second, id: lastID) }
  }

  /// Writes that records were lost before they became events.
  func lost(_ count: Int, at time: Instant) {
    instant(
      TraceLabel("records lost", "trace"), on: TraceRow(pid: worker.pid, tid: 0, name: ""), at: self.time(time),
      scope: .all, ["count": .number(Int64(count))])
  }

  // MARK: - The file

  /// Writes all events so far to the file.
  func flush() { output.flush() }

  /// Writes all events and closes the file.
  func close() { output.close() }
}

/// The spans that arrows may start from, by key. A key takes the place of another one that is a multiple of `capacity`
/// apart: keys that count up are forgotten when they are old.
struct TraceLinks {
  struct End {
    var row: TraceRow
    var start: Int64
  }

  static let capacity: UInt64 = 4096
  private var ends: [(key: UInt64, end: End)?] = Array(repeating: nil, count: Int(capacity))

  /// Returns the span that was linked first with this key; nil if this is the first, which is then kept.
  mutating func link(_ key: UInt64, _ end: End) -> End? {
    let slot = Int(key % Self.capacity)
    if let other = ends[slot], other.key == key { return other.end }
    ends[slot] = (key, end)
    return nil
  }
}
