/// How many pieces of its body a transfer takes in one turn of the loop.
///
/// libcurl hands out each chunk by itself, however short, and reads up to 100 buffers in one call. A server that sends
/// chunks of one byte would hold up all other transfers for a tenth of a second a turn. Pieces of 16 kB, of which
/// bodies consist otherwise, never come to so many.
struct TurnShare {
  static let mostPieces = 1000

  private var turn: ContinuousClock.Instant?
  private var pieces = 0

  /// Counts a piece that comes in the turn that began at `turn`. False if it has to wait for the next turn.
  mutating func take(in turn: ContinuousClock.Instant) -> Bool {
    if self.turn != turn { (self.turn, pieces) = (turn, 0) }
    pieces += 1
    return pieces <= Self.mostPieces
  }
}
