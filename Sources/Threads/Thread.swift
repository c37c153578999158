#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// Starts a detached thread that runs `body` and ends when it returns.
///
/// - Parameter name: shown by debuggers and `top -H`; truncated to 15 characters.
public func startThread(name: String, _ body: @escaping @Sendable () -> Void) {
  let box = Unmanaged.passRetained(ThreadBody(name: String(name.prefix(15)), run: body))
  #if canImport(Darwin)
    var thread: pthread_t?
  #else
    var thread = pthread_t()
  #endif
  var attributes = pthread_attr_t()
  pthread_attr_init(&attributes)
  pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
  pthread_attr_setstacksize(&attributes, 1 << 20)
  let status = pthread_create(&thread, &attributes, { enterThread($0) }, box.toOpaque())
  pthread_attr_destroy(&attributes)
  precondition(status == 0, "the system cannot create another thread (error \(status))")
}

private final class ThreadBody: Sendable {
  let name: String
  let run: @Sendable () -> Void

  init(name: String, run: @escaping @Sendable () -> Void) {
    self.name = name
    self.run = run
  }
}

#if canImport(Darwin)
  private func enterThread(_ argument: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
    let body = Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue()
    pthread_setname_np(body.name)
    body.run()
    return nil
  }
#else
  private func enterThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    let body = Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue()
    setName(body.name)
    body.run()
    return nil
  }

  /// Swift cannot call Glibc's `pthread_setname_np`, which needs _GNU_SOURCE. Writing this file does the same.
  private func setName(_ name: String) {
    let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    _ = write(file, name, name.utf8.count)
    close(file)
  }
#endif
