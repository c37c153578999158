public import HTTPTypes

/// Counters of transfers for the busiest origins since the start, and for all others together, in bounded memory.
///
/// The first `maxShown` origins have counters of their own. A further one takes the place of the least busy of them
/// when it has had twice as many transfers. So the members change rarely, and hosts that all have few transfers do not
/// take turns. The counters of an origin that loses its place are added to `other`: no counter ever falls, and the sum
/// of all is exact.
///
/// Finds the candidates with the algorithm of Misra and Gries ("Finding repeated elements", 1982): their counts are at
/// most the true ones.
public struct BusiestOrigins: Sendable {
  public struct Counts: Sendable, Equatable {
    public var succeeded = 0
    public var failed = 0
    /// The bytes of bodies received.
    public var bytes: Int64 = 0

    static func += (left: inout Self, right: Self) {
      left.succeeded += right.succeeded
      left.failed += right.failed
      left.bytes += right.bytes
    }
  }

  public static let maxShown = 20
  static let maxCandidates = 100
  /// The maximum length of the text of an origin in bytes. Longer ones count in `other`, which keeps the text of the
  /// metrics short.
  static let maxLength = 100

  private struct Entry {
    /// The number of transfers that are known, including those before the origin was shown.
    var rank: Int
    var counts = Counts()
  }

  private var entries: [Origin: Entry] = [:]
  private var candidates: [Origin: Int] = [:]
  /// A lower bound of the rank that a candidate needs.
  private var neededRank = 0
  /// The counters of the origins that are not shown.
  public private(set) var other = Counts()

  public init() {}

  /// The origins that are shown, in the order of their names.
  public var shown: [(origin: Origin, counts: Counts)] {
    entries.map { ($0.key, $0.value.counts) }.sorted { $0.origin.description < $1.origin.description }
  }

  /// Counts a transfer that has ended.
  mutating func count(_ origin: Origin, hasSucceeded: Bool, bytes: Int64) {
    let counts = Counts(succeeded: hasSucceeded ? 1 : 0, failed: hasSucceeded ? 0 : 1, bytes: bytes)
    if let index = entries.index(forKey: origin) {
      entries.values[index].rank += 1
      entries.values[index].counts += counts
    } else if origin.host.utf8.count > Self.maxLength {
      other += counts
    } else if entries.count < Self.maxShown {
      entries[origin] = Entry(rank: 1, counts: counts)
    } else {
      other += counts
      nominate(origin)
    }
  }

  private mutating func nominate(_ origin: Origin) {
    guard let rank = candidates[origin].map({ $0 + 1 }) ?? (candidates.count < Self.maxCandidates ? 1 : nil) else {
      candidates = candidates.compactMapValues { $0 > 1 ? $0 - 1 : nil }
      return
    }
    candidates[origin] = rank
    guard rank >= neededRank, let lowest = entries.min(by: { $0.value.rank < $1.value.rank }) else { return }
    neededRank = 2 * lowest.value.rank
    guard rank >= neededRank else { return }
    other += lowest.value.counts
    entries[lowest.key] = nil
    entries[origin] = Entry(rank: rank)
    candidates[origin] = nil
    candidates[lowest.key] = lowest.value.rank
  }
}
