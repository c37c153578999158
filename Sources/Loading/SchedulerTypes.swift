public import HTTPTypes

/// Names one load, or one item of a prefetch, for as long as it is unanswered. Later ones are greater.
public struct LoadID: SlotNumbered, Comparable {
  let slot: Int32
  let serial: UInt64

  init(slot: Int32, serial: UInt64) {
    self.slot = slot
    self.serial = serial
  }

  public static func == (left: Self, right: Self) -> Bool { left.serial == right.serial }
  public static func < (left: Self, right: Self) -> Bool { left.serial < right.serial }
  public func hash(into hasher: inout Hasher) { hasher.combine(serial) }
}

/// Names one job.
struct JobID: SlotNumbered {
  let slot: Int32
  let serial: UInt64
}

/// Names one origin for as long as there is something to be known of it.
struct OriginID: SlotNumbered {
  let slot: Int32
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
  /// Images that have arrived and are to be decoded; no transfer that is for a decoder alone starts while there are so
  /// many of its priority and above, so that slow decoders slow the network down instead of filling memory and disk.
  /// Twice as many as transfers at once: the rest lasts while the next ones arrive.
  public var maxUndecoded = 64
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
  /// Nil when nothing waits.
  public var reason: WaitReason?
}

/// What keeps the waiting jobs of an origin from starting, by the wire's names.
public enum WaitReason: String, Sendable, CaseIterable {
  /// The server said when it wants to see us again.
  case retryAfter
  /// It answered 429 or 503 without saying when.
  case unavailable
  /// There is no connection to it: it is left alone for a while, or a probe is under way.
  case unreachable
  /// It is let in again one by one after something of the above, or after it kept silent.
  case readmission
  /// Attempts failed, and the next ones are not due yet.
  case retry
  /// Another worker that shares the cache transfers it.
  case otherWorker
  /// It has as many transfers as one origin may have.
  case perHostLimit
  /// All transfers are taken, or the disk is behind, or the decoders are.
  case concurrencyLimit
  /// The host paused the worker, or does not read what it writes.
  case paused
}
