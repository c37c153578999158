internal import Platform
internal import Threads

/// The executor of the transport. Its thread sleeps in the poll of curl's sockets; a posted job or command wakes it.
///
/// Commands are returned in the order in which they were posted. Many posts cost one wakeup; posts from the thread
/// itself or while it is awake cost none. The first work that needs the thread starts it.
final class LoopExecutor<Command: Sendable>: SerialExecutor {
  struct Work {
    var jobs: [UnownedJob] = []
    var commands: [Command] = []
    var isEmpty: Bool { jobs.isEmpty && commands.isEmpty }
  }

  private struct State {
    var work = Work()
    var thread: pthread_t?
    var hasThread = false
    var isAsleep = false
    /// nil before there is a socket to watch.
    var wakeUp: WakeupPipe?
    var run: (@Sendable () -> Void)?
  }

  private let state = Locked(State())
  private let name: String

  init(name: String) { self.name = name }

  /// Sets the body of the thread: an endless loop over `drain` and `sleep`.
  func setLoop(_ run: @escaping @Sendable () -> Void) { state.withLock { $0.run = run } }

  /// Adds a command to those that `drain` returns next.
  ///
  /// - Parameter startsThread: if false, the command waits for work that starts the thread.
  func post(_ command: Command, startsThread: Bool) {
    add(startsThread: startsThread) { $0.commands.append(command) }
  }

  /// Adds a command if the thread is running.
  ///
  /// - Returns: whether it is.
  func postIfRunning(_ command: Command) -> Bool {
    guard state.withLock({ $0.hasThread }) else { return false }
    post(command, startsThread: true)
    return true
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    add(startsThread: true) { $0.jobs.append(job) }
  }

  private func add(startsThread: Bool, _ append: (inout Work) -> Void) {
    let start: (@Sendable () -> Void)? = state.withLock { state in
      append(&state.work)
      if state.isAsleep {
        state.isAsleep = false
        if let wakeUp = state.wakeUp {
          wakeUp.wake()
        } else {
          self.state.notify()
        }
      }
      guard startsThread, !state.hasThread else { return nil }
      state.hasThread = true
      return state.run
    }
    guard let start else { return }
    startThread(name: name) { [self] in
      state.withLock { $0.thread = pthread_self() }
      start()
    }
  }

  // The members below are called on the thread only.

  /// Returns everything that was posted since the last call.
  func drain() -> Work {
    state.withLock { state in
      defer { state.work = Work() }
      return state.work
    }
  }

  /// Waits until something is posted, a socket is ready, or curl has work. Polls the sockets in any case.
  func sleep(in curl: CurlLoop?) {
    let maySleep = state.withLock { state in
      guard state.work.isEmpty else { return false }
      state.isAsleep = true
      state.wakeUp = curl?.wakeUp
      return true
    }
    guard let curl else {
      if maySleep { _ = state.wait { $0.isAsleep ? nil : () } }
      return
    }
    curl.sleep(mayWait: maySleep)
    if maySleep { state.withLock { $0.isAsleep = false } }
  }

  private var isCurrent: Bool {
    state.withLock { $0.thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
  }

  func checkIsolated() { precondition(isCurrent, "not on the transport's thread") }

  func isIsolatingCurrentContext() -> Bool? { isCurrent }

  func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}
