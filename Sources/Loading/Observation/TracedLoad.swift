internal import HTTPTypes
internal import Tracing

/// A load as a trace shows it.
struct TracedLoad: Sendable {
  enum Result: Sendable {
    case ended(LoadReport.Outcome)
    /// The load was under way when the trace stopped.
    case unfinished
  }

  var load: UInt64?
  var transfer: UInt64?
  /// It may contain secrets.
  var source: LoadRequest.Source
  var origin: Origin
  var priority: Priority
  var attempts: Int
  var result: Result
  /// Ended.
  var timeline: LoadTimeline

  init(_ report: LoadReport, source: LoadRequest.Source, priority: Priority) {
    (load, transfer, self.source, origin) = (report.load, report.transfer, source, report.origin)
    (self.priority, attempts, result, timeline) = (priority, report.attempts, .ended(report.outcome), report.timeline)
  }

  @LoadingActor
  init(unfinished load: ActiveLoad) {
    (self.load, transfer) = (load.id.serial, load.transfer)
    (source, origin, priority) = (load.request.source, load.request.origin, load.priority)
    (attempts, result, timeline) = (load.attempts, .unfinished, load.timeline)
    timeline.end(at: LoadingActor.now)
  }

  func write(to writer: TraceWriter) {
    let group = writer.group(of: origin)
    let accepted = writer.time(timeline.acceptedAt)
    let url = source.redacted
    let arguments = arguments(url)
    let waited = timeline.waited
    if waited > 0 {
      let row = writer.waitingRow(of: origin)
      // A load that works later has its arguments there.
      let own = timeline.total > waited ? identification(url) : arguments
      timeline.forEachInterval { phase, start, end in
        guard phase.isWaiting, end > start else { return }
        writer.overlappingSpan(
          .constant(phase.name), "phase", on: row, from: accepted + start, to: accepted + end, own)
      }
    }
    let (start, end) = (accepted + waited, accepted + timeline.total)
    guard end > start || waited == 0 else { return }
    guard let lane = writer.lane(named: "load", in: group, from: start, to: end) else {
      return writeBesideLanes(writer, accepted, arguments)
    }
    writer.span(.text(url.lastPathComponent), "load", on: lane, from: start, to: end, color: color, arguments)
    timeline.forEachInterval { phase, start, end in
      guard !phase.isWaiting, end > start else { return }
      writer.span(
        .constant(phase.name), "phase", on: lane, from: accepted + start, to: accepted + end, color: phase.color)
    }
    if let transfer { writer.link(transfer, "shared transfer", on: lane, from: start) }
  }

  /// Writes the phases after the wait if all lanes are in use.
  private func writeBesideLanes(_ writer: TraceWriter, _ accepted: Int64, _ arguments: TraceArguments) {
    var parts: [TraceWriter.Part] = []
    timeline.forEachInterval { phase, start, end in
      guard !phase.isWaiting, end > start else { return }
      parts.append(TraceWriter.Part(.constant(phase.name), from: accepted + start, to: accepted + end))
    }
    writer.overlappingSpan(
      "further loads", "phase", on: writer.waitingRow(of: origin), from: accepted + timeline.waited,
      to: accepted + timeline.total, parts: parts, color: color, arguments)
  }

  /// The arguments by which the spans of one load are recognised.
  private func identification(_ url: String) -> TraceArguments {
    load.map { ["load": .number(Int64(bitPattern: $0)), "url": .text(url)] } ?? ["url": .text(url)]
  }

  /// - Parameter url: the redacted URL.
  private func arguments(_ url: String) -> TraceArguments {
    var arguments = TraceArguments(capacity: 8)
    arguments.append("url", .text(url))
    arguments.append("totalUs", .number(timeline.total))
    if let load { arguments.append("load", .number(Int64(bitPattern: load))) }
    if let transfer { arguments.append("transfer", .number(Int64(bitPattern: transfer))) }
    arguments.append("priority", .text(priority.name))
    if attempts > 1 { arguments.append("attempts", .number(Int64(attempts))) }
    switch result {
    case .unfinished: arguments.append("result", .text("unfinished"))
    case .ended(.failure(let error)): arguments.append("result", .text(error.kind.rawValue))
    case .ended(.image(let status, let byteCount)):
      arguments.append("result", .text(status.rawValue))
      arguments.append("bytes", .number(byteCount))
    }
    return arguments
  }

  private var color: StaticString? {
    switch result {
    case .ended(.image), .unfinished: nil
    case .ended(.failure(let error)): error.kind == .cancelled ? "grey" : "terrible"
    }
  }
}

extension LoadTimeline {
  /// The time before the load began to work.
  fileprivate var waited: Int64 { (self[.lookup] ?? 0) + (self[.wait] ?? 0) }
}

extension LoadTimeline.Phase {
  /// The name in a trace, which is that of the member of `timing` without `Ms`.
  var name: StaticString {
    switch self {
    case .lookup: "lookup"
    case .wait: "wait"
    case .name: "dns"
    case .connect: "connect"
    case .tls: "tls"
    case .request: "request"
    case .body: "body"
    case .store: "store"
    case .decodeWait: "decodeWait"
    case .decode: "decode"
    case .deliver: "deliver"
    }
  }

  /// Whether any number of loads of an origin may be in the phase at a time.
  fileprivate var isWaiting: Bool { self == .lookup || self == .wait }

  /// One of the names in the colour scheme of Chromium's trace viewer.
  fileprivate var color: StaticString {
    switch self {
    case .lookup, .wait, .decodeWait: "grey"
    case .name: "olive"
    case .connect: "yellow"
    case .tls: "rail_idle"
    case .request: "rail_response"
    case .body: "good"
    case .store: "bad"
    case .decode: "detailed_memory_dump"
    case .deliver: "background_memory_dump"
    }
  }
}

extension String {
  /// The part of a URL without a query after its last slash; the whole if that is empty.
  fileprivate var lastPathComponent: String {
    guard let slash = utf8.lastIndex(of: UInt8(ascii: "/")) else { return self }
    let rest = self[index(after: slash)...]
    return rest.isEmpty ? self : String(rest)
  }
}
