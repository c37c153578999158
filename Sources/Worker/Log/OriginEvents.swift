internal import HTTPTypes
internal import LineRPC
internal import Loading
internal import Platform

extension LogEvent {
  /// A change of an origin's health.
  static func origin(_ state: OriginState, at now: Instant) -> LogEvent {
    let held = max(0, now.duration(to: state.heldUntil ?? now).milliseconds)
    let (name, text): (Name, String) =
      switch state.health {
      case .healthy: (.originHealthy, "healthy again")
      case .limited: (.originLimited, "limited to \(state.window) concurrent transfers, because it refused more")
      case .suspended: (.originSuspended, "suspended for \(held) ms: \(state.cause)")
      case .probing: (.originSuspended, "probing with one transfer: \(state.cause)")
      case .down: (.originDown, "down for \(held) ms, its loads fail at once: \(state.cause)")
      }
    return LogEvent(
      name, "\(state.origin): \(text)",
      [
        (.origin, .string(state.origin.description)), (.reason, state.reason.map { .string($0.rawValue) }),
        (.heldMs, state.heldUntil.map { _ in .integer(held) }), (.window, .count(state.window)),
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
