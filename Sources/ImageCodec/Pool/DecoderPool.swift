/// The decoder processes and what waits for them.
///
/// Nothing is there before the first task: then a thread, and up to `DecoderSettings.count` processes, each with one
/// image at a time. A process that crashes, takes too long or is cancelled late is killed and replaced, and only its
/// own task knows; one crash is tried again in a fresh process first. Each task is answered exactly once, on the pool's
/// thread, which must not be blocked.
public final class DecoderPool: Sendable {
  private let mailbox: PoolMailbox

  public init(_ settings: DecoderSettings) { mailbox = PoolMailbox(settings) }

  deinit { mailbox.post(.shutDown) }

  /// Puts other limits in force, for processes that start and decodes that begin from now on.
  public func configure(_ settings: DecoderSettings) { mailbox.post(.configure(settings)) }

  /// Has a task done, after those with a higher `priority` and those that came before with the same.
  @discardableResult
  public func submit(
    _ task: DecodeTask, priority: Int, then: @escaping @Sendable (Result<Decoded, DecodeError>) -> Void
  ) -> DecodeTicket {
    let ticket = mailbox.newTicket()
    if !mailbox.post(.submit(ticket, task, priority: priority, then)) { then(.failure(.cancelled)) }
    return ticket
  }

  /// Has no effect on what runs already.
  public func reprioritize(_ ticket: DecodeTicket, to priority: Int) { mailbox.post(.reprioritize(ticket, priority)) }

  /// Has the task answered with `cancelled`, unless it is answered already. A decode that has been running for a while
  /// is killed; a young one is let end, because starting a process costs more.
  public func cancel(_ ticket: DecodeTicket) { mailbox.post(.cancel(ticket)) }

  /// Tells what the decoders can do, for which one is started if there is none. Empty when none can be.
  public func formats(then: @escaping @Sendable (CodecFormats) -> Void) {
    if !mailbox.post(.formats(then)) { then(CodecFormats()) }
  }

  public var statistics: DecoderStatistics { mailbox.statistics }

  /// Answers what is left with `cancelled`, and returns when no process is left. Not for the pool's own thread.
  public func shutDown() {
    mailbox.post(.shutDown)
    mailbox.waitForEnd()
  }
}

/// Names a task that was given to the pool.
public struct DecodeTicket: Sendable, Hashable {
  let number: UInt64
}
