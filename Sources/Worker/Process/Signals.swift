internal import Threads

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// SIGTERM and SIGINT: the first asks the worker to end, the second ends it.
enum Signals {
  /// - Parameter action: called once, on a thread of its own.
  static func onTermination(_ action: @escaping @Sendable () -> Void) {
    startThread(name: "signals") {
      var signals = set
      var number: Int32 = 0
      while sigwait(&signals, &number) != 0 {}
      action()
      while sigwait(&signals, &number) != 0 {}
      _exit(128 + number)
    }
  }

  /// Keeps the signals away from the calling thread and all that it starts.
  static func block() {
    var signals = set
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }

  private static var set: sigset_t {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGTERM)
    sigaddset(&signals, SIGINT)
    return signals
  }
}
