/// The time of the loop's current turn, and when it has to look for transfers that are due.
///
/// One reading of the clock serves all that happens in a turn. `nextCheck` is a lower bound: progress makes a transfer
/// due later without touching it, and the look that comes too early finds the true time. So a chunk costs nothing and
/// a look at all transfers is rare.
final class LoopClock {
  var now: ContinuousClock.Instant = .now
  private(set) var nextCheck: ContinuousClock.Instant?
  /// The transfers that have had their share of the turn. They go on in the next.
  var held: [TransferID] = []

  /// Makes sure that transfers are looked at no later than `time`; nil is never.
  func check(by time: ContinuousClock.Instant?) {
    guard let time else { return }
    nextCheck = nextCheck.map { min($0, time) } ?? time
  }

  /// Whether it is time to look; then every transfer has to say anew when it is due.
  func beginCheck() -> Bool {
    guard let nextCheck, nextCheck <= now else { return false }
    self.nextCheck = nil
    return true
  }
}
