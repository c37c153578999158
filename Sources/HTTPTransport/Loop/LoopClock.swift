internal import Platform

/// The time of the loop's current turn, and the time of the next check for timeouts.
///
/// The clock is read once a turn. `nextCheck` is a lower bound: progress makes a transfer due later without updating
/// it, and a check that comes too early finds the true time. So a chunk costs nothing, and checking all transfers is
/// rare.
final class LoopClock {
  var now: Instant = .now
  private(set) var nextCheck: Instant?
  /// The transfers that have used up their share of the turn. They go on in the next turn.
  var held: [TransferID] = []

  /// Makes sure that the next check is no later than `time`; nil means never.
  func check(by time: Instant?) {
    guard let time else { return }
    nextCheck = nextCheck.map { min($0, time) } ?? time
  }

  /// Whether a check is due. If it is, every transfer must report its due time again.
  func beginCheck() -> Bool {
    guard let nextCheck, nextCheck <= now else { return false }
    self.nextCheck = nil
    return true
  }
}

/// Limits the pieces of its body that a transfer receives in one turn of the loop.
///
/// libcurl delivers each chunk by itself, however short, and reads up to 100 buffers in one call. A server that sends
/// chunks of one byte would block all other transfers for a tenth of a second a turn. Ordinary bodies come in pieces of
/// 16 kB and never reach the limit.
struct TurnShare {
  static let maxPieces = 1000

  private var turn: Instant?
  private var pieces = 0

  /// Counts a piece that arrives in the turn that began at `turn`. Returns false if it must wait for the next turn.
  mutating func receivePiece(in turn: Instant) -> Bool {
    if self.turn != turn { (self.turn, pieces) = (turn, 0) }
    pieces += 1
    return pieces <= Self.maxPieces
  }
}
