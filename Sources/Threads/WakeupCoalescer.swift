internal import Platform

/// Waking threads late and together.
///
/// A thread that works off a batch hands work to other threads all the while. Were each woken at once, it would take up
/// one piece, sleep again, and cost two context switches a piece; inside `gather` the work is handed over at once, but
/// whoever sleeps is woken at the end. Threads that are awake take it up without waiting.
public enum WakeupCoalescer {
  private final class Pending {
    var executors: [ThreadExecutor] = []
    var depth = 0
  }

  /// Where each thread has its own.
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

  /// Runs `body`, then wakes the executors that were given work in it.
  public static func gather<Result>(_ body: () -> Result) -> Result {
    let pending = pending
    pending.depth += 1
    defer {
      pending.depth -= 1
      if pending.depth == 0 { release() }
    }
    return body()
  }

  /// Wakes those that were given work so far, inside a long `gather`.
  public static func release() {
    let pending = pending
    let executors = pending.executors
    pending.executors.removeAll(keepingCapacity: true)
    for executor in executors { executor.wake() }
  }

  /// Whether the executor will be woken by the calling thread later, so that it need not be now.
  static func postpone(_ executor: ThreadExecutor) -> Bool {
    let pending = pending
    guard pending.depth > 0 else { return false }
    if !pending.executors.contains(where: { $0 === executor }) { pending.executors.append(executor) }
    return true
  }
}
