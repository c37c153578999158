public import HTTPTypes

/// Identifies a load, a prefetch or an item of one until it ends. Later IDs are greater.
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

/// Identifies a job.
struct JobID: SlotNumbered {
  let slot: Int32
  let serial: UInt64
}

/// Identifies an origin's record for as long as it is kept.
struct OriginID: SlotNumbered {
  let slot: Int32
  let serial: UInt64
}

/// The order of queued loads of the same priority.
public enum QueueOrder: String, Sendable, CaseIterable {
  case fifo, lifo
}

/// A limit of concurrent transfers: a fixed number, or the one found to have the highest throughput.
public enum TransferLimit: Sendable, Equatable {
  case auto
  case fixed(Int)
}

/// The limits of the scheduler.
public struct SchedulerLimits: Sendable, Equatable {
  /// The maximum number of concurrent transfers to all origins.
  public var maxConcurrent = TransferLimit.auto
  /// The maximum number of concurrent transfers to one origin.
  public var maxPerOrigin = TransferLimit.auto
  /// The maximum number of connections to one origin. Over HTTP/2 one connection carries many transfers.
  public var maxConnectionsPerOrigin: Int?
  /// The minimum time between two starts at one origin.
  public var startInterval: Duration?
  /// The maximum number of concurrent transfers for which file descriptors suffice.
  public var maxTransfers = 1024
  /// The maximum number of concurrent host name lookups ahead of the transfers; 0 leaves lookups to the transfers.
  public var maxLookUps = 4096
  /// The maximum number of queued jobs; further ones are rejected.
  public var maxQueued = 1_000_000
  /// The maximum number of complete bodies that are being stored. No transfer starts beyond that, so that a slow disk
  /// slows the network down instead of filling the memory.
  public var maxFinishing = 256
  /// The maximum number of transferred images that wait for a decoder or are in one. While so many of a priority and
  /// above wait, no transfer of that priority starts that needs a decoder, so that slow decoders slow the network down
  /// instead of filling memory and disk. The default is twice the usual number of concurrent transfers: the second half
  /// keeps the decoders busy until the next images arrive.
  public var maxUndecoded = 64
  public var order = QueueOrder.fifo

  public init() {}

  /// The number of streams that RFC 9113 section 6.5.2 recommends as the minimum for a server to allow.
  private static let maxStreams = 100
  private static let maxConnections = 256
  /// More transfers had no higher throughput on the links and machines that were measured.
  private static let maxGlobal = 1024

  /// The bounds of the global window, which reflects the capacity of this machine and starts large.
  var windowForAll: ConcurrencyWindow.Bounds {
    switch maxConcurrent {
    case .auto: .init(initial: min(128, maxTransfers), max: min(Self.maxGlobal, maxTransfers))
    case .fixed(let size): .fixed(size)
    }
  }

  /// The bounds of an origin's window. It starts with as many connections as browsers use, or with as many streams as
  /// every server accepts.
  func window(isHTTP2: Bool) -> ConcurrencyWindow.Bounds {
    let maxSize = min(isHTTP2 ? Self.maxStreams : maxConnectionsPerOrigin ?? .max, Self.maxConnections)
    switch maxPerOrigin {
    case .fixed(let size): return .fixed(isHTTP2 ? size : min(size, maxConnectionsPerOrigin ?? .max))
    case .auto: return .init(initial: min(isHTTP2 ? 16 : 6, maxSize), max: maxSize)
    }
  }

  /// The maximum sizes of the windows.
  public var maxWindow: Int { windowForAll.max }
  public var maxOriginWindow: Int { max(window(isHTTP2: false).max, window(isHTTP2: true).max) }
}

/// The state of an origin with jobs, for `stats`.
public struct OriginState: Sendable, Equatable {
  public var origin: Origin
  public var active: Int
  public var waiting: Int
  /// The current limit of concurrent transfers.
  public var window: Int
  public var health: Health
  /// The time before which no transfer starts.
  public var heldUntil: ContinuousClock.Instant?
  /// Nil if nothing waits.
  public var reason: WaitReason?

  /// The raw values are the names in the protocol.
  public enum Health: String, Sendable, CaseIterable {
    case healthy
    /// It has refused more transfers than its window has now.
    case limited
    case suspended, probing, down
  }
}

/// The reason why the waiting jobs of an origin do not start. The raw values are the names in the protocol.
public enum WaitReason: String, Sendable, CaseIterable {
  /// The server sent Retry-After.
  case retryAfter
  /// The server answered 429 or 503 without Retry-After.
  case unavailable
  /// No connection could be established, or the server did not answer on one.
  case unreachable, unresponsive
  /// `--rate` delays the next start.
  case rate
  /// The host name is being looked up.
  case resolving
  /// Attempts failed, and the next ones are not due yet.
  case retry
  /// Another worker that shares the cache transfers it.
  case otherWorker
  /// The origin has reached its limit of concurrent transfers.
  case perHostLimit
  /// The global limit is reached, or the disk or the decoders are behind.
  case concurrencyLimit
  /// The host has paused the worker, or does not read its output.
  case paused
}
