internal import Platform

/// Limits the lines of each event to a number per minute, so that many failing origins or images do not flood the log
/// of a host that wants warnings only.
struct LogLimiter {
  /// The maximum number of lines of an event in a period.
  static let maxLines = 10
  static let period = Duration.seconds(60)

  private struct Count {
    let start: Instant
    var lines = 0
    /// The lines left out since the last one that was written.
    var omitted = 0
  }

  private var counts: [LogEvent.Name: Count] = [:]

  /// Counts a line.
  ///
  /// - Returns: the number of lines that were left out before it; nil if it is to be left out itself.
  mutating func admit(_ name: LogEvent.Name, at now: Instant) -> Int? {
    var count = counts[name] ?? Count(start: now)
    if now - count.start >= Self.period { count = Count(start: now, omitted: count.omitted) }
    defer { counts[name] = count }
    guard count.lines < Self.maxLines else {
      count.omitted += 1
      return nil
    }
    count.lines += 1
    defer { count.omitted = 0 }
    return count.omitted
  }
}
