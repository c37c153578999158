internal import ImageCodec

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
  /// The maximum number of files of the host that are read, wait for a decode, or are decoded.
  var maxFiles = max(8, 2 * Processors.count)
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
