internal import ImageCodec
internal import LineRPC
internal import Loading

/// Maps a `LoadError` to an error of the protocol. No other place does.
enum WireErrors {
  /// The code of each kind, in the order of the protocol's lists.
  static func code(of kind: LoadError.Kind) -> Int {
    switch kind {
    case .resolve: 2001
    case .connect: 2002
    case .tls: 2003
    case .timeout: 2004
    case .http: 2005
    case .redirects: 2006
    case .truncated: 2007
    case .tooLarge: 2008
    case .blockedAddress: 2009
    case .recentlyFailed: 2010
    case .network: 2011
    case .robots: 2012
    case .notCached: 3001
    case .diskFull: 3002
    case .io: 3003
    case .notAnImage: 4001
    case .unsupportedFormat: 4002
    case .corrupt: 4003
    case .tooManyPixels: 4004
    case .decoderCrashed: 4005
    case .decodeTimeout: 4006
    case .digestMismatch: 4007
    case .unwanted: 4008
    case .shuttingDown: 5001
    case .overloaded: 5002
    case .cancelled: -32800
    case .internal: -32603
    case .invalidParams: -32602
    }
  }

  /// - Parameter url: the URL of the request; for a `data:` URL only the part before the comma.
  static func wire(_ error: LoadError, url: String?) -> RPCError {
    var details = JSONObject()
    if let url { details.set("url", .string(url)) }
    if error.attempts > 1 { details.set("attempts", .integer(Int64(error.attempts))) }
    if error.isOriginDown { details.set("originDown", .bool(true)) }
    if let failure = error.failure { details.set("failure", .string(failure.rawValue)) }
    if let rule = error.rule { details.set("rule", .string(rule)) }
    if let status = error.status { details.set("status", .integer(Int64(status))) }
    if let phase = error.phase { details.set("phase", .string(phase.rawValue)) }
    if let retryAfter = error.retryAfter { details.set("retryAfterMs", .integer(retryAfter.milliseconds)) }
    if let member = error.member { details.set("member", .string(member)) }
    if let output = error.output { details.set("output", .string(output)) }
    add(error.figures, to: &details)
    if let timeout = error.decodeTimeout {
      if let time = timeout.processorTime { details.set("cpuMs", .integer(time.milliseconds)) }
      details.set("wallMs", .integer(timeout.elapsedTime.milliseconds))
    }
    if let timeline = error.timeline { details.set("timing", .object(timeline.members)) }
    if let response = error.response { details.set("response", ResponseFields.json(response)) }
    return RPCError(
      code: code(of: error.kind), message: error.message, kind: error.kind.rawValue, retryable: error.isRetryable,
      details: details)
  }

  private static func add(_ figures: ErrorFigures, to details: inout JSONObject) {
    if let wanted = figures.wanted { details.set("wanted", .string(wanted)) }
    if let format = figures.format { details.set("format", .string(format.rawValue)) }
    if let detected = figures.detected { details.set("detected", .string(detected.rawValue)) }
    let numbers: [(String, Int?)] = [
      ("width", figures.width), ("height", figures.height), ("frames", figures.frames), ("maxSide", figures.maxSide),
    ]
    for (name, number) in numbers { if let number { details.set(name, .integer(Int64(number))) } }
    if let bytes = figures.bytes { details.set("bytes", .integer(bytes)) }
    if let limit = figures.limit { details.set("limit", Int64(exactly: limit).map { .integer($0) } ?? .number(limit)) }
  }
}
