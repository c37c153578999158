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

/// Quiet transfers: those that have waited long for a first byte stop counting, so that others can start.
extension Scheduler {
  /// How long a transfer without a first byte counts toward the global window. A lost packet at the start costs a
  /// second (RFC 6298 section 2.1); after that the bottleneck is not this machine, and others may use the permit.
  static let patience = Duration.seconds(1)

  /// Finds the transfers that have become quiet. O(1) amortized per started transfer.
  ///
  /// - Parameter isAnswered: whether a response has begun; nil if no request has been sent yet. Called for transfers
  ///   whose answer has not been recorded by `record`.
  mutating func findQuiet(at now: Instant, isAnswered: (JobID) -> Bool?) {
    latest = now
    while let first = transfers.unanswered.first, first.until <= latest {
      transfers.unanswered.popFirst()
      let (id, number) = (first.id, first.number)
      guard let job = jobs[id], job.phase == .active, case let runningIndex = Int(job.runningIndex),
        transfers.list[runningIndex].number == number, !transfers.list[runningIndex].isAnswered
      else { continue }
      switch isAnswered(id) {
      case true?: transfers.list[runningIndex].isAnswered = true
      case nil: transfers.unanswered.append((id, number, now.advanced(by: Self.patience)))
      case false?:
        transfers.list[runningIndex].isQuiet = true
        transfers.quietCount += 1
      }
    }
  }

  /// Whether the global limits permit another transfer. At most as many transfers may be quiet as the window permits.
  var hasFreePermit: Bool {
    let most = min(limits.maxTransfers, 2 * transfers.window.size)
    return transfers.countedActive < transfers.window.size && transfers.list.count < max(most, 1)
      && jobs.storingCount < limits.maxFinishing
  }
}

/// The exponentially weighted rate of transfer starts (time constant 10 s). Used to suggest `retryAfter` to loads
/// rejected with `overloaded`.
struct StartRateEstimator {
  /// The time constant: a start of this age counts 1/e.
  private static let timeConstant = Duration.seconds(10)
  private static let minTime = Duration.milliseconds(100)
  private static let maxTime = Duration.seconds(30)

  private var starts = 0.0
  private var begin: Instant?
  private var last: Instant?

  mutating func record(_ count: Int, at now: Instant) {
    guard count > 0 else { return }
    starts = remaining(at: now) + Double(count)
    begin = begin ?? now
    last = now
  }

  /// The time that so many starts take at the current rate, from 100 ms to 30 s.
  func time(for count: Int, at now: Instant) -> Duration {
    guard let begin else { return Self.maxTime }
    // The value of the sum if one transfer had started each second since `begin`.
    let observed = max(1, Self.timeConstant.inSeconds * (1 - exp(-(begin.duration(to: now) / Self.timeConstant))))
    let rate = remaining(at: now) / observed
    guard rate * Self.maxTime.inSeconds > Double(count) else { return Self.maxTime }
    return max(Self.minTime, .seconds(Double(count) / rate))
  }

  private func remaining(at now: Instant) -> Double {
    last.map { starts * exp(-($0.duration(to: now) / Self.timeConstant)) } ?? 0
  }
}

extension Duration {
  fileprivate var inSeconds: Double { self / .seconds(1) }
}
