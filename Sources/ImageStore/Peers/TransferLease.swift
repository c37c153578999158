internal import Synchronization

/// The identity of a transfer, equal in all workers of a directory, with the state of its lease bucket when it was last
/// read.
public struct LeaseRequest: Sendable {
  /// Two different transfers with the same hash only wait for each other needlessly.
  let hash: UInt64
  /// The counters of the leases that have ended in the bucket.
  var leaseEpoch = LeaseEpoch(word: 0)
  /// The row of the worker that held the lease at the last request.
  var holder: UInt64?

  struct LeaseEpoch: Equatable {
    let word: UInt64

    /// The number of leases that ended as failed.
    var failed: UInt64 { word >> 32 }

    static let succeeded: UInt64 = 1
    static let failed: UInt64 = 1 << 32
  }

  var bucket: Int { PeerTable.Layout.bucket(hash % UInt64(PeerTable.Layout.buckets)) }
  /// The word of the slot without its lowest byte, which is the row of the holder.
  var tag: UInt64 { hash & ~0xff }
}

/// The right of this worker to make a transfer for all workers of a directory. It lasts as long as the object exists.
///
/// The peers wait for its end and then read the index. The object must outlive the commit of the response. If there is
/// no commit, the lease ends with its last reference.
public final class Lease: Sendable {
  private let peerTable: PeerTable
  private let index: Int
  private let word: UInt64
  /// The value that its end adds to the epoch of the bucket.
  private let ending = Atomic<UInt64>(LeaseRequest.LeaseEpoch.failed)

  init(peerTable: PeerTable, index: Int, word: UInt64) {
    self.peerTable = peerTable
    self.index = index
    self.word = word
    peerTable.leaseCount.add(1, ordering: .relaxed)
  }

  deinit {
    peerTable.end(index, word, ending.load(ordering: .relaxed))
    peerTable.leaseCount.subtract(1, ordering: .relaxed)
  }

  /// Marks the lease as succeeded, after the response is committed. The lease still ends with its last reference.
  func succeed() { ending.store(LeaseRequest.LeaseEpoch.succeeded, ordering: .relaxed) }

  /// Makes the lease end, with its last reference, as if it had never existed. Called if the response is of no use to
  /// the peers.
  public func abandon() { ending.store(0, ordering: .relaxed) }
}
