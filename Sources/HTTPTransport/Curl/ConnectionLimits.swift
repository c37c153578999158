/// How many connections curl may have, idle ones included: at first, and after the system had no descriptor for one
/// more.
struct ConnectionLimits: Equatable {
  /// The limits while descriptors last.
  let most: Int
  /// For one more, an idle connection is closed. If all are in use, the transfer waits until another has ended.
  private(set) var open: Int
  /// If there are more when a transfer has ended, an idle one is closed.
  private(set) var kept: Int
  private var transfersEnded = 0

  init(most: Int) {
    self.most = max(1, most)
    (open, kept) = (self.most, self.most)
  }

  /// There was no descriptor for one more. Files need some of those that are left.
  ///
  /// - Parameter count: how many sockets there are.
  mutating func lower(count: Int) {
    open = max(1, min(count * 7 / 8, open - 1))
    kept = max(1, min(count / 2, kept))
  }

  /// A transfer has ended, and its connection with it or the connection is idle. Waiting transfers take their turn at
  /// once. Idle connections come back slowly, so that it is seldom that they take the last descriptors again.
  mutating func raise() {
    guard kept < most else { return }
    open = min(most, open + 1)
    transfersEnded += 1
    if transfersEnded.isMultiple(of: 64) { kept += 1 }
  }
}
