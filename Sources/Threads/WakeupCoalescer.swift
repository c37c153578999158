internal import Platform

/// Delays and merges the wakeups of other threads.
///
/// A thread that processes a batch adds work for other threads again and again. If each addition woke the other thread,
/// that would do one piece, sleep again, and cost two context switches a piece. Inside `gather` the work is added at
/// once, but sleeping threads are woken at the end. Threads that are awake start on it immediately.
public enum WakeupCoalescer {
  private final class Pending {
    var executors: [ThreadExecutor] = []
    var depth = 0
  }

  /// The key of each thread's `Pending`.
  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    pthread_key_create(&key) { pointer in
      // Darwin and Glibc differ in whether the pointer is optional.
      let pointer: UnsafeMutableRawPointer? = pointer
      if let pointer { Unmanaged<Pending>.fromOpaque(pointer).release() }
    }
    return key
  }()

  private static var pending: Pending {
    if let pointer = pthread_getspecific(key) { return Unmanaged<Pending>.fromOpaque(pointer).takeUnretainedValue() }
    let new = Pending()
    pthread_setspecific(key, Unmanaged.passRetained(new).toOpaque())
    return new
  }

  /// Runs `body`, then wakes the executors that got work in it.
  public static func gather<Result>(_ body: () -> Result) -> Result {
    let pending = pending
    pending.depth += 1
    defer {
      pending.depth -= 1
      if pending.depth == 0 { release() }
    }
    return body()
  }

  /// Wakes the executors that got work so far, inside a long `gather`.
  public static func release() {
    let pending = pending
    let executors = pending.executors
    guard !executors.isEmpty else { return }
    pending.executors.removeAll(keepingCapacity: true)
    for executor in executors { executor.wake() }
  }

  /// Whether the calling thread will wake the executor later, so that it need not be woken now.
  static func postpone(_ executor: ThreadExecutor) -> Bool {
    let pending = pending
    guard pending.depth > 0 else { return false }
    if !pending.executors.contains(where: { $0 === executor }) { pending.executors.append(executor) }
    return true
  }
}
