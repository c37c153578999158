internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import LineRPC
internal import Platform

/// Translates causes and effects to and from the lines of a journal.
///
/// Each line is a JSON object: a cause with the members `cause`, `at` and `unix`, or an effect of the last cause, whose
/// first member is its kind. Times are in nanoseconds since the start.
struct JournalCoding: Sendable {
  /// The instant that corresponds to 0.
  let start: Instant

  // MARK: - Writing

  func json(_ cause: Cause, at moment: Moment) -> JSON {
    var line = JSONObject()
    line.set("at", .integer(moment.nanoseconds))
    line.set("unix", .integer(Int64(moment.unixTime)))
    func begin(_ name: String) { line.set("cause", .string(name)) }
    switch cause {
    case .start: begin("start")
    case .input(let lines):
      begin("input")
      line.set("lines", .array(lines.map { json($0) }))
    case .endOfInput(let failed):
      begin("endOfInput")
      line.set("failed", .bool(failed))
    case .termination: begin("termination")
    case .work(let source):
      begin("work")
      line.set("source", JSON(source))
    case .figures: begin("figures")
    case .advance: begin("advance")
    case .redirect(let transfer, let url):
      begin("redirect")
      line.set("transfer", JSON(transfer))
      line.set("url", .string(url))
    case .response(let transfer, let head):
      begin("response")
      line.set("transfer", JSON(transfer))
      add(head, to: &line)
    case .body(let transfer, let count, _):
      begin("body")
      line.set("transfer", JSON(transfer))
      line.set("bytes", .integer(Int64(count)))
    case .end(let transfer, let outcome, let body):
      begin("end")
      line.set("transfer", JSON(transfer))
      if let body { line.set("body", .string(body)) }
      switch outcome {
      case .success(let summary): line.set("summary", json(summary))
      case .failure(let error): line.set("error", json(error))
      }
    case .name(let lookUp, let resolution):
      begin("name")
      line.set("lookUp", JSON(lookUp))
      line.set("outcome", .string(resolution.outcome.rawValue))
      line.set("duration", resolution.duration.nanoseconds)
    case .decoded(let decode, let failure, let start):
      begin("decoded")
      line.set("decode", JSON(decode))
      line.set("start", start.map(offset))
      if let failure = failure.flatMap(MachineFailure.init) {
        line.set("failure", .string(failure.kind.rawValue))
        line.set("message", .string(failure.message))
      }
    }
    return .object(line)
  }

  private func json(_ line: InputLine) -> JSON {
    switch line {
    case .json(let value, _, let paths):
      var object: JSONObject = ["json": value]
      if !paths.isEmpty { object.set("paths", .array(paths.map { json($0) })) }
      return .object(object)
    case .invalid(let message): return .object(["invalid": .string(message)])
    case .tooLong(let limit): return .object(["tooLong": .integer(Int64(limit))])
    }
  }

  private func json(_ path: HostPath) -> JSON {
    var object: JSONObject = [
      "path": .string(path.path), "kind": .string(path.kind.rawValue), "parent": .bool(path.hasParent),
    ]
    if path.kind == .file { object.set("bytes", path.byteCount) }
    if let digest = path.digest { object.set("body", .string(digest)) }
    return .object(object)
  }

  private func add(_ head: ResponseHead, to line: inout JSONObject) {
    line.set("status", .integer(Int64(head.status)))
    line.set("version", .string(head.httpVersion))
    line.set("url", .string(head.finalURL))
    line.set("length", head.contentLength)
    line.set("responseHeaders", JSON(head.headers))
  }

  private func json(_ summary: TransferSummary) -> JSON {
    var object = JSONObject()
    add(summary.head, to: &object)
    object.set("received", summary.bytesReceived)
    object.set("redirects", .integer(Int64(summary.redirects)))
    object.set("times", json(summary.times))
    object.set("requestTime", .integer(Int64(summary.requestTime)))
    object.set("responseTime", .integer(Int64(summary.responseTime)))
    return .object(object)
  }

  private func json(_ error: TransferError) -> JSON {
    var object: JSONObject = ["kind": .string(error.kind.rawValue)]
    if let phase = error.phase { object.set("phase", .string(phase.rawValue)) }
    object.set("message", .string(error.message))
    object.set("received", error.bytesReceived)
    object.set("redirects", .integer(Int64(error.redirects)))
    if let times = error.times { object.set("times", json(times)) }
    return .object(object)
  }

  private func json(_ times: TransferTimes) -> JSON {
    var object = JSONObject()
    object.set("startedAt", offset(times.startedAt))
    object.set("name", times.name?.nanoseconds)
    object.set("connect", times.connect?.nanoseconds)
    object.set("tls", times.tls?.nanoseconds)
    object.set("sentAt", times.requestSentAt.map(offset))
    object.set("firstByteAt", times.firstByteAt.map(offset))
    object.set("endedAt", offset(times.endedAt))
    object.set("redirects", .integer(Int64(times.redirects)))
    return .object(object)
  }

  private func offset(_ instant: Instant) -> Int64 { start.duration(to: instant).nanoseconds }

  // MARK: - Reading

  func moment(_ line: Members) throws(RecordingError) -> Moment {
    Moment(nanoseconds: try line.integer("at"), unixTime: Int(try line.integer("unix")))
  }

  func cause(_ line: Members) throws(RecordingError) -> Cause {
    let name = try line.text("cause")
    switch name {
    case "start": return .start
    case "input":
      var lines: [InputLine] = []
      for element in try line.array("lines") { lines.append(try inputLine(Members(element))) }
      return .input(lines)
    case "endOfInput": return .endOfInput(failed: try line.flag("failed"))
    case "termination": return .termination
    case "work": return .work(try line.number("source"))
    case "figures": return .figures
    case "advance": return .advance
    case "redirect": return .redirect(transfer: try line.number("transfer"), try line.text("url"))
    case "response": return .response(transfer: try line.number("transfer"), try head(line))
    case "body": return .body(transfer: try line.number("transfer"), count: Int(try line.number("bytes")), [])
    case "end":
      let outcome: Result<TransferSummary, TransferError> =
        line.has("error")
        ? .failure(try error(Members(line.value("error")))) : .success(try summary(Members(line.value("summary"))))
      return .end(transfer: try line.number("transfer"), outcome, body: try line.text(ifPresent: "body"))
    case "name":
      let resolution = NameResolution(
        try line.choice("outcome"), duration: try line.duration(ifPresent: "duration") ?? .zero)
      return .name(lookUp: try line.number("lookUp"), resolution)
    case "decoded":
      var failure: DecodeError?
      if line.has("failure") {
        failure = MachineFailure(kind: try line.choice("failure"), message: try line.text("message")).error
      }
      let start = try line.integer(ifPresent: "start").map(instant)
      return .decoded(decode: try line.number("decode"), failure: failure, start: start)
    default: throw RecordingError("unknown cause \(name.quotable)")
    }
  }

  private func inputLine(_ line: Members) throws(RecordingError) -> InputLine {
    if line.has("invalid") { return .invalid(try line.text("invalid")) }
    if line.has("tooLong") { return .tooLong(limit: Int(try line.integer("tooLong"))) }
    var paths: [HostPath] = []
    for element in line.has("paths") ? try line.array("paths") : [] {
      let path = try Members(element)
      paths.append(
        HostPath(
          path: try path.text("path"), kind: try path.choice("kind"), hasParent: try path.flag("parent"),
          byteCount: try path.integer(ifPresent: "bytes") ?? 0, digest: try path.text(ifPresent: "body")))
    }
    return .json(try line.value("json"), byteCount: 0, paths)
  }

  private func head(_ line: Members) throws(RecordingError) -> ResponseHead {
    ResponseHead(
      status: Int(try line.integer("status")), headers: try line.fields("responseHeaders"),
      finalURL: try line.text("url"), httpVersion: try line.text("version"),
      contentLength: try line.integer(ifPresent: "length"))
  }

  private func summary(_ line: Members) throws(RecordingError) -> TransferSummary {
    TransferSummary(
      head: try head(line), bytesReceived: try line.integer("received"), redirects: Int(try line.integer("redirects")),
      times: try times(Members(line.value("times"))), requestTime: Int(try line.integer("requestTime")),
      responseTime: Int(try line.integer("responseTime")))
  }

  private func error(_ line: Members) throws(RecordingError) -> TransferError {
    var error = TransferError(
      try line.choice("kind"), try line.text("message"), phase: line.has("phase") ? try line.choice("phase") : nil,
      bytesReceived: try line.integer("received"))
    error.redirects = Int(try line.integer("redirects"))
    if line.has("times") { error.times = try times(Members(line.value("times"))) }
    return error
  }

  private func times(_ line: Members) throws(RecordingError) -> TransferTimes {
    var times = TransferTimes(
      startedAt: instant(try line.integer("startedAt")), endedAt: instant(try line.integer("endedAt")))
    times.name = try line.duration(ifPresent: "name")
    times.connect = try line.duration(ifPresent: "connect")
    times.tls = try line.duration(ifPresent: "tls")
    times.requestSentAt = try line.integer(ifPresent: "sentAt").map(instant)
    times.firstByteAt = try line.integer(ifPresent: "firstByteAt").map(instant)
    times.redirects = Int(try line.integer("redirects"))
    return times
  }

  func instant(_ nanoseconds: Int64) -> Instant { start + .nanoseconds(nanoseconds) }
}
