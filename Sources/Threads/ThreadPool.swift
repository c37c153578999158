/// A few threads for work that may block for long. Work runs in any order: what must follow it goes elsewhere.
///
/// A thread starts when there is work for which none is idle, up to a limit, and ends after ten seconds without work.
public final class ThreadPool: Sendable {
  private struct State {
    var queue = FIFO<@Sendable () -> Void>()
    var threads = 0
    var idle = 0
  }

  private static let idleTime = Duration.seconds(10)

  private let name: String
  private let limit: Int
  private let state = Locked(State())

  /// - Parameter name: of each thread, as in `ThreadExecutor`.
  public init(name: String, limit: Int) { (self.name, self.limit) = (name, limit) }

  public func run(_ work: @escaping @Sendable () -> Void) {
    let starts = state.withLock { [limit] state in
      state.queue.append(work)
      guard state.queue.count > state.idle, state.threads < limit else { return false }
      state.threads += 1
      return true
    }
    guard starts else { return state.notifyOne() }
    startThread(name: name) { [self] in
      while let work = next() { work() }
    }
  }

  /// Waits for work. Returns nil if the thread must end.
  private func next() -> (@Sendable () -> Void)? {
    state.withLock { $0.idle += 1 }
    let work = state.wait(timeout: Self.idleTime) { $0.queue.popFirst() }
    return state.withLock { state in
      state.idle -= 1
      // Work may have been added since the wait ended.
      let work = work ?? state.queue.popFirst()
      if work == nil { state.threads -= 1 }
      return work
    }
  }
}
