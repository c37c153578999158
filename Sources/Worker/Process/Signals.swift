internal import Platform
internal import Threads

/// Handles SIGTERM and SIGINT: the first signal requests a shutdown, the second exits at once.
enum Signals {
  /// - Parameter action: called once, on the signal thread.
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

  /// Blocks the signals in the calling thread and in all threads that it starts later.
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
