internal import LineRPC

/// Writes the events of a trace, in the Trace Event Format of Chromium, which Perfetto and chrome://tracing read.
///
/// A span is a complete event (`X`) on a row whose spans nest, or a pair of nestable async events (`b`, `e`) on a row
/// whose spans overlap. Times are microseconds since the start of the trace. Used on the thread of the trace only.
public final class TraceWriter {
  private let start: ContinuousClock.Instant
  private var file: TraceFile?
  private var pages: TracePages
  private var tracks: TraceTracks
  private var links = TraceLinks()
  /// The events of one piece.
  private var json = JSONWriter(capacity: TracePages.pageSize)
  private var lap = 0
  private var lastID: UInt64 = 0
  private(set) var eventCount = 0
  /// The number of events that were not written because they were too long.
  private(set) var refusedCount = 0
  private(set) var error: TraceError?
  private var headerDrop: Int64?
  private let label: String

  /// The first bytes of each trace, by which an earlier one is recognised.
  static let beginning = Array("[{\"name\":\"process_name\",\"ph\":\"M\"".utf8)

  /// The amount of text at which it is written to the file.
  private static let maxPendingBytes = 256 << 10
  private static let tail = Array(
    ("{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":1,\"tid\":0,\"args\":{\"sort_index\":0}}\n]\n").utf8)

  /// - Parameter label: describes the process, in the name of its group.
  init(file: consuming TraceFile, limit: Int64, start: ContinuousClock.Instant, label: String) throws(TraceError) {
    self.file = consume file
    self.start = start
    self.label = label
    pages = TracePages(limit: limit, tail: Self.tail)
    // The names of rows take 100 bytes each, and a quarter of the file at most.
    tracks = TraceTracks(maxGroups: max(4, min(2000, Int(min(limit, 1 << 40) / 4 / 100 / 16))))
    writeHeader()
    flush()
    if let error { throw error }
  }

  // MARK: - Rows

  /// A group of rows.
  public struct Group: Sendable, Hashable {
    let key: TraceGroupKey
    let pid: Int
  }

  /// The group of the process itself.
  public let worker = Group(key: TraceGroupKey("", 0), pid: TraceTracks.worker)

  /// Returns the group with this key, which is created if needed.
  ///
  /// - Parameter isLast: whether the group comes after those of which this is false.
  public func group(_ key: TraceGroupKey, named name: @autoclosure () -> String, isLast: Bool = false) -> Group {
    let (key, isNew) = tracks.admit(key, named: name, isLast: isLast, lap: lap)
    if isNew { writeName(of: tracks.modify(key) { $0 }) }
    return Group(key: key, pid: tracks.modify(key) { $0.pid })
  }

  /// Returns the row with this number, which is named if it is new. Its spans must nest.
  public func row(_ number: Int, named name: @autoclosure () -> String, in group: Group) -> TraceTrack {
    let track = TraceTrack(pid: group.pid, tid: number)
    if group.pid == worker.pid {
      if workerRows[number] == nil {
        workerRows[number] = name()
        writeName(of: track, workerRows[number]!)
      }
    } else if tracks.modify(group.key, { $0.rows[number] == nil }) {
      let name = name()
      tracks.modify(group.key) { $0.rows[number] = name }
      writeName(of: track, name)
    }
    return track
  }

  private var workerRows: [Int: String] = [:]

  /// Returns the row of the group for spans that overlap, and for instants.
  public func overlappingRow(named name: String, in group: Group) -> TraceTrack {
    row(TraceTracks.overlapping, named: name, in: group)
  }

  /// Returns a row of the group that is free from `start` on; nil if too many are in use. Must be called in the order
  /// of the ends.
  public func lane(named name: String, in group: Group, from start: Int64, to end: Int64) -> TraceTrack? {
    tracks.modify(group.key) { $0.lanes.take(from: start, to: end) }.map { lane in
      row(TraceTracks.firstLane + lane, named: "\(name) \(lane + 1)", in: group)
    }
  }

  // MARK: - Events

  /// The microseconds from the start of the trace; 0 for earlier instants.
  public func time(_ instant: ContinuousClock.Instant) -> Int64 {
    let (seconds, attoseconds) = start.duration(to: instant).components
    return max(0, seconds * 1_000_000 + attoseconds / 1_000_000_000_000)
  }

  /// Writes a span on a row whose spans nest.
  public func span(
    _ name: TraceName, _ category: StaticString, on track: TraceTrack, from start: Int64, to end: Int64,
    color: StaticString? = nil, _ arguments: TraceArguments = [:]
  ) {
    write(endingAt: end) { json in
      json.begin(name, "X", category, track, at: start)
      json.member("dur", max(0, end - start))
      if let color { json.member("cname", constant: color) }
      json.end(arguments)
    }
  }

  /// A span within an overlapping one.
  public struct Part {
    var name: TraceName
    var start: Int64
    var end: Int64

    public init(_ name: TraceName, from start: Int64, to end: Int64) {
      (self.name, self.start, self.end) = (name, start, end)
    }
  }

  /// Writes a span on a row whose spans overlap, with parts that follow each other.
  public func overlappingSpan(
    _ name: TraceName, _ category: StaticString, on track: TraceTrack, from start: Int64, to end: Int64,
    parts: [Part] = [], color: StaticString? = nil, _ arguments: TraceArguments = [:]
  ) {
    lastID += 1
    let id = TraceID.local(lastID)
    write(endingAt: end, count: 2 + 2 * parts.count) { json in
      json.begin(name, "b", category, track, at: start, id: id)
      if let color { json.member("cname", constant: color) }
      json.end(arguments)
      for part in parts {
        json.begin(part.name, "b", category, track, at: part.start, id: id)
        json.end([:])
        json.begin(part.name, "e", category, track, at: part.end, id: id)
        json.end([:])
      }
      json.begin(name, "e", category, track, at: end, id: id)
      json.end([:])
    }
  }

  /// The events that an instant applies to.
  public enum Scope {
    case thread, process, all
  }

  public func instant(
    _ name: TraceName, _ category: StaticString, on track: TraceTrack, at time: Int64, scope: Scope,
    _ arguments: TraceArguments = [:]
  ) {
    write(endingAt: time) { $0.instant(name, category, track, at: time, scope, arguments) }
  }

  /// Writes the values of a chart, which has one series for each name.
  public func counter(_ name: TraceName, in group: Group, at time: Int64, _ values: TraceArguments) {
    write(endingAt: time) { json in
      json.begin(name, "C", "counter", TraceTrack(pid: group.pid, tid: 0), at: time)
      json.end(values)
    }
  }

  /// Writes an arrow from the earlier of two spans to the later one, if a span with the same key was linked before.
  ///
  /// The arrow leaves and reaches the innermost spans at their starts.
  public func link(_ key: UInt64, _ name: TraceName, on track: TraceTrack, from start: Int64) {
    guard let other = links.link(key, TraceLinks.End(track: track, start: start)) else { return }
    lastID += 1
    let id = TraceID.global(lastID)
    let ends = [other, TraceLinks.End(track: track, start: start)].sorted { $0.start < $1.start }
    write(endingAt: ends[1].start, count: 2) { json in
      json.begin(name, "s", "flow", ends[0].track, at: ends[0].start, id: id)
      json.end([:])
      json.begin(name, "f", "flow", ends[1].track, at: ends[1].start, id: id)
      json.member("bp", constant: "e")
      json.end([:])
    }
  }

  /// Writes that records were lost before they became events.
  func lost(_ count: Int, at time: ContinuousClock.Instant) {
    let time = self.time(time)
    write(endingAt: time) {
      let track = TraceTrack(pid: TraceTracks.worker, tid: 0)
      $0.instant("records lost", "trace", track, at: time, .all, ["count": .number(Int64(count))])
    }
  }

  // MARK: - Text

  private func write(endingAt time: Int64, count: Int = 1, _ body: (inout JSONWriter) -> Void) {
    guard error == nil else { return }
    json.removeAll()
    body(&json)
    guard json.withBytes({ pages.append($0, endingAt: time) }) else {
      refusedCount += count
      return
    }
    eventCount += count
    if pages.finishedBytes > Self.maxPendingBytes { flush() }
    if pages.lap != lap { startLap() }
  }

  private func startLap() {
    lap = pages.lap
    for group in tracks.startLap(lap) {
      writeName(of: group)
      for (number, name) in group.rows { writeName(of: TraceTrack(pid: group.pid, tid: number), name) }
    }
    for (number, name) in workerRows { writeName(of: TraceTrack(pid: worker.pid, tid: number), name) }
  }

  private func writeName(of group: TraceTracks.Group) {
    write(endingAt: .min, count: 2) { $0.name(of: group.pid, group.name, sortIndex: group.sortIndex) }
  }

  private func writeName(of track: TraceTrack, _ name: String) {
    write(endingAt: .min, count: 2) { json in
      json.metadata("thread_name", track) { $0.member("name", name) }
      json.metadata("thread_sort_index", track) { $0.member("sort_index", track.tid) }
    }
  }

  /// Writes the first page: the name of the process, and where the trace begins if older events were overwritten.
  private func writeHeader() {
    var json = JSONWriter(capacity: 512)
    json.name(of: worker.pid, label, sortIndex: 0)
    if let time = pages.droppedUntil {
      let track = TraceTrack(pid: worker.pid, tid: 0)
      json.instant("older events dropped", "trace", track, at: max(0, time), .all, [:])
    }
    var bytes = json.line()
    bytes.insert(UInt8(ascii: ","), at: bytes.count - 1)
    pages.setHeader(bytes)
    headerDrop = pages.droppedUntil
  }

  /// Writes all events so far to the file.
  func flush() {
    guard error == nil else { return }
    if pages.droppedUntil != headerDrop { writeHeader() }
    do throws(TraceError) {
      try file?.write(pages.takeWrites())
    } catch {
      self.error = error
    }
  }

  /// Writes all events and closes the file.
  func close() {
    flush()
    file = nil
  }

  var byteCount: Int64 { pages.byteCount }
}
