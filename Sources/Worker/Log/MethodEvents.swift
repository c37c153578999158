internal import LineRPC
internal import Loading

/// The events of the methods that change something.
extension LogEvent {
  static func hostInitialized(_ id: RequestID?, client: String?, version: String?, changed: [String]) -> LogEvent {
    let name = client.map { "the host is \($0.quotable)" } ?? "the host has called initialize"
    let options = changed.isEmpty ? "" : "; options: \(changed.joined(separator: ", "))"
    return LogEvent(
      .hostInitialized, "\(name)\(version.map { " \($0.quotable)" } ?? "")\(options)",
      [
        (.requestId, id?.json), (.client, client.map(JSON.string)), (.clientVersion, version.map(JSON.string)),
        (.changed, .strings(changed)),
      ])
  }

  /// - Parameter changed: the names of the members of `configure`.
  static func optionsChanged(_ id: RequestID?, _ changed: [String]) -> LogEvent {
    LogEvent(
      .optionsChanged, "configure has set \(changed.joined(separator: ", "))",
      [(.requestId, id?.json), (.changed, .strings(changed))])
  }

  static func paused(_ isPaused: Bool, _ id: RequestID?) -> LogEvent {
    LogEvent(
      isPaused ? .transfersPaused : .transfersResumed,
      isPaused ? "no transfer starts until resume" : "transfers start again", [(.requestId, id?.json)])
  }

  /// - Parameters:
  ///   - filter: the name of the filter, and its value if that may be shown.
  static func cleared(
    _ id: RequestID?, _ filter: (name: String, value: JSON?), _ tiers: Loader.Tiers?, removed: Int, bytes: Int64
  ) -> LogEvent {
    let value: String? =
      switch filter.value {
      case .string(let text): text
      case .integer(let number): "\(number)"
      default: nil
      }
    return LogEvent(
      .cacheCleared,
      "clear by \(filter.name)\(value.map { " \($0)" } ?? "") removed \(removed) entries, \(bytes) bytes",
      [
        (.requestId, id?.json), (.filter, .string(filter.name)), (.filterValue, filter.value),
        (.tier, tiers.map { .string($0.rawValue) }), (.removed, .count(removed)), (.bytes, .integer(bytes)),
      ])
  }

  /// - Parameter filter: the name of the parameter that selected the requests.
  static func cancelled(_ id: RequestID?, by filter: String, _ count: Int) -> LogEvent {
    LogEvent(
      .requestsCancelled, "cancel by \(filter) has cancelled \(count) requests",
      [(.requestId, id?.json), (.filter, .string(filter)), (.cancelled, .count(count))])
  }

  /// The message of the error is left out, because it may quote what the host sent.
  static func refused(_ id: RequestID?, _ method: String, _ error: RPCError) -> LogEvent {
    let member: String? = if case .string(let name)? = error.details["member"] { name } else { nil }
    return LogEvent(
      .requestRefused, "\(method.quotable) refused: \(error.kind)\(member.map { " (\($0))" } ?? "")",
      [
        (.requestId, id?.json), (.method, .string(method.quotable)), (.kind, .string(error.kind)),
        (.member, member.map(JSON.string)), (.code, .count(error.code)),
      ])
  }
}
