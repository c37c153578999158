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
  /// As the host gave it: it may contain secrets.
  var url: String
  var origin: Origin
  var priority: Priority
  var attempts: Int
  var result: Result
  /// Ended.
  var timeline: LoadTimeline

  init(_ report: LoadReport, priority: Priority) {
    (load, transfer, url, origin) = (report.load, report.transfer, report.url, report.origin)
    (self.priority, attempts, result, timeline) = (priority, report.attempts, .ended(report.outcome), report.timeline)
  }

  @LoadingActor
  init(unfinished load: ActiveLoad) {
    (self.load, transfer) = (load.id.serial, load.transfer)
    (url, origin, priority) = (load.request.url, load.request.origin, load.priority)
    (attempts, result, timeline) = (load.attempts, .unfinished, load.timeline)
    timeline.end(at: .now)
  }

  private typealias Interval = (phase: LoadTimeline.Phase, start: Int64, end: Int64)

  func write(to writer: TraceWriter) {
    let group = writer.group(named: origin.description)
    let waitingRow = writer.waitingRow(of: origin)
    let accepted = writer.time(timeline.acceptedAt)
    let url = redacted(url)
    let arguments = arguments(url)
    var working: [Interval] = []
    timeline.forEachInterval { phase, start, end in
      let (start, end) = (accepted + start, accepted + end)
      guard phase.isWaiting else { return working.append((phase, start, end)) }
      writer.overlappingSpan(.constant(phase.name), "phase", on: waitingRow, from: start, to: end, arguments)
    }
    guard let start = working.first?.start, let end = working.last?.end else { return }
    guard let lane = writer.lane(named: "load", in: group, from: start, to: end) else {
      // More loads at a time than lanes.
      let parts = working.map { TraceWriter.Part(.constant($0.phase.name), from: $0.start, to: $0.end) }
      return writer.overlappingSpan(
        "further loads", "phase", on: waitingRow, from: start, to: end, parts: parts, color: color, arguments)
    }
    writer.span(.text(url.lastPathComponent), "load", on: lane, from: start, to: end, color: color, arguments)
    for (phase, start, end) in working {
      writer.span(.constant(phase.name), "phase", on: lane, from: start, to: end, color: phase.color)
    }
    if let transfer { writer.link(transfer, "shared transfer", on: lane, from: start) }
  }

  /// - Parameter url: the redacted URL.
  private func arguments(_ url: String) -> TraceArguments {
    var arguments: TraceArguments = ["url": .text(url), "totalUs": .number(timeline.total)]
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
