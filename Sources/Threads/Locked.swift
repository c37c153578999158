internal import Platform

/// A value that only one thread at a time can touch, and that threads can wait on.
///
/// It is the project's one lock. A pthread mutex rather than `Synchronization.Mutex`, because ThreadSanitizer sees it
/// and because it comes with a condition variable.
public final class Locked<Value>: @unchecked Sendable {
  // Unchecked: `value` is only reached with `mutex` held. A pointer, since Swift would look for overlapping accesses to
  // a property each time, which the mutex rules out.
  private let value: UnsafeMutablePointer<Value>
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>

  public init(_ value: sending Value) {
    self.value = .allocate(capacity: 1)
    self.value.initialize(to: value)
    mutex = .allocate(capacity: 1)
    condition = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    condition.initialize(to: pthread_cond_t())
    pthread_mutex_init(mutex, nil)
    initializeMonotonic(condition)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
    value.deinitialize(count: 1)
    value.deallocate()
  }

  /// Runs `body` with the lock held. It must not call back into the same lock.
  @inline(__always)
  public func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value.pointee)
  }

  /// Wakes every thread in `wait`. Call it after a change that one of them may be waiting for.
  public func notify() {
    pthread_cond_broadcast(condition)
  }

  /// Blocks until `body` returns a value; it is tried at once and again after each `notify`.
  ///
  /// - Returns: what `body` returned, or nil when `timeout` passed first. Without a timeout it is never nil.
  public func wait<Result>(timeout: Duration? = nil, for body: (inout Value) -> Result?) -> Result? {
    let deadline = timeout.map { ContinuousClock.now.advanced(by: $0) }
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      if let result = body(&value.pointee) { return result }
      guard let deadline else {
        pthread_cond_wait(condition, mutex)
        continue
      }
      let left = ContinuousClock.now.duration(to: deadline)
      if left <= .zero { return nil }
      wait(atMost: left)
    }
  }

  private func wait(atMost duration: Duration) {
    // An hour is as good as for ever here: the caller looks again, and no time overflows.
    let (seconds, attoseconds) = min(duration, .seconds(3600)).components
    let time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    Platform.wait(for: condition, mutex, atMost: time)
  }
}
