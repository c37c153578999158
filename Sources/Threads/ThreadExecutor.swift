public import Platform

/// A serial executor with its own thread, for actors whose work may block or whose order matters.
///
/// Work runs in the order in which it was added, by an `await` on an actor (`enqueue`) or as a closure (`run`). Many
/// additions cost one wakeup: the thread runs everything that is there as one batch.
public final class ThreadExecutor: SerialExecutor, @unchecked Sendable {
  // Unchecked: only the thread uses `nextWake` and `batchStart`; everything else is protected by the lock.

  private enum Work {
    case job(UnownedJob)
    case closure(@Sendable () -> Void)
  }

  private struct State {
    var queue: [Work] = []
    var afterBatch: (@Sendable () -> Instant?)?
    var thread: pthread_t?
    var isSleeping = false
    var isStopping = false
    var hasEnded = false
  }

  /// Longest time for which wakeups of other threads wait within a batch: longer than a context switch, but not
  /// noticeable.
  private static let maxGathering = Duration.microseconds(500)

  private let state = Locked(State())
  private var thread: pthread_t

  /// Starts the thread, which keeps the executor alive until `stop`.
  ///
  /// - Parameter name: shown by debuggers and `top -H`; at most 15 characters.
  public init(name: String) {
    thread = pthread_self()
    let state = state
    startThread(name: name) { [self] in
      state.withLock { $0.thread = pthread_self() }
      state.notify()
      while runBatch() {}
      state.withLock { $0.hasEnded = true }
      state.notify()
    }
    thread = state.wait { $0.thread }!
  }

  /// Sets a closure that runs on the executor's thread after each batch, for instance to flush the batch's output.
  ///
  /// It returns the time at which it must run again if there is no work before; nil means after the next work only.
  public func setAfterBatch(_ work: (@Sendable () -> Instant?)?) {
    state.withLock { $0.afterBatch = work }
    run {}
  }

  /// Runs `work` on the executor's thread, after all work added before.
  public func run(_ work: @escaping @Sendable () -> Void) { add(.closure(work)) }

  public func enqueue(_ job: consuming ExecutorJob) { add(.job(UnownedJob(job))) }

  /// Runs the work added so far, then ends the thread. Blocks until it has ended. Later work never runs.
  public func stop() {
    precondition(!isCurrent, "an executor cannot wait for its own end")
    state.withLock { $0.isStopping = true }
    state.notify()
    _ = state.wait { $0.hasEnded ? () : nil }
  }

  public var isCurrent: Bool { pthread_equal(pthread_self(), thread) != 0 }

  public func checkIsolated() { precondition(isCurrent, "not on this executor's thread") }

  public func isIsolatingCurrentContext() -> Bool? { isCurrent }

  public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

  private func add(_ work: Work) {
    let isSleeping = state.withLock {
      $0.queue.append(work)
      return $0.isSleeping
    }
    if isSleeping && !WakeupCoalescer.postpone(self) { wake() }
  }

  /// Wakes the thread if it sleeps.
  func wake() {
    let wasSleeping = state.withLock { state in
      defer { state.isSleeping = false }
      return state.isSleeping
    }
    if wasSleeping { state.notify() }
  }

  /// Used on the thread only.
  private var nextWake: Instant?

  /// The time at which the current batch began. For use on the thread only.
  public private(set) var batchStart = Instant.now

  /// Waits for work and runs it. Returns false if the executor was stopped and no work is left.
  private func runBatch() -> Bool {
    let timeout = nextWake.map { max(.zero, Instant.now.duration(to: $0)) }
    let batch: [Work]? = state.wait(timeout: timeout) { state in
      if state.queue.isEmpty && !state.isStopping {
        state.isSleeping = true
        return nil
      }
      state.isSleeping = false
      defer { state.queue = [] }
      return state.queue
    }
    if let batch, batch.isEmpty { return false }
    WakeupCoalescer.gather {
      var lastWake = Instant.now
      batchStart = lastWake
      for work in batch ?? [] {
        switch work {
        case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
        case .closure(let closure): closure()
        }
        let now = Instant.now
        if now - lastWake > Self.maxGathering {
          WakeupCoalescer.release()
          lastWake = now
        }
      }
      // No other thread waits for the closure below.
      WakeupCoalescer.release()
      nextWake = state.withLock { $0.afterBatch }?()
    }
    return true
  }
}

/// Ends a process that cannot work without a thread or descriptor, with the status EX_OSERR (sysexits.h).
func exitWithoutResource(_ name: String) -> Never {
  let line = Array("imageworker: the system cannot create another \(name): \(String(cString: strerror(errno)))\n".utf8)
  _ = writeDescriptor(STDERR_FILENO, line, line.count)
  _exit(EX_OSERR)
}

/// Starts a detached thread with a stack of 1 MB that runs `body` and ends with it.
///
/// - Parameter name: shown by debuggers and `top -H`; cut to 15 characters.
public func startThread(name: String, _ body: @escaping @Sendable () -> Void) {
  guard let thread = PosixThread(name: name, stackSize: 1 << 20, body) else {
    exitWithoutResource("thread")
  }
  thread.detach()
}

extension Actor {
  /// `assumeIsolated` that keeps the type of the thrown error, unlike the standard library's.
  public nonisolated func assumeIsolatedThrowing<Value: Sendable, Failure>(
    _ work: (isolated Self) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    // The cast only drops the isolation that the check above proves, as the standard library does.
    preconditionIsolated()
    return try withoutActuallyEscaping(work) { work throws(Failure) in
      try unsafeBitCast(work, to: ((Self) throws(Failure) -> Value).self)(self)
    }
  }
}
