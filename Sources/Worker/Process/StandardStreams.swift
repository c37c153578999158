internal import CSystem
internal import Platform

/// The standard streams of the process, protected from libraries that write to descriptor 1.
struct StandardStreams {
  /// A duplicate of standard output. Descriptor 1 itself is redirected to standard error, so that the output of a
  /// library cannot corrupt the protocol.
  let output: Int32
  /// The name of the stream that a worker cannot do without and that is closed; nil if there is none.
  let closed: String?

  /// Must be called before the process starts a thread or uses a library.
  static func take() -> StandardStreams {
    signal(SIGPIPE, SIG_IGN)
    // A write beyond `ulimit -f` then fails with EFBIG.
    signal(SIGXFSZ, SIG_IGN)
    // The next file that is opened would get the number of a closed stream.
    let closed = (STDIN_FILENO...STDERR_FILENO).filter { fcntl($0, F_GETFD) < 0 }
    for _ in closed { _ = csystem_open_empty() }
    let output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
    precondition(output >= 0, "standard output cannot be duplicated")
    dup2(STDERR_FILENO, STDOUT_FILENO)
    let needed = [STDIN_FILENO: "standard input", STDOUT_FILENO: "standard output"]
    return StandardStreams(output: output, closed: closed.first.flatMap { needed[$0] })
  }
}
