/// Limits on curl's connections, idle ones included. They fall when the system has no descriptor for one more
/// connection.
struct ConnectionLimits: Equatable {
  /// The configured limit, in force while descriptors last.
  let configuredMax: Int
  /// Largest number of connections. One more closes an idle one; if all are in use, the transfer waits until another
  /// has ended.
  private(set) var open: Int
  /// Largest number of connections to keep after a transfer has ended. Above it, an idle one is closed.
  private(set) var kept: Int
  private var transfersEnded = 0

  init(max configuredMax: Int) {
    self.configuredMax = Swift.max(1, configuredMax)
    (open, kept) = (self.configuredMax, self.configuredMax)
  }

  /// Lowers the limits after the system had no descriptor for one more. Some of the descriptors that are left are
  /// needed for files.
  ///
  /// - Parameter count: the number of open sockets.
  mutating func lower(count: Int) {
    open = max(1, min(count * 7 / 8, open - 1))
    kept = max(1, min(count / 2, kept))
  }

  /// Raises the limits after a transfer has ended, so that its connection is closed or idle. `open` rises at once, for
  /// waiting transfers. `kept` rises slowly, so that idle connections seldom take the last descriptors again.
  mutating func raise() {
    guard kept < configuredMax else { return }
    open = min(configuredMax, open + 1)
    transfersEnded += 1
    if transfersEnded.isMultiple(of: 64) { kept += 1 }
  }
}
