internal import Platform

/// Starts a detached thread with a stack of 1 MB that runs `body` and ends with it.
///
/// - Parameter name: shown by debuggers and `top -H`; cut to 15 characters.
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
