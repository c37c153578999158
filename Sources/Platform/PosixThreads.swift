/// Initializes a condition variable whose time-outs do not follow changes of the wall clock.
public func initializeMonotonic(_ condition: UnsafeMutablePointer<pthread_cond_t>) {
  #if canImport(Darwin)
    pthread_cond_init(condition, nil)
  #else
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  #endif
}

/// Waits for a condition variable of `initializeMonotonic`, with the mutex locked, for at most `time`.
public func wait(
  for condition: UnsafeMutablePointer<pthread_cond_t>, _ mutex: UnsafeMutablePointer<pthread_mutex_t>,
  atMost time: timespec
) {
  var time = time
  #if canImport(Darwin)
    pthread_cond_timedwait_relative_np(condition, mutex, &time)
  #else
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    time.tv_sec += now.tv_sec
    time.tv_nsec += now.tv_nsec
    if time.tv_nsec >= 1_000_000_000 {
      time.tv_sec += 1
      time.tv_nsec -= 1_000_000_000
    }
    pthread_cond_timedwait(condition, mutex, &time)
  #endif
}

/// A thread that has been started; it ends with the body of `PosixThread.init`.
public struct PosixThread {
  private let thread: pthread_t

  /// nil if the system gives no more threads; `errno` says why.
  ///
  /// - Parameters:
  ///   - name: shown by debuggers and `top -H`; cut to 15 characters.
  ///   - stackSize: bytes; nil for the system's default.
  public init?(name: String, stackSize: Int? = nil, _ body: @escaping @Sendable () -> Void) {
    let entry = Unmanaged.passRetained(ThreadEntry(name: String(name.prefix(15)), body: body))
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    if let stackSize { pthread_attr_setstacksize(&attributes, stackSize) }
    defer { pthread_attr_destroy(&attributes) }
    #if canImport(Darwin)
      var started: pthread_t?
    #else
      var started = pthread_t()
    #endif
    let status = pthread_create(&started, &attributes, enterThread, entry.toOpaque())
    guard status == 0 else {
      entry.release()
      errno = status
      return nil
    }
    #if canImport(Darwin)
      thread = started!
    #else
      thread = started
    #endif
  }

  /// Lets the thread free what it has when it ends. `join` must not be called then.
  public func detach() { pthread_detach(thread) }

  /// Waits for its end.
  public func join() { pthread_join(thread, nil) }
}

private final class ThreadEntry {
  let name: String
  let body: @Sendable () -> Void

  init(name: String, body: @escaping @Sendable () -> Void) {
    self.name = name
    self.body = body
  }

  static func run(_ argument: UnsafeMutableRawPointer) {
    let entry = Unmanaged<ThreadEntry>.fromOpaque(argument).takeRetainedValue()
    nameThread(entry.name)
    entry.body()
  }
}

#if canImport(Darwin)
  private func enterThread(_ argument: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
    ThreadEntry.run(argument)
    return nil
  }

  private func nameThread(_ name: String) { pthread_setname_np(name) }
#else
  private func enterThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let argument { ThreadEntry.run(argument) }
    return nil
  }

  /// Glibc's `pthread_setname_np` needs _GNU_SOURCE, without which Swift imports it; this file does the same.
  private func nameThread(_ name: String) {
    let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    _ = write(file, name, name.utf8.count)
    close(file)
  }
#endif
