internal import Platform

/// Starts a detached thread with a stack of 1 MB that runs `body` and ends with it.
///
/// - Parameter name: shown by debuggers and `top -H`; cut to 15 characters.
public func startThread(name: String, _ body: @escaping @Sendable () -> Void) {
  guard let thread = PosixThread(name: name, stackSize: 1 << 20, body) else {
    preconditionFailure("the system cannot create another thread (error \(errno))")
  }
  thread.detach()
}
