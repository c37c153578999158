#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// The process's streams, put out of reach of whatever else lives in it.
struct StandardStreams {
  /// Where lines are written. Descriptor 1 itself leads to standard error afterwards, so that no library can print into
  /// the protocol.
  let output: Int32

  /// The first thing to do in a process: before any thread and any library.
  static func take() -> StandardStreams {
    signal(SIGPIPE, SIG_IGN)
    // To write more than `ulimit -f` allows fails then, with EFBIG.
    signal(SIGXFSZ, SIG_IGN)
    // A missing descriptor would be taken by the next file that is opened. Reading from what takes its place ends,
    // writing an answer to it fails, log lines vanish.
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      _ = open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY)
    }
    let output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
    precondition(output >= 0, "standard output cannot be duplicated")
    dup2(STDERR_FILENO, STDOUT_FILENO)
    return StandardStreams(output: output)
  }
}
