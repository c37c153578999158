internal import LineRPC

enum LogLevel: String, CaseIterable, Comparable, Sendable {
  case error, warning, info, debug

  static func < (left: Self, right: Self) -> Bool { left.severity < right.severity }

  private var severity: Int {
    switch self {
    case .error: 0
    case .warning: 1
    case .info: 2
    case .debug: 3
    }
  }
}

/// Something that happened, for the log: a name and fields for programs, and a message for people.
///
/// Contains no query strings, user info, header values, cache keys or values of options.
struct LogEvent: Sendable {
  let name: Name
  let level: LogLevel
  let message: String
  let fields: [(name: Field, value: JSON)]

  /// - Parameters:
  ///   - level: nil for the level of the name.
  ///   - fields: those whose value is nil are left out.
  init(_ name: Name, level: LogLevel? = nil, _ message: String, _ fields: [(Field, JSON?)] = []) {
    (self.name, self.level, self.message) = (name, level ?? name.level, message)
    self.fields = fields.compactMap { field, value in value.map { (field, $0) } }
    assert(
      self.fields.allSatisfy { field, _ in name.fields.contains(field) }, "a field is missing in the list of \(name)")
  }

  subscript(_ field: Field) -> JSON? { fields.first { $0.name == field }?.value }
}

extension JSON {
  static func count(_ value: Int) -> JSON { .integer(Int64(value)) }

  static func strings(_ texts: [String]) -> JSON { .array(texts.map(JSON.string)) }
}

extension LogEvent {
  /// The names of all events. They are stable, because programs filter by them. No other place lists them.
  enum Name: String, CaseIterable, Sendable {
    case workerStarted = "worker.started"
    case workerFailed = "worker.failed"
    case workerEnding = "worker.ending"
    case workerEnded = "worker.ended"
    case inputTerminal = "input.terminal"
    case inputFailed = "input.failed"
    case hostInitialized = "host.initialized"
    case optionsChanged = "options.changed"
    case transfersPaused = "transfers.paused"
    case transfersResumed = "transfers.resumed"
    case cacheCleared = "cache.cleared"
    case cacheDamaged = "cache.damaged"
    case cacheUnusable = "cache.unusable"
    case decoderMissing = "decoder.missing"
    case decoderCrashed = "decoder.crashed"
    case decoderTimedOut = "decoder.timedOut"
    case metricsUnwritable = "metrics.unwritable"
    case metricsWritten = "metrics.written"
    case traceFailed = "trace.failed"
    case originHealthy = "origin.healthy"
    case originLimited = "origin.limited"
    case originSuspended = "origin.suspended"
    case originDown = "origin.down"
    case loadsFailing = "loads.failing"
    case loadsRecovered = "loads.recovered"
    case loadAccepted = "load.accepted"
    case loadStarted = "load.started"
    case loadRetrying = "load.retrying"
    case loadCompleted = "load.completed"
    case loadFailed = "load.failed"
    case prefetchAccepted = "prefetch.accepted"
    case prefetchCompleted = "prefetch.completed"
    case prefetchFailed = "prefetch.failed"
    case requestsCancelled = "requests.cancelled"
    case requestRefused = "request.refused"
  }

  /// The names of the members that describe an event. They are stable, too.
  enum Field: String, CaseIterable, Sendable {
    // The request and its load.
    case requestId, load, traceId, url
    case priority, attempt, attempts, delayMs, cache, bytes, timing, kind, reason, status, phase, retryable, originDown
    case items, downloaded, cached, failed, cancelled
    case method, member, code, filter, filterValue, tier, removed, changed
    // The worker and its parts.
    case version, directory, path, exitStatus, mode, unanswered, received, succeeded, uptimeMs, client, clientVersion
    case decoder, format
    case origin, heldMs, window, active, waiting, ended, ofKind
  }
}

extension LogEvent.Name {
  /// The level of the event. A single one may have a higher level.
  var level: LogLevel {
    switch self {
    case .workerFailed, .inputFailed: .error
    case .cacheDamaged, .cacheUnusable, .decoderMissing, .decoderCrashed, .decoderTimedOut, .metricsUnwritable,
      .traceFailed, .originDown, .loadsFailing, .loadsRecovered:
      .warning
    case .workerStarted, .workerEnding, .workerEnded, .inputTerminal, .hostInitialized, .optionsChanged,
      .transfersPaused, .transfersResumed, .cacheCleared, .metricsWritten, .originHealthy, .originLimited,
      .originSuspended:
      .info
    case .loadAccepted, .loadStarted, .loadRetrying, .loadCompleted, .loadFailed, .prefetchAccepted,
      .prefetchCompleted, .prefetchFailed, .requestsCancelled, .requestRefused:
      .debug
    }
  }

  /// The fields that the event may have. An event has no others.
  var fields: [LogEvent.Field] {
    switch self {
    case .workerStarted: [.version, .directory]
    case .workerFailed: [.exitStatus]
    case .workerEnding: [.requestId, .reason, .mode, .unanswered]
    case .workerEnded: [.exitStatus, .received, .succeeded, .failed, .cancelled, .uptimeMs]
    case .inputTerminal, .decoderMissing: []
    case .inputFailed: [.reason]
    case .hostInitialized: [.requestId, .client, .clientVersion, .changed]
    case .optionsChanged: [.requestId, .changed]
    case .transfersPaused, .transfersResumed: [.requestId]
    case .cacheCleared: [.requestId, .filter, .filterValue, .tier, .removed, .bytes]
    case .cacheDamaged: [.directory]
    case .cacheUnusable: [.directory, .reason]
    case .decoderCrashed, .decoderTimedOut: [.decoder, .format, .reason]
    case .metricsUnwritable, .traceFailed: [.path, .reason]
    case .metricsWritten: [.path]
    case .originHealthy, .originLimited, .originSuspended, .originDown:
      [.origin, .reason, .heldMs, .window, .active, .waiting]
    case .loadsFailing: [.failed, .ended, .kind, .ofKind, .origin]
    case .loadsRecovered: [.failed, .ended]
    case .loadAccepted: Self.ofLoad + [.priority]
    case .loadStarted: Self.ofLoad + [.attempt]
    case .loadRetrying: Self.ofLoad + [.attempt, .delayMs, .kind]
    case .loadCompleted: Self.ofLoad + [.cache, .bytes, .attempts, .timing]
    case .loadFailed: Self.ofLoad + [.kind, .reason, .status, .phase, .attempts, .retryable, .originDown, .timing]
    case .prefetchAccepted: Self.ofPrefetch + [.items, .priority]
    case .prefetchCompleted: Self.ofPrefetch + [.items, .downloaded, .cached, .failed, .cancelled, .bytes]
    case .prefetchFailed: Self.ofPrefetch + [.kind]
    case .requestsCancelled: [.requestId, .filter, .cancelled]
    case .requestRefused: [.requestId, .method, .kind, .member, .code]
    }
  }

  private static let ofLoad: [LogEvent.Field] = [.requestId, .load, .traceId, .url]
  private static let ofPrefetch: [LogEvent.Field] = [.requestId, .load, .traceId]
}
