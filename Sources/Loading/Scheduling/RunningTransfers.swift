internal import Platform
internal import Threads

/// The running transfers, and the window that limits those of all origins.
struct RunningTransfers {
  /// A running transfer.
  struct Transfer {
    /// The job's slot.
    let job: Int32
    /// The start number, which increases with each transfer.
    let number: UInt64
    let since: Instant
    /// The epoch of the origin's health at the start.
    var epoch: UInt32
    /// Whether a response is known to have begun.
    var isAnswered = false
    /// Whether it has waited for its first byte for `Scheduler.patience`. It then does not count toward the window.
    var isQuiet = false
  }

  /// In no particular order; each job knows the index of its transfer.
  var list: [Transfer] = []
  /// The number of transfers started so far.
  var startCount: UInt64 = 0
  var window: ConcurrencyWindow
  /// Transfers without a known answer, in the order of their starts, and when each becomes quiet.
  var unanswered = FIFO<(id: JobID, number: UInt64, until: Instant)>()
  var quietCount = 0
  /// `countedActive` after the last starts: several transfers may end before the next ones start.
  var countedAtStarts = 0
  var startRate = StartRateEstimator()

  /// The number of transfers that count toward the window.
  var countedActive: Int { list.count - quietCount }

  init(window: ConcurrencyWindow) { self.window = window }
}
