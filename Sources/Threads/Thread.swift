internal import Platform

/// Ends a process that cannot work without a thread or descriptor, with the status EX_OSERR (sysexits.h).
func exitWithoutResource(_ name: String) -> Never {
  let line = Array("imageworker: the system cannot create another \(name): \(String(cString: strerror(errno)))\n".utf8)
  _ = writeDescriptor(STDERR_FILENO, line, line.count)
  _exit(EX_OSERR)
}

/// Starts a detached thread with a stack of 1 MB that runs `body` and ends with it.
///
/// - Parameter name: shown by debuggers and `top -H`; cut to 15 characters.
public func startThread(name: String, _ body: @escaping @Sendable () -> Void) {
  guard let thread = PosixThread(name: name, stackSize: 1 << 20, body) else {
    exitWithoutResource("thread")
  }
  thread.detach()
}
