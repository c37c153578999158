internal import Platform

/// The standard streams of the process, protected from libraries that write to descriptor 1.
struct StandardStreams {
  /// A duplicate of standard output. Descriptor 1 itself is redirected to standard error, so that the output of a
  /// library cannot corrupt the protocol.
  let output: Int32

  /// Must be called before the process starts a thread or uses a library.
  static func take() -> StandardStreams {
    signal(SIGPIPE, SIG_IGN)
    // A write beyond `ulimit -f` then fails with EFBIG.
    signal(SIGXFSZ, SIG_IGN)
    // The next file that is opened would get the number of a closed stream. /dev/null takes its place: input ends at
    // once, writing an answer fails, and log lines are discarded.
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      _ = open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY)
    }
    let output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
    precondition(output >= 0, "standard output cannot be duplicated")
    dup2(STDERR_FILENO, STDOUT_FILENO)
    return StandardStreams(output: output)
  }
}
