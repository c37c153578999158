internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Platform

/// The events of the worker and its parts.
extension LogEvent {
  static func workerStarted(in directory: String) -> LogEvent {
    LogEvent(
      .workerStarted, "imageworker \(Version.current), cache in \(directory)",
      [(.version, .string(Version.current)), (.directory, .string(directory))])
  }

  static func workerFailed(_ reason: String, exitStatus: Int32) -> LogEvent {
    LogEvent(.workerFailed, reason, [(.exitStatus, .integer(Int64(exitStatus)))])
  }

  static func workerEnding(_ reason: EndReason, unanswered: Int) -> LogEvent {
    let (text, mode, request): (String, Options.EndMode?, RequestID?) =
      switch reason {
      case .endOfInput(let mode): ("the input has ended (\(mode.rawValue))", mode, nil)
      case .inputFailed(let mode): ("the input cannot be read (\(mode.rawValue))", mode, nil)
      case .shutdown(let mode, let id): ("shutdown was called (\(mode.rawValue))", mode, id)
      case .signal: ("a signal ends the worker", nil, nil)
      case .outputClosed: ("nobody reads the output", nil, nil)
      }
    return LogEvent(
      .workerEnding, "\(text); \(unanswered) requests are not answered yet",
      [
        (.requestId, request?.json), (.reason, .string(reason.name)), (.mode, mode.map { .string($0.rawValue) }),
        (.unanswered, .count(unanswered)),
      ])
  }

  /// The reason why a session ends.
  enum EndReason {
    case endOfInput(Options.EndMode)
    case inputFailed(Options.EndMode)
    case shutdown(Options.EndMode, RequestID?)
    case signal, outputClosed

    fileprivate var name: String {
      switch self {
      case .endOfInput: "endOfInput"
      case .inputFailed: "inputFailed"
      case .shutdown: "shutdown"
      case .signal: "signal"
      case .outputClosed: "outputClosed"
      }
    }
  }

  static func workerEnded(_ counts: Session.RequestCounts, exitStatus: Int32, uptime: Int64) -> LogEvent {
    LogEvent(
      .workerEnded, "done after \(counts.received) loads and prefetches, \(Duration.milliseconds(uptime).text)",
      [
        (.exitStatus, .integer(Int64(exitStatus))), (.received, .count(counts.received)),
        (.succeeded, .count(counts.succeeded)), (.failed, .count(counts.failed)),
        (.cancelled, .count(counts.cancelled)), (.uptimeMs, .integer(uptime)),
      ])
  }

  static var inputTerminal: LogEvent {
    LogEvent(
      .inputTerminal, "reading requests from the terminal, one JSON object per line; Ctrl-D ends; see --help")
  }

  static func inputFailed(_ code: Int32) -> LogEvent {
    let reason = String(cString: strerror(code))
    return LogEvent(.inputFailed, "cannot read standard input: \(reason)", [(.reason, .string(reason))])
  }

  static func metricsUnwritable(_ path: String, _ reason: String) -> LogEvent {
    LogEvent(
      .metricsUnwritable, "the metrics file cannot be written, and is tried again every 10 s: \(reason)",
      [(.path, .string(path)), (.reason, .string(reason))])
  }

  static func metricsWritten(_ path: String) -> LogEvent {
    LogEvent(.metricsWritten, "the metrics file is written again: \(path)", [(.path, .string(path))])
  }

  static func traceFailed(_ path: String, _ reason: String) -> LogEvent {
    LogEvent(
      .traceFailed, "the trace in \(path) ends: \(reason)", [(.path, .string(path)), (.reason, .string(reason))])
  }

  /// - Parameter message: from `DecoderExecutable.missing`.
  static func decoderMissing(_ message: String) -> LogEvent {
    LogEvent(.decoderMissing, "\(message); images load, but transforms, pixels and placeholders fail")
  }

  /// A problem of a cache directory.
  static func cache(_ warning: StoreWarning) -> LogEvent {
    switch warning {
    case .damagedIndex(let path): LogEvent(.cacheDamaged, warning.message, [(.directory, .string(path))])
    case .unusable(let path, let reason):
      LogEvent(.cacheUnusable, warning.message, [(.directory, .string(path)), (.reason, .string(reason))])
    }
  }

  /// A decoder process that ended before its time.
  static func decoder(_ failure: DecoderFailure) -> LogEvent {
    LogEvent(
      failure.isTimeout ? .decoderTimedOut : .decoderCrashed, "decoder \(failure.process) \(failure.message)",
      [
        (.decoder, .integer(Int64(failure.process))), (.format, failure.format.map { .string($0.rawValue) }),
        (.reason, .string(failure.reason)),
      ])
  }

  /// Most loads fail, or no longer do.
  static func failures(_ event: FailureAlarm.Event) -> LogEvent {
    switch event {
    case .mostFail(let failed, let ended, let kind, let count, let origin):
      let origin = origin.host.isEmpty ? nil : origin.description
      let share = "\(failed) of the \(ended) loads of the last minute failed, \(count) of them with \(kind.rawValue)"
      let place = origin.map { ", such as from \($0)" } ?? ""
      return LogEvent(
        .loadsFailing, share + place + (ProtocolDocument.hint(for: kind).map { ". \($0)" } ?? ""),
        [
          (.failed, .count(failed)), (.ended, .count(ended)), (.kind, .string(kind.rawValue)), (.ofKind, .count(count)),
          (.origin, origin.map(JSON.string)),
        ])
    case .over(let failed, let ended):
      return LogEvent(
        .loadsRecovered, "most loads no longer fail: \(failed) of the \(ended) loads of the last minute failed",
        [(.failed, .count(failed)), (.ended, .count(ended))])
    }
  }

  /// A change of an origin's health.
  static func origin(_ state: OriginState, at now: Instant) -> LogEvent {
    let held = max(.zero, now.duration(to: state.heldUntil ?? now))
    let (name, text): (Name, String) =
      switch state.health {
      case .healthy: (.originHealthy, "healthy again")
      case .limited: (.originLimited, "limited to \(state.window) concurrent transfers, because it refused more")
      case .suspended: (.originSuspended, "suspended for \(held.text): \(state.cause)")
      case .probing: (.originSuspended, "probing with one transfer: \(state.cause)")
      case .down: (.originDown, "down for \(held.text), its loads fail at once: \(state.cause)")
      }
    return LogEvent(
      name, "\(state.origin): \(text)",
      [
        (.origin, .string(state.origin.description)), (.reason, state.reason.map { .string($0.rawValue) }),
        (.heldMs, state.heldUntil.map { _ in .integer(held.milliseconds) }), (.window, .count(state.window)),
        (.active, .count(state.active)), (.waiting, .count(state.waiting)),
      ])
  }
}

extension OriginState {
  fileprivate var cause: String {
    switch reason {
    case .retryAfter: "it sent Retry-After"
    case .unavailable: "it answered 429 or 503"
    case .unresponsive: "it accepted connections and did not answer"
    default: "it cannot be reached"
    }
  }
}
