internal import Platform

/// A decode that was ended at one of its limits.
public struct DecodeTimeout: Sendable, Hashable {
  public enum Limit: Sendable {
    /// The decode used all the processor time that it may have, and would do so again.
    case processorTime
    /// The decode waited too long for the processor, or for something that never came.
    case elapsedTime
  }

  public let limit: Limit
  /// The processor time of the decode; nil if the system does not tell it.
  public let processorTime: Duration?
  public let elapsedTime: Duration

  public init(_ limit: Limit, processorTime: Duration?, elapsedTime: Duration) {
    (self.limit, self.processorTime, self.elapsedTime) = (limit, processorTime, elapsedTime)
  }
}

/// The time limits of one decode: on processor time, which does not depend on the load of the machine, and on elapsed
/// time, for a decode that gets no processor time or uses none.
struct DecodeLimits {
  let start: Instant
  /// The processor time that the process had used when the decode began.
  let usedBefore: Duration
  let processorTime: Duration
  let elapsedTime: Duration
  /// The number of processors that the threads of the process can use at once.
  let processors: Int

  enum Verdict: Equatable {
    /// No limit can be reached before this time.
    case within(next: Instant)
    case exceeded(DecodeTimeout)
  }

  private static let minInterval = Duration.milliseconds(10)

  /// - Parameter used: the processor time of the process; nil if it is unknown.
  func check(at now: Instant, used: Duration?) -> Verdict {
    let elapsed = start.duration(to: now)
    let used = used.map { max(.zero, $0 - usedBefore) }
    if let used, used >= processorTime {
      return .exceeded(DecodeTimeout(.processorTime, processorTime: used, elapsedTime: elapsed))
    }
    if elapsed >= elapsedTime {
      return .exceeded(DecodeTimeout(.elapsedTime, processorTime: used, elapsedTime: elapsed))
    }
    let rest = (processorTime - (used ?? .zero)) / max(1, processors)
    return .within(next: min(start + elapsedTime, now + max(rest, Self.minInterval)))
  }
}
