internal import HTTPTypes
internal import LineRPC
internal import Loading

extension LogEvent {
  /// Most loads fail, or no longer do.
  static func failures(_ event: FailureAlarm.Event) -> LogEvent {
    switch event {
    case .mostFail(let failed, let ended, let kind, let count, let origin):
      let origin = origin.host.isEmpty ? nil : origin.description
      let share = "\(failed) of the \(ended) loads of the last minute failed, \(count) of them with \(kind.rawValue)"
      let place = origin.map { ", such as from \($0)" } ?? ""
      return LogEvent(
        .loadsFailing, share + place + (FailureHints.hint(for: kind).map { ". \($0)" } ?? ""),
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
}
