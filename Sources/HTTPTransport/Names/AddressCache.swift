internal import Platform

/// A cache of name servers' answers, each until its time to live has passed.
///
/// It has two generations. When the young one has half of the names that the cache may hold, it becomes the old one,
/// and the old one is dropped. A name that is read becomes young again.
struct AddressCache {
  private struct Entry {
    let answer: Resolver.Outcome
    let expiresAt: Instant
  }

  /// Bounds on the time for which an answer is stored, whatever its TTL.
  static let timeToLive: ClosedRange<Duration> = .seconds(5)...(.seconds(3600))
  /// Time for which a name is stored as nonexistent.
  static let noSuchNameTimeToLive = Duration.seconds(10)

  private var young: [String: Entry] = [:]
  private var old: [String: Entry] = [:]
  private let maxNames: Int

  init(maxNames: Int = 10_000) { self.maxNames = maxNames }

  /// Number of stored names, expired ones included.
  var count: Int { young.count + old.count }

  mutating func answer(for name: String, now: Instant) -> Resolver.Outcome? {
    if let entry = young[name] { return entry.expiresAt > now ? entry.answer : nil }
    guard let entry = old.removeValue(forKey: name), entry.expiresAt > now else { return nil }
    insert(entry, for: name)
    return entry.answer
  }

  /// - Parameters:
  ///   - answer: addresses, or that the name does not exist.
  ///   - timeToLive: of addresses. A nonexistent name has a fixed one.
  mutating func insert(
    _ answer: Resolver.Outcome, for name: String, timeToLive: Duration = .zero, now: Instant
  ) {
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
