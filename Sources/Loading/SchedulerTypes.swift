public import HTTPTypes

/// Names one load (or one item of a prefetch) for as long as it is unanswered. Never used twice.
public struct LoadID: Hashable, Sendable, Comparable {
  public let number: UInt64

  public init(_ number: UInt64) { self.number = number }

  public static func < (left: Self, right: Self) -> Bool { left.number < right.number }
}

/// Names one job; a slot that is used again gets another serial number, so that a late answer finds nobody.
struct JobID: Hashable, Sendable {
  let slot: Int
  let serial: UInt64
}

/// Which of two waiting loads of one priority goes first.
public enum QueueOrder: String, Sendable, CaseIterable {
  case fifo, lifo
}

/// What the scheduler may start and keep.
public struct SchedulerLimits: Sendable, Equatable {
  /// Transfers at once, all origins.
  public var maxConcurrent = 32
  /// Transfers at once to one origin.
  public var maxPerOrigin = 6
  /// Jobs that wait for their transfer; one more is refused.
  public var maxQueued = 1_000_000
  /// Bodies that have arrived and are still on their way to disk; no transfer starts beyond that, so that a slow disk
  /// slows the network down instead of filling the memory.
  public var maxFinishing = 256
  public var order = QueueOrder.fifo

  public init() {}
}

/// What is known of an origin with work to do, for `stats`.
public struct OriginState: Sendable, Equatable {
  public var origin: Origin
  public var active: Int
  public var waiting: Int
  /// Nothing is sent there before.
  public var heldUntil: ContinuousClock.Instant?
}
