internal import Platform

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
