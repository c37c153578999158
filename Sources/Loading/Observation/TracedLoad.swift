internal import HTTPTypes
internal import Platform
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
    timeline.end(at: .now)
  }

  func write(to writer: TraceWriter) {
    let group = writer.group(of: origin)
    let accepted = writer.time(timeline.acceptedAt)
    let url = source.redacted
    let arguments = arguments(url)
    let waited = timeline.waited
    if waited > 0 {
      let row = writer.waitingRow(of: group, origin)
      // A load that works later has its arguments there.
      let own = timeline.total > waited ? identification(url) : arguments
      timeline.forEachInterval { phase, start, end in
        guard phase.isWaiting, end > start else { return }
        writer.overlappingSpan(phase.label, on: row, from: accepted + start, to: accepted + end, own)
      }
    }
    let (start, end) = (accepted + waited, accepted + timeline.total)
    guard end > start || waited == 0 else { return }
    guard let lane = writer.lane(named: "load", in: group, from: start, to: end) else {
      return writeBesideLanes(writer, group, accepted, arguments)
    }
    let label = TraceLabel(text: url.lastPathComponent, "load", color: color)
    writer.span(label, on: lane, from: start, to: end, arguments)
    timeline.forEachInterval { phase, start, end in
      guard !phase.isWaiting, end > start else { return }
      writer.span(phase.label, on: lane, from: accepted + start, to: accepted + end)
    }
    if let transfer { writer.link(transfer, Self.sharing, on: lane, from: start) }
  }

  /// Writes the phases after the wait if all lanes are in use.
  private func writeBesideLanes(
    _ writer: TraceWriter, _ group: TraceGroup, _ accepted: Int64, _ arguments: TraceArguments
  ) {
    var parts: [TraceWriter.Part] = []
    timeline.forEachInterval { phase, start, end in
      guard !phase.isWaiting, end > start else { return }
      parts.append(TraceWriter.Part(phase.label, from: accepted + start, to: accepted + end))
    }
    writer.overlappingSpan(
      TraceLabel("further loads", "phase", color: color), on: writer.waitingRow(of: group, origin),
      from: accepted + timeline.waited, to: accepted + timeline.total, parts: parts, arguments)
  }

  /// The arguments by which the spans of one load are recognised.
  private func identification(_ url: String) -> TraceArguments {
    TraceArguments { arguments in
      if let load { arguments.append("load", Int64(bitPattern: load)) }
      arguments.append("url", url)
    }
  }

  /// - Parameter url: the redacted URL.
  private func arguments(_ url: String) -> TraceArguments {
    TraceArguments { arguments in
      arguments.append("url", url)
      arguments.append("totalUs", timeline.total)
      if let load { arguments.append("load", Int64(bitPattern: load)) }
      if let transfer { arguments.append("transfer", Int64(bitPattern: transfer)) }
      arguments.append("priority", priority.name)
      if attempts > 1 { arguments.append("attempts", Int64(attempts)) }
      switch result {
      case .unfinished: arguments.append("result", "unfinished")
      case .ended(.failure(let error)): arguments.append("result", error.kind.rawValue)
      case .ended(.image(let status, let byteCount)):
        arguments.append("result", status.rawValue)
        arguments.append("bytes", byteCount)
      }
    }
  }

  private static let sharing = TraceLabel("shared transfer", "flow")

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
  private static let labels = allCases.map { TraceLabel(text: $0.name, "phase", color: $0.color) }

  fileprivate var label: TraceLabel { Self.labels[rawValue] }

  /// Whether any number of loads of an origin may be in the phase at a time.
  fileprivate var isWaiting: Bool { self == .lookup || self == .wait }

  /// One of the names in the colour scheme of Chromium's trace viewer.
  private var color: StaticString {
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
