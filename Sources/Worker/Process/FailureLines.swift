internal import HTTPTypes
internal import Loading

extension FailureAlarm.Event {
  /// The log line that most loads fail, or that they no longer do.
  var logLine: String {
    switch self {
    case .mostFail(let failed, let ended, let kind, let count, let origin):
      let place = origin.host.isEmpty ? "" : ", such as from \(origin)"
      let share = "\(failed) of the \(ended) loads of the last minute failed, \(count) of them with \(kind.rawValue)"
      return share + place + (FailureHints.hint(for: kind).map { ". \($0)" } ?? "")
    case .over(let failed, let ended):
      return "most loads no longer fail: \(failed) of the \(ended) loads of the last minute failed"
    }
  }
}
