internal import Synchronization

/// The decodes that run in the workers of the directory. Each worker has their number in its row, so those of a dead
/// worker count until its row is reclaimed.
extension PeerTable {
  /// More than any worker runs. A larger number is not true.
  private static let maxDecodes: UInt64 = 1 << 16

  /// Records the number of decodes that this worker runs.
  public func recordDecodes(_ count: Int) {
    guard let row else { return }
    words[Layout.row(row) + 3].store(UInt64(max(0, count)), ordering: .sequentiallyConsistent)
  }

  /// Records that this worker runs `count` decodes, of which the last begins now. False, and one less is recorded, if
  /// all workers together would run more than `limit`. The first decode of a worker always begins, so that no worker
  /// waits for one that has stopped.
  public func beginDecode(_ count: Int, limit: Int) -> Bool {
    // If two workers begin at the same moment, at least one of them sees the other.
    recordDecodes(count)
    guard row != nil, count > 1, hasPeers, count + decodesOfPeers > limit else { return true }
    recordDecodes(count - 1)
    return false
  }

  /// The decodes of all peers, including those that died recently.
  var decodesOfPeers: Int {
    others.reduce(0) { sum, other in
      let count = words[Layout.row(other.row) + 3].load(ordering: .sequentiallyConsistent)
      return count < Self.maxDecodes ? sum + Int(count) : sum
    }
  }
}
