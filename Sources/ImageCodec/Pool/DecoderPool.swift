public import Platform

/// The decoder processes and the queue of tasks for them.
///
/// The first task starts a thread. Up to `DecoderSettings.count` decoders work at once, each on one image. A decoder
/// is a parent process, which loads the libraries, and a child, which it forks for each image, or for several
/// (`DecodeTask.Isolation`). A child that crashes, times out or is cancelled costs its own task only. A crash is
/// retried once if the image may not be the reason. Each task is answered exactly once, on the pool's thread, which
/// must not be blocked.
public final class DecoderPool: Sendable {
  private let mailbox: PoolMailbox

  /// - Parameters:
  ///   - sharedDecodes: nil if the pool shares the number of decodes with no other.
  ///   - onFailure: called for each process that crashes or is killed for a fault, on the pool's thread, which must not
  ///     be blocked.
  public init(
    _ settings: DecoderSettings, sharedDecodes: (any SharedDecodes)? = nil,
    onFailure: @escaping @Sendable (DecoderFailure) -> Void = { _ in }
  ) {
    mailbox = PoolMailbox(settings, sharedDecodes: sharedDecodes, onFailure: onFailure)
  }

  deinit { mailbox.post(.shutDown) }

  /// Applies other limits to processes that start and decodes that begin from now on.
  public func configure(_ settings: DecoderSettings) { mailbox.post(.configure(settings)) }

  /// Sets a function that receives each task of a process when it ends, on the pool's thread, or nil.
  public func observe(_ observer: Observer?) { mailbox.post(.observe(observer)) }

  public typealias Observer = @Sendable (DecoderActivity) -> Void

  /// Submits a task. It runs after tasks with a higher `priority` and after earlier tasks with the same priority.
  ///
  /// - Parameter then: gets the result and the time at which a process got the task; nil if none did.
  @discardableResult
  public func submit(
    _ task: DecodeTask, priority: Int,
    then: @escaping @Sendable (Result<Decoded, DecodeError>, _ start: Instant?) -> Void
  ) -> DecodeTicket {
    let ticket = mailbox.newTicket()
    if !mailbox.post(.submit(ticket, task, priority: priority, then)) { then(.failure(.cancelled), nil) }
    return ticket
  }

  /// Has no effect on a running task.
  public func reprioritize(_ ticket: DecodeTicket, to priority: Int) { mailbox.post(.reprioritize(ticket, priority)) }

  /// Answers the task with `cancelled`, unless it is answered already. A decode that runs is killed.
  public func cancel(_ ticket: DecodeTicket) { mailbox.post(.cancel(ticket)) }

  /// Returns the formats of the decoders, and starts one if necessary. Empty if none can be started.
  public func formats(then: @escaping @Sendable (CodecFormats) -> Void) {
    if !mailbox.post(.formats(then)) { then(CodecFormats()) }
  }

  public var statistics: DecoderStatistics { mailbox.statistics }

  /// Answers the remaining tasks with `cancelled` and returns when no process is left. Must not be called on the pool's
  /// thread.
  public func shutDown() {
    mailbox.post(.shutDown)
    mailbox.waitForEnd()
  }
}

/// A task that a decoder has performed.
public struct DecoderActivity: Sendable {
  /// The number of the decoder among those that run, from 1.
  public let decoder: Int
  public let task: StaticString
  public let start, end: Instant
  /// Whether the decoder failed, or was killed.
  public let hasFailed: Bool
}

extension DecodeTask.Output {
  /// The name of the task in a trace.
  var name: StaticString {
    switch self {
    case .encoded: "encode"
    case .pixels: "pixels"
    case .check: "check"
    case .placeholder: "placeholder"
    case .facts: "facts"
    case .preview: "preview"
    case .renditions: "renditions"
    }
  }
}

/// Identifies a task in the pool.
public struct DecodeTicket: Sendable, Hashable {
  let number: UInt64
}

/// The limits of the decoder pool.
public struct DecoderSettings: Sendable, Hashable {
  /// The maximum number of images that are decoded at once, at least 1; in all pools that share it.
  public var count: Int
  /// The processor time of one decode, after which its child process is killed.
  public var timeout: Duration
  /// The elapsed time of one decode after which its child process is killed in any case.
  public var elapsedLimit: Duration
  /// The path of the decoder of every image; nil for `imageworker-plain` and `imageworker-codec` beside the running
  /// executable.
  public var executable: String?
  /// The maximum number of pixels in decoding at once, over all decoders. A larger image is decoded alone.
  public var pixelBudget: Int
  /// The maximum number of bytes of memory of one process.
  public var memoryLimit: Int
  /// The idle time after which a decoder is ended.
  public var idleTime: Duration
  /// The number of images that a child process decodes before it ends. If it is more than 1, tasks have no isolation by
  /// default.
  public var lifetime: Int

  /// - Parameter elapsedLimit: nil for ten times the timeout, and at least a minute.
  public init(
    count: Int, timeout: Duration = .seconds(10), elapsedLimit: Duration? = nil, executable: String? = nil,
    pixelBudget: Int = 100_000_000, memoryLimit: Int = 2 << 30, idleTime: Duration = .seconds(30), lifetime: Int = 1
  ) {
    (self.count, self.timeout, self.executable) = (count, timeout, executable)
    self.elapsedLimit = elapsedLimit ?? max(.seconds(60), timeout * 10)
    (self.pixelBudget, self.memoryLimit) = (pixelBudget, memoryLimit)
    (self.idleTime, self.lifetime) = (idleTime, lifetime)
  }
}

extension DecoderSettings {
  private static let usualSharedLifetime = 100

  /// The number of images of a child that tasks share.
  var sharedLifetime: Int { lifetime > 1 ? lifetime : Self.usualSharedLifetime }

  func isolation(of task: DecodeTask) -> DecodeTask.Isolation { task.isolation ?? (lifetime > 1 ? .none : .image) }
}

/// The counters and the state of the pool.
public struct DecoderStatistics: Sendable, Hashable {
  /// The number of decoders, busy or idle.
  public var running = 0
  /// The number of decoders that decode, and of the tasks that wait for one.
  public var busy = 0
  public var waiting = 0
  public var decoded = 0
  public var failed = 0
  /// The number of child processes that ended during a decode.
  public var crashed = 0
  /// The number of decodes that were ended at one of their limits.
  public var timedOut = 0
  /// The active sandbox mechanisms of the decoders: some of `noNewPrivileges`, `rlimits`, `landlock` and `seccomp`.
  /// Empty before the first decoder.
  public var sandbox: [String] = []

  public init() {}
}
