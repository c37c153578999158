/// How many queries may be in flight to the name servers at once, found from how they end. Pure.
///
/// The window grows by one for every sixteen answers that come while it limits. Each query that is lost or refused
/// takes one place out of it, and its next attempt goes ahead of all others, in the place of one that was answered: so
/// what a name server drops because it has too many comes in when it has fewer, and the window ends up at what the
/// server takes. If no attempt at a query is answered, the name is the cause, and its places come back. If a later
/// attempt is answered, the server has dropped queries; from then on the window grows once a round trip only.
struct QueryWindow {
  static let sizes = 8...1_000
  private static let answersForGrowth = 16

  private(set) var size = 64
  private(set) var inFlight = 0
  private var hasSeenDrops = false
  /// Whether the window is what keeps queries back.
  private var isLimiting = false
  /// Since the window last grew.
  private var answers = 0

  var isFull: Bool { inFlight >= size }

  mutating func sent() {
    inFlight += 1
    if isFull { isLimiting = true }
  }

  /// A query was answered.
  ///
  /// - Parameter losses: the places that earlier attempts at it have taken.
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

  /// A query was not answered in time, or was refused. True if that has taken a place.
  mutating func lost() -> Bool {
    inFlight -= 1
    guard size > Self.sizes.lowerBound else { return false }
    size -= 1
    return true
  }

  /// There will be no other attempt at a query that was lost.
  ///
  /// - Parameter losses: the places that its attempts have taken.
  mutating func gaveUp(losses: Int) {
    size = min(size + losses, Self.sizes.upperBound)
  }
}
