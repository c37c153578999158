internal import HTTPTypes
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Text

/// The load that a line of the log is about.
struct LoadSubject {
  /// Nil for a load that was answered from memory at once, and for an item of a prefetch that became no load.
  var load: LoadID?
  let url: String
  /// Nil for an item of a prefetch that became no load.
  let headers: LoadHeaders?
  let kind: Kind

  enum Kind {
    case load, probe, process
  }

  init(_ request: LoadRequest, as load: LoadID? = nil) {
    (self.load, url, headers) = (load, request.url, request.fields)
    kind = request.isProbe ? .probe : request.isProcess ? .process : .load
  }

  init(_ item: Prefetch.Item) { (load, url, headers, kind) = (item.load, item.url, item.headers, .load) }

  fileprivate func fields(_ request: RequestID?) -> [(LogEvent.Field, JSON?)] {
    [
      (.requestId, request?.json), (.load, load.map(JSON.init)), (.traceId, headers?.traceID),
      (.url, shownURL.map(JSON.string)),
    ]
  }

  /// The URL without user info and query; nil for a text that is no URL.
  fileprivate var shownURL: String? {
    if url.hasPrefix("file:") { return url }
    return DataURL.isDataURL(url) ? DataURL.echo(url) : (try? ResourceURL(url))?.redacted
  }
}

extension LoadHeaders {
  /// The trace id that the host gave for the load.
  fileprivate var traceID: JSON? { all["traceparent"].flatMap(TraceParent.init).map { .string($0.traceID) } }
}

/// The events of loads and prefetches.
extension LogEvent {
  static func loadAccepted(_ subject: LoadSubject, _ id: RequestID?, _ priority: Priority) -> LogEvent {
    LogEvent(.loadAccepted, subject, id, "accepted", [(.priority, .string(priority.name))])
  }

  /// The events of a load that are logged before its end.
  static let loggedEvents: LoadRequest.Events = [.started, .retrying]

  /// Nil for an event that is not logged.
  static func load(_ subject: LoadSubject, _ id: RequestID?, did event: LoadEvent) -> LogEvent? {
    switch event {
    case .started(let attempt):
      LogEvent(.loadStarted, subject, id, "attempt \(attempt) starts", [(.attempt, .count(attempt))])
    case .retrying(let attempt, let delay, let kind):
      LogEvent(
        .loadRetrying, subject, id, "attempt \(attempt) in \(delay.text), because of \(kind.rawValue)",
        [
          (.attempt, .count(attempt)), (.delayMs, .integer(delay.milliseconds)), (.kind, .string(kind.rawValue)),
        ])
    case .progress, .cached, .preview: nil
    }
  }

  static func loadCompleted(_ subject: LoadSubject, _ id: RequestID?, _ image: LoadedImage) -> LogEvent {
    LogEvent(
      .loadCompleted, subject, id,
      "\(image.cache.rawValue), \(image.content.byteCount) bytes, \(Duration.microseconds(image.timeline?.total ?? 0).text)",
      [
        (.cache, .string(image.cache.rawValue)), (.bytes, .integer(image.content.byteCount)),
        (.attempts, .count(image.attempts)), (.timing, image.timeline.map { .object($0.members) }),
      ])
  }

  /// A fault of the worker or of a decoder is a warning, since it may concern the maintainer.
  static func loadFailed(_ subject: LoadSubject, _ id: RequestID?, _ error: LoadError) -> LogEvent {
    let isFault = [.decoderCrashed, .decodeTimeout, .internal].contains(error.kind)
    return LogEvent(
      .loadFailed, subject, id, level: isFault ? .warning : nil, "\(error.kind.rawValue): \(error.message)",
      [
        (.kind, .string(error.kind.rawValue)), (.reason, .string(error.message)),
        (.status, error.status.map(JSON.count)), (.phase, error.phase.map { .string($0.rawValue) }),
        (.attempts, .count(error.attempts)), (.retryable, .bool(error.isRetryable)),
        (.originDown, error.isOriginDown ? .bool(true) : nil),
        (.timing, error.timeline.map { .object($0.members) }),
      ])
  }

  private init(
    _ name: Name, _ subject: LoadSubject, _ id: RequestID?, level: LogLevel? = nil, _ message: String,
    _ fields: [(Field, JSON?)]
  ) {
    self.init(
      name, level: level, (subject.shownURL.map { "\($0): " } ?? "") + message, subject.fields(id) + fields)
  }

  // MARK: - Prefetches

  static func prefetchAccepted(
    _ load: LoadID, _ id: RequestID?, _ headers: LoadHeaders, items: Int, _ priority: Priority
  ) -> LogEvent {
    LogEvent(
      .prefetchAccepted, "prefetch of \(items) items accepted",
      ofPrefetch(load, id, headers) + [(.items, .count(items)), (.priority, .string(priority.name))])
  }

  static func prefetchCompleted(
    _ load: LoadID, _ id: RequestID?, _ headers: LoadHeaders, _ summary: Prefetch.Summary
  ) -> LogEvent {
    LogEvent(
      .prefetchCompleted,
      "prefetch of \(summary.total) items: \(summary.downloaded) downloaded, \(summary.cached) cached, "
        + "\(summary.failed) failed, \(summary.cancelled) cancelled",
      ofPrefetch(load, id, headers) + [
        (.items, .count(summary.total)), (.downloaded, .count(summary.downloaded)),
        (.cached, .count(summary.cached)), (.failed, .count(summary.failed)),
        (.cancelled, .count(summary.cancelled)), (.bytes, .integer(summary.bytes)),
      ])
  }

  static func prefetchFailed(
    _ load: LoadID, _ id: RequestID?, _ headers: LoadHeaders, _ error: LoadError
  ) -> LogEvent {
    LogEvent(
      .prefetchFailed, "prefetch: \(error.kind.rawValue)",
      ofPrefetch(load, id, headers) + [(.kind, .string(error.kind.rawValue))])
  }

  private static func ofPrefetch(_ load: LoadID, _ id: RequestID?, _ headers: LoadHeaders) -> [(Field, JSON?)] {
    [(.requestId, id?.json), (.load, JSON(load)), (.traceId, headers.traceID)]
  }
}

extension JSON {
  fileprivate init(_ load: LoadID) { self = .integer(Int64(bitPattern: load.serial)) }
}

/// The `traceparent` field of W3C Trace Context (https://www.w3.org/TR/trace-context/, section 3.2), with which the
/// host connects a load to a trace of its own.
struct TraceParent: Equatable {
  /// 32 lower-case hexadecimal digits, not all of them zero.
  let traceID: String

  /// Nil if the value is malformed. The parts that versions after 00 may append are ignored, as section 4.3 requires.
  init?(_ value: String) {
    let bytes = Array(value.utf8)
    guard bytes.count >= Self.length else { return nil }
    let parts = bytes[..<Self.length].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard parts.map(\.count) == Self.partLengths, parts.allSatisfy({ $0.allSatisfy(Self.isDigit) }) else { return nil }
    let version = parts[0]
    guard !version.elementsEqual("ff".utf8), !Self.isZero(parts[1]), !Self.isZero(parts[2]) else { return nil }
    if bytes.count > Self.length {
      guard !Self.isZero(version), bytes[Self.length] == UInt8(ascii: "-") else { return nil }
    }
    traceID = String(decoding: parts[1], as: UTF8.self)
  }

  /// The lengths of the version, the trace id, the parent id and the flags.
  private static let partLengths = [2, 32, 16, 2]
  private static let length = 55

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
  }

  private static func isZero(_ digits: ArraySlice<UInt8>) -> Bool { digits.allSatisfy { $0 == UInt8(ascii: "0") } }
}
