/// The number of entries that this worker has evicted from the disk tier, by reason.
public struct EvictionStatistics: Sendable, Equatable {
  public enum Reason: Sendable {
    /// The tier reached its limit.
    case limit
    /// The file system had less free space than the minimum.
    case freeSpace
    /// The file system had no space left for a write.
    case diskFull
  }

  public var limit = 0
  public var freeSpace = 0
  public var diskFull = 0

  public var total: Int { limit + freeSpace + diskFull }

  mutating func count(_ reason: Reason) {
    switch reason {
    case .limit: limit += 1
    case .freeSpace: freeSpace += 1
    case .diskFull: diskFull += 1
    }
  }
}
