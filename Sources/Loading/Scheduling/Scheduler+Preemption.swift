internal import Threads

/// Transfers that have waited for an answer for so long that others may have their places.
extension Scheduler {
  /// How long a transfer counts for the window of all without an answer. A lost packet at the beginning costs a second
  /// (RFC 6298 section 2.1); from then on it is not the machine that it waits for, and others can have its place.
  static let patience = Duration.seconds(1)

  /// Looks which transfers have become quiet. O(1) for each transfer that starts.
  ///
  /// - Parameter isAnswered: whether an answer has begun; nil where there is no request yet. Asked where `note` has not
  ///   told.
  mutating func findQuiet(at now: ContinuousClock.Instant, isAnswered: (JobID) -> Bool?) {
    latest = CompactInstant(now)
    while let first = unanswered.first, first.until <= latest {
      unanswered.popFirst()
      let (id, number) = (first.id, first.number)
      guard let job = jobs[id], job.phase == .active, case let seat = Int(job.seat), running[seat].number == number,
        !running[seat].isAnswered
      else { continue }
      switch isAnswered(id) {
      case true?: running[seat].isAnswered = true
      case nil: unanswered.append((id, number, CompactInstant(now.advanced(by: Self.patience))))
      case false?:
        running[seat].isQuiet = true
        quietCount += 1
      }
    }
  }

  /// The transfers that count for the window of all.
  var countedActive: Int { running.count - quietCount }

  /// Whether a transfer more is within the limits for all. Those that do not count may be as many as those that do.
  var hasFreeSlot: Bool {
    let most = min(limits.mostTransfers, 2 * window.size)
    return countedActive < window.size && running.count < max(most, 1) && finishingCount < limits.maxFinishing
  }
}
