/// The number of queries that may be in flight to the name servers at once, adapted to their outcomes. Pure.
///
/// The window grows by one for every sixteen answers that arrive while it is the limit. Each lost or refused query
/// shrinks it by one, and the next attempt goes ahead of all other queries, after one was answered. So queries that a
/// name server drops because it has too many are repeated when it has fewer, and the window settles at the number that
/// the server accepts. If no attempt at a query is answered, the name is the cause, and the window grows back by that
/// query's losses. If a later attempt is answered, the server has dropped queries; from then on the window grows only
/// once a round trip.
struct QueryWindow {
  static let sizes = 8...1_000
  private static let answersForGrowth = 16

  private(set) var size = 64
  private(set) var inFlight = 0
  private var hasSeenDrops = false
  /// Whether the window is what delays queries.
  private var isLimiting = false
  /// Number of answers since the window last grew.
  private var answers = 0

  var isFull: Bool { inFlight >= size }

  mutating func sent() {
    inFlight += 1
    if isFull { isLimiting = true }
  }

  /// Records that a query was answered.
  ///
  /// - Parameter losses: the number by which its earlier attempts have shrunk the window.
  mutating func answered(losses: Int) {
    inFlight -= 1
    if losses > 0 { hasSeenDrops = true }
    if 2 * inFlight < size { isLimiting = false }
    guard isLimiting else { return }
    answers += 1
    guard answers >= (hasSeenDrops ? max(Self.answersForGrowth, size) : Self.answersForGrowth) else { return }
    answers = 0
    size = min(size + 1, Self.sizes.upperBound)
  }

  /// Records that a query was refused or not answered in time. Returns true if that has shrunk the window.
  mutating func lost() -> Bool {
    inFlight -= 1
    guard size > Self.sizes.lowerBound else { return false }
    size -= 1
    return true
  }

  /// Records that a lost query will not be repeated.
  ///
  /// - Parameter losses: the number by which its attempts have shrunk the window.
  mutating func gaveUp(losses: Int) { size = min(size + losses, Self.sizes.upperBound) }
}
