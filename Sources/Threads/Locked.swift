internal import Platform

/// A value that only one thread at a time can access, and on which threads can wait.
///
/// The project's only lock. It uses a pthread mutex rather than `Synchronization.Mutex`, because ThreadSanitizer
/// supports it and because a condition variable belongs to it.
public final class Locked<Value>: @unchecked Sendable {
  // Unchecked: `value` is only accessed with `mutex` held. It is a pointer since Swift would check each access to a
  // property for overlaps, which the mutex excludes.
  @usableFromInline let value: UnsafeMutablePointer<Value>
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

  /// Runs `body` with the lock held. It must not use the same lock again.
  @inlinable @inline(__always)
  public func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    lock()
    defer { unlock() }
    return try body(&value.pointee)
  }

  @usableFromInline func lock() { pthread_mutex_lock(mutex) }
  @usableFromInline func unlock() { pthread_mutex_unlock(mutex) }

  /// Wakes every thread in `wait`. Call it after a change for which a thread may be waiting.
  public func notify() { pthread_cond_broadcast(condition) }

  /// As `notify`, for one of several threads that wait for the same.
  public func notifyOne() { pthread_cond_signal(condition) }

  /// Blocks until `body` returns a value. `body` is called at once, and again after each `notify`.
  ///
  /// - Returns: the value of `body`; nil if `timeout` passed first. Never nil without a timeout.
  public func wait<Result>(timeout: Duration? = nil, for body: (inout Value) -> Result?) -> Result? {
    let deadline = timeout.map { Instant.now.advanced(by: $0) }
    lock()
    defer { unlock() }
    while true {
      if let result = body(&value.pointee) { return result }
      guard let deadline else {
        pthread_cond_wait(condition, mutex)
        continue
      }
      let left = Instant.now.duration(to: deadline)
      if left <= .zero { return nil }
      wait(atMost: left)
    }
  }

  private func wait(atMost duration: Duration) {
    // An hour is enough: the caller checks again, and no time overflows.
    let (seconds, attoseconds) = min(duration, .seconds(3600)).components
    let time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    Platform.wait(for: condition, mutex, atMost: time)
  }
}
