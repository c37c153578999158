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

/// How many transfers at once: a number, or what turns out to carry most.
public enum TransferLimit: Sendable, Equatable {
  case auto
  case fixed(Int)
}

/// What the scheduler may start and keep.
public struct SchedulerLimits: Sendable, Equatable {
  /// Transfers at once, all origins.
  public var maxConcurrent = TransferLimit.auto
  /// Transfers at once to one origin.
  public var maxPerOrigin = TransferLimit.auto
  /// Connections at once to one origin. Over HTTP/2 one of them carries many transfers.
  public var maxConnectionsPerOrigin: Int?
  /// The time between two starts at one origin, at least.
  public var startInterval: Duration?
  /// How many transfers there can be at once, for want of file descriptors.
  public var mostTransfers = 1024
  /// Names of hosts that are looked up at once, ahead of the transfers; 0 leaves that to each transfer.
  public var maxLookUps = 4096
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

  /// A peer that says nothing else allows so many streams (RFC 9113 section 6.5.2).
  private static let mostStreams = 100
  private static let mostConnections = 256
  /// More carry no more, on the links and machines that were tried.
  private static let mostOfAll = 1024

  /// The window for all origins. It is our own machine's, and opens widely.
  var windowForAll: ConcurrencyWindow.Bounds {
    switch maxConcurrent {
    case .auto: .init(initial: min(128, mostTransfers), max: min(Self.mostOfAll, mostTransfers))
    case .fixed(let size): .fixed(size)
    }
  }

  /// An origin's window. It opens with as many connections as browsers have, and as streams as every server takes.
  func window(isHTTP2: Bool) -> ConcurrencyWindow.Bounds {
    let most = min(isHTTP2 ? Self.mostStreams : maxConnectionsPerOrigin ?? .max, Self.mostConnections)
    switch maxPerOrigin {
    case .fixed(let size): return .fixed(isHTTP2 ? size : min(size, maxConnectionsPerOrigin ?? .max))
    case .auto: return .init(initial: min(isHTTP2 ? 16 : 6, most), max: most)
    }
  }

  /// The largest windows that there may be.
  public var mostConcurrent: Int { windowForAll.max }
  public var mostPerOrigin: Int { max(window(isHTTP2: false).max, window(isHTTP2: true).max) }
}

/// What is known of an origin with work to do, for `stats`.
public struct OriginState: Sendable, Equatable {
  public var origin: Origin
  public var active: Int
  public var waiting: Int
  /// How many transfers it may have.
  public var window: Int
  public var health: Health
  /// Nothing is sent there before.
  public var heldUntil: ContinuousClock.Instant?
  /// Nil when nothing waits.
  public var reason: WaitReason?

  /// By the wire's names.
  public enum Health: String, Sendable, CaseIterable {
    case healthy
    /// It has refused more transfers than its window has.
    case limited
    case suspended, probing, down
  }
}

/// What keeps the waiting jobs of an origin from starting, by the wire's names.
public enum WaitReason: String, Sendable, CaseIterable {
  /// The server said when it wants to see us again.
  case retryAfter
  /// It answered 429 or 503 without saying when.
  case unavailable
  /// There was no connection to it, or it was connected and did not answer.
  case unreachable, unresponsive
  /// `--rate` lets the next one start later.
  case rate
  /// Its name is being looked up.
  case resolving
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
