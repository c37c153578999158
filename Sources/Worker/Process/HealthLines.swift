internal import HTTPTypes
internal import Loading

extension OriginState {
  /// The log line for a change of the origin's health.
  func logLine(at now: ContinuousClock.Instant) -> String {
    let text =
      switch health {
      case .healthy: "healthy again"
      case .limited: "limited to \(window) concurrent transfers, because it refused more"
      case .suspended: "suspended for \(time(from: now)): \(cause)"
      case .probing: "probing with one transfer: \(cause)"
      case .down: "down for \(time(from: now)), its loads fail at once: \(cause)"
      }
    return "\(origin): \(text)"
  }

  private func time(from now: ContinuousClock.Instant) -> String {
    "\(max(0, now.duration(to: heldUntil ?? now).milliseconds)) ms"
  }

  private var cause: String {
    switch reason {
    case .retryAfter: "it sent Retry-After"
    case .unavailable: "it answered 429 or 503"
    case .unresponsive: "it accepted connections and did not answer"
    default: "it cannot be reached"
    }
  }
}
