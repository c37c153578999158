/// The answers of name servers, each for as long as it holds.
///
/// It has two generations: when the young one has half of the names that the cache may have, it becomes the old one,
/// and the old one is forgotten. A name that is asked for becomes young again.
struct AddressCache {
  enum Answer: Hashable {
    /// In the order in which they are to be tried; never empty.
    case addresses([IPAddress])
    case noSuchName
  }

  private struct Entry {
    let answer: Answer
    let expiresAt: ContinuousClock.Instant
  }

  /// An answer is kept for no shorter and no longer time, whatever its TTL.
  static let timeToLive: ClosedRange<Duration> = .seconds(5)...(.seconds(3600))
  /// How long it is remembered that a name does not exist.
  static let noSuchNameTimeToLive = Duration.seconds(10)

  private var young: [String: Entry] = [:]
  private var old: [String: Entry] = [:]
  private let maxNames: Int

  init(maxNames: Int = 10_000) {
    self.maxNames = maxNames
  }

  /// How many names it holds, those included whose time has passed.
  var count: Int { young.count + old.count }

  mutating func answer(for name: String, now: ContinuousClock.Instant) -> Answer? {
    if let entry = young[name] { return entry.expiresAt > now ? entry.answer : nil }
    guard let entry = old.removeValue(forKey: name), entry.expiresAt > now else { return nil }
    insert(entry, for: name)
    return entry.answer
  }

  /// - Parameter timeToLive: of addresses; the cache has its own for a name that does not exist.
  mutating func insert(_ answer: Answer, for name: String, timeToLive: Duration, now: ContinuousClock.Instant) {
    let kept =
      answer == .noSuchName
      ? Self.noSuchNameTimeToLive
      : min(max(timeToLive, Self.timeToLive.lowerBound), Self.timeToLive.upperBound)
    old[name] = nil
    insert(Entry(answer: answer, expiresAt: now + kept), for: name)
  }

  private mutating func insert(_ entry: Entry, for name: String) {
    young[name] = entry
    if young.count > maxNames / 2 - 1 {
      old = young
      young = [:]
    }
  }
}
